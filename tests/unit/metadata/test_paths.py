"""paths: where each kind of object lives."""

from __future__ import annotations

import pytest

from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata import paths

NAMESPACE = NamespaceName("t", "n")
TOPIC = TopicName.parse("persistent://t/n/a b-partition-3")


def test_every_kind_has_pulsars_path() -> None:
    assert paths.cluster("c") == "/admin/clusters/c"
    assert paths.tenant("t") == "/admin/policies/t"
    assert paths.namespace_policies(NAMESPACE) == "/admin/policies/t/n"
    assert paths.local_policies(NAMESPACE) == "/admin/local-policies/t/n"
    assert paths.partitioned_topic(TOPIC.base) == "/admin/partitioned-topics/t/n/persistent/a+b"
    assert paths.partitioned_topics(NAMESPACE, "non-persistent") == (
        "/admin/partitioned-topics/t/n/non-persistent"
    )
    assert paths.managed_ledgers(NAMESPACE) == "/managed-ledgers/t/n/persistent"
    assert paths.managed_ledger(TOPIC.managed_ledger_name) == (
        "/managed-ledgers/t/n/persistent/a+b-partition-3"
    )
    assert paths.managed_cursor("t/n/persistent/x", "s/1 2") == (
        "/managed-ledgers/t/n/persistent/x/s%2F1+2"
    )
    assert paths.schema(TOPIC) == "/schemas/t/n/a+b"
    assert paths.bundle_owners(NAMESPACE) == "/namespace/t/n"
    assert paths.bundle_owner(NAMESPACE, "0x00000000_0x40000000") == (
        "/namespace/t/n/0x00000000_0x40000000"
    )
    assert paths.broker("h:8080") == "/loadbalance/brokers/h:8080"
    assert paths.resource_group("g") == "/admin/resourcegroups/g"
    assert paths.failure_domains("c") == "/admin/clusters/c/failureDomain"
    assert paths.isolation_policies("c") == "/admin/clusters/c/namespaceIsolationPolicies"


def test_a_topics_policies_are_those_of_the_whole_topic() -> None:
    assert paths.topic_policies(TOPIC) == "/admin/topic-policies/local/t/n/persistent/a+b"
    assert paths.topic_policies(TOPIC, is_global=True) == (
        "/admin/topic-policies/global/t/n/persistent/a+b"
    )


def test_ancestors_lead_up_to_the_root() -> None:
    assert list(paths.ancestors("/a/b/c")) == ["/a/b/c", "/a/b", "/a", "/"]
    assert list(paths.ancestors("/")) == ["/"]


def test_the_parent_of_the_root_is_itself() -> None:
    assert paths.parent("/") == "/"
    assert paths.parent("/a") == "/"
    assert paths.parent("/a/b") == "/a"


@pytest.mark.parametrize(
    "path",
    ["", "a", "a/b", "/a/", "//", "/a//b", "/.", "/a/../b", "/a\x01", "/\ud800", "/\U0001f600"],
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        paths.check(path)


def test_a_path_that_no_packet_can_hold_is_not_looked_through_and_cut_in_the_error() -> None:
    paths.check("/" + (paths.MAX_CHARACTERS - 1) * "a")
    with pytest.raises(ValueError, match="is not a path") as refusal:
        paths.check("/" + paths.MAX_CHARACTERS * "a")
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("path", ["/", "/a", "/a/b c/%2F", "/...", "/.a", "/ü"])
def test_paths_pass(path: str) -> None:
    paths.check(path)


def test_a_sequential_prefix_may_end_with_a_slash() -> None:
    for prefix in ("/", "/a/", "/a/ID-"):
        paths.check_sequential(prefix)
    for prefix in ("", "//", "/a//x"):
        with pytest.raises(ValueError, match="is not a path"):
            paths.check_sequential(prefix)


def test_the_number_is_what_ends_a_sequential_path() -> None:
    assert paths.sequence_number("/ledgers/idgen/ID-0000000012") == 12
    assert paths.sequence_number("/s/0000000000") == 0
    assert paths.sequence_number("/s/x-12345678901") == 12345678901
