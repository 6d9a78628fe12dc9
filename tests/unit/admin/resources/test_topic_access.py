"""Topics are found, or it is said what is missing."""

from __future__ import annotations

import pytest

from pulsar_py.admin.http_messages import HttpError
from pulsar_py.admin.resources.topic_access import (
    broker_id_of,
    for_each_partition,
    refuse_partitioned,
    require_namespace,
    require_topic,
    topic_not_found,
)
from pulsar_py.common.names import NamespaceName, TopicName
from tests.unit.admin.resources.conftest import Admin

P = "/admin/v2/persistent/public/default"


async def test_a_broker_is_called_by_its_web_address(admin: Admin) -> None:
    assert broker_id_of(admin.service).startswith("127.0.0.1:")


async def test_a_missing_namespace_is_404_in_the_words_of_the_call(admin: Admin) -> None:
    await require_namespace(admin.service, NamespaceName("public", "default"))
    with pytest.raises(HttpError, match="gone") as raised:
        await require_namespace(admin.service, NamespaceName("public", "n"), "gone")
    assert raised.value.status == 404


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere", "Topic persistent://public/default/nowhere not found"),
        ("p", "Topic persistent://public/default/p not found"),
        ("p-partition-2", "Topic partitions were not yet created"),
        ("public/nowhere/a", "Namespace not found"),
    ],
)
async def test_what_is_missing_is_named(admin: Admin, name: str, reason: str) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    with pytest.raises(HttpError) as raised:
        await require_topic(admin.service, TopicName.parse(name))
    assert (raised.value.status, raised.value.reason) == (404, reason)


async def test_a_topic_that_is_not_loaded_gets_loaded(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await admin.call("PUT", "/admin/v2/namespaces/public/default/unload")
    name = TopicName.parse("a")
    assert (await require_topic(admin.service, name)).name == name


async def test_partitions_are_visited_in_order(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 3)
    seen: list[str] = []

    async def note(name: TopicName) -> None:
        seen.append(name.local_name)

    await for_each_partition(admin.service, TopicName.parse("p"), note)
    await for_each_partition(admin.service, TopicName.parse("a"), note)
    assert seen == ["p-partition-0", "p-partition-1", "p-partition-2", "a"]


async def test_partitioned_names_can_be_refused(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 1)
    await refuse_partitioned(admin.service, TopicName.parse("a"), "Peeking at")
    with pytest.raises(HttpError, match="Peeking at a partitioned topic is not allowed"):
        await refuse_partitioned(admin.service, TopicName.parse("p"), "Peeking at")


def test_a_topic_that_is_not_there_is_404() -> None:
    assert topic_not_found(TopicName.parse("a")).status == 404
