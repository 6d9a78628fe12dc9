"""Names of topics and namespaces."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import InvalidNamespaceNameError, InvalidTopicNameError
from pulsar_py.common.names import (
    NamespaceName,
    TopicName,
    url_form_decode,
    url_form_encode,
)


def test_a_full_name_has_its_parts() -> None:
    name = TopicName.parse("non-persistent://acme/orders.v1/a b")

    assert name.domain == "non-persistent"
    assert name.tenant == "acme"
    assert name.namespace_name == NamespaceName("acme", "orders.v1")
    assert name.local_name == "a b"
    assert name.partition_index == -1
    assert not name.is_persistent
    assert str(name) == "non-persistent://acme/orders.v1/a b"


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("t", "persistent://public/default/t"),
        ("wire-lookup-short", "persistent://public/default/wire-lookup-short"),
        ("acme/ns/t", "persistent://acme/ns/t"),
        ("persistent://public/default/ends ", "persistent://public/default/ends "),
    ],
)
def test_short_names_expand(short: str, full: str) -> None:
    assert str(TopicName.parse(short)) == full


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "default/t",
        "a/b/c/d",
        "persistent://public/default",
        "persistent://public/default/",
        "persistent://public/default/  ",
        "persistent://public/standalone/default/t",
        "persistent://public/def$ault/t",
        "persistent://public/default/.",
        "persistent://public/default/..",
        "persistent://../default/t",
        "persistent://public/./t",
        "persistent:///default/t",
        "persistent://public//t",
        "topic://public/default/t",
        "segment://public/default/t",
        " persistent://public/default/t",
        "persistent://pübli/default/t",
        "persistent://",
    ],
)
def test_what_pulsar_4_2_refuses_is_refused(text: str) -> None:
    with pytest.raises(InvalidTopicNameError) as caught:
        TopicName.parse(text)

    assert repr(text) in str(caught.value) or text in str(caught.value)


def test_partitions_know_their_topic() -> None:
    base = TopicName.parse("t")
    partition = base.partition(12)

    assert str(partition) == "persistent://public/default/t-partition-12"
    assert partition.partition_index == 12
    assert partition.is_partition
    assert partition.base == base
    assert base.base is base


def test_a_partition_of_a_name_that_holds_the_suffix() -> None:
    name = TopicName.parse("a-partition-b-partition-3")

    assert name.partition_index == 3
    assert name.base.local_name == "a-partition-b"


@pytest.mark.parametrize(
    "local_name",
    [
        "t-partition-01",
        "t-partition-",
        "t-partition--1",
        "t-partition-x",
        "t-partition-+1",
        "t-partition-²",
        "t-partition-2147483648",
        "t-partition-99999999999999999999",
        "-partition-0",
    ],
)
def test_what_only_looks_like_a_partition_is_none(local_name: str) -> None:
    assert TopicName.parse(local_name).partition_index == -1


def test_paths_hold_the_url_form_encoded_local_name() -> None:
    name = TopicName.parse("persistent://public/default/a b/".rstrip("/") + "*~ü+%")

    assert name.managed_ledger_name == "public/default/persistent/a+b*%7E%C3%BC%2B%25"
    assert TopicName.from_managed_ledger_name(name.managed_ledger_name) == name


@pytest.mark.parametrize("name", ["a", "a/b/c", "a/b/c/d/e"])
def test_other_managed_ledgers_are_no_topics(name: str) -> None:
    with pytest.raises(InvalidTopicNameError):
        TopicName.from_managed_ledger_name(name)


def test_url_form_is_that_of_java() -> None:
    assert url_form_encode("azAZ09.-*_") == "azAZ09.-*_"
    assert url_form_encode(" /:~!'()@€") == "+%2F%3A%7E%21%27%28%29%40%E2%82%AC"
    assert url_form_decode("+%2F%7E") == " /~"


def test_the_schema_of_a_partition_is_that_of_its_topic() -> None:
    assert TopicName.parse("t-partition-1").schema_id == "public/default/t"


@pytest.mark.parametrize(
    ("text", "is_system"),
    [
        ("__change_events", True),
        ("__change_events-partition-2", True),
        ("acme/ns/__transaction_buffer_snapshot_segments", True),
        ("t-sub__transaction_pending_ack", True),
        ("pulsar/system/transaction_coordinator_assign-partition-3", True),
        ("pulsar/system/__transaction_log_0", True),
        ("non-persistent://pulsar/system/resource-usage", True),
        ("pulsar/system/mine", False),
        ("__mine", False),
        ("transaction_coordinator_assign", False),
    ],
)
def test_system_topics_are_told_apart(text: str, *, is_system: bool) -> None:
    assert TopicName.parse(text).is_system is is_system


def test_names_are_values() -> None:
    one, other = TopicName.parse("t"), TopicName.parse("persistent://public/default/t")

    assert one == other
    assert len({one, other}) == 1
    assert one != "persistent://public/default/t"
    assert one < TopicName.parse("u")
    assert NamespaceName.parse("a/b") < NamespaceName.parse("a/c")
    assert NamespaceName.parse("a/b") != "a/b"
    assert repr(one) == "TopicName('persistent://public/default/t')"
    assert repr(one.namespace_name) == "NamespaceName('public/default')"


def test_a_namespace_names_its_topics() -> None:
    namespace = NamespaceName.parse("acme/ns")

    assert str(namespace.topic("t")) == "persistent://acme/ns/t"
    assert str(namespace.topic("t", domain="non-persistent")) == "non-persistent://acme/ns/t"


@pytest.mark.parametrize("text", ["", "public", "a/b/c", "/b", "a/", "a/b c", "a/b\n"])
def test_bad_namespaces_are_refused(text: str) -> None:
    with pytest.raises(InvalidNamespaceNameError):
        NamespaceName.parse(text)
