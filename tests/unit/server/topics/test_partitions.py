from __future__ import annotations

import pytest

from pulsar_py.common.errors import NotAllowedError, TopicExistsError, TopicNotFoundError
from pulsar_py.managed_ledger.log.ledger_format import LedgerList, encode_ledger_list
from pulsar_py.metadata import paths
from pulsar_py.server.topics.partitions import Partitions
from tests.unit.server.topics.rig import NAMESPACE, Rig, name_of


def partitions_of(rig: Rig) -> Partitions:
    return Partitions(rig.metadata, rig.broker.resources, rig.broker.managed_ledgers.deletions)


async def test_counts_can_be_put_once_and_grown(rig: Rig) -> None:
    partitions, name = partitions_of(rig), name_of("p")
    assert await partitions.count(name) == 0
    await partitions.put_count(name, 2, {"a": "b"})
    with pytest.raises(TopicExistsError):
        await partitions.put_count(name, 2)
    await partitions.grow(name, 5)
    assert await partitions.count(name) == 5
    with pytest.raises(NotAllowedError):
        await partitions.grow(name, 4)
    with pytest.raises(TopicNotFoundError):
        await partitions.grow(name_of("q"), 4)
    await partitions.forget(name)
    assert await partitions.count(name) == 0


async def test_stored_topics_are_listed_by_their_names(rig: Rig) -> None:
    partitions = partitions_of(rig)
    await partitions.create_stored([name_of("b c"), name_of("a"), name_of("a")])
    assert await partitions.stored_topics(NAMESPACE) == [name_of("a"), name_of("b c")]
    assert await partitions.is_stored(name_of("a"))
    assert not await partitions.is_stored(name_of("a", domain="non-persistent"))


async def test_a_topic_whose_deletion_was_cut_short_is_made_anew(rig: Rig) -> None:
    partitions, name = partitions_of(rig), name_of("a")
    path = paths.managed_ledger(name.managed_ledger_name)
    await rig.metadata.put(path, encode_ledger_list(LedgerList(is_being_deleted=True)))
    await rig.metadata.put(f"{path}/sub", b"what is left of it")
    assert not await partitions.is_stored(name)
    await partitions.create_stored([name])
    assert await partitions.is_stored(name)
    assert (await rig.topic("a", create=False)).subscriptions == {}


async def test_a_topic_whose_deletion_was_cut_short_can_be_created_by_using_it(rig: Rig) -> None:
    path = paths.managed_ledger(name_of("a").managed_ledger_name)
    await rig.metadata.put(path, encode_ledger_list(LedgerList(is_being_deleted=True)))
    assert (await rig.topic("a")).name == name_of("a")


async def test_a_topic_whose_deletion_was_cut_short_is_in_no_list(rig: Rig) -> None:
    await rig.topic("whole")
    await rig.topic("a")
    path = paths.managed_ledger(name_of("a").managed_ledger_name)
    await rig.broker.close()
    await rig.metadata.put(path, encode_ledger_list(LedgerList(is_being_deleted=True)))
    await rig.start_broker()
    topics = rig.broker.topics
    assert await topics.list_topics(NAMESPACE) == [str(name_of("whole"))]
    await rig.topic("a")
    assert await topics.list_topics(NAMESPACE) == [str(name_of("a")), str(name_of("whole"))]


async def test_a_topic_made_without_loading_can_be_loaded(rig: Rig) -> None:
    await partitions_of(rig).create_stored([name_of("a")])
    topic = await rig.topic("a", create=False)
    assert topic.name == name_of("a")


async def test_subscriptions_are_known_without_loading(rig: Rig) -> None:
    topic = await rig.persistent()
    for name in ("a/b", "c"):
        await topic.create_subscription(name, starts_at_earliest=True)
    await topic.ledger.open_cursor("pulsar.dedup")
    await rig.clock.sleep(2)
    names = await partitions_of(rig).stored_subscriptions(topic.name, "pulsar.repl")
    assert sorted(names) == ["a/b", "c"]
