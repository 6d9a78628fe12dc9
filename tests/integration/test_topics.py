"""Topics of a whole broker in real time, on both metadata stores, over restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode
from pulsar_py.server.config import BrokerConfig
from tests.unit.server.topics.rig import NAMESPACE, Rig, name_of, send, subscribe_request

CONFIG = BrokerConfig(brokerDeduplicationEnabled=True)


@pytest.fixture(params=["memory", "sqlite"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    clock = SystemClock()
    metadata: MetadataStore = (
        await SqliteMetadataStore.open(tmp_path / "metadata.sqlite", clock)
        if request.param == "sqlite"
        else MemoryMetadataStore(clock)
    )
    async with Rig(clock, config=CONFIG, metadata=metadata) as started:
        yield started


async def test_a_topic_with_all_it_has_comes_back_after_a_restart(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    consumer = await topic.subscribe(subscribe_request(cnx, starts_at_earliest=True))
    grant = await rig.grant(topic, cnx, access_mode=ProducerAccessMode.Exclusive)
    for n in range(5):
        send(grant.producer, n)
    await grant.producer.close()
    consumer.close()
    topic.subscriptions["sub"].cursor.acknowledge(  # type: ignore[attr-defined]
        [topic.last_message_position()]
    )

    await rig.restart()

    again = await rig.persistent()
    assert again.subscriptions["sub"].stats().backlog_entries == 4
    grant = await rig.grant(again, rig.cnx(), access_mode=ProducerAccessMode.Exclusive)
    assert grant.topic_epoch == 1
    assert grant.last_sequence_id == 4


async def test_many_topics_are_created_at_once(rig: Rig) -> None:
    names = [f"t{n}" for n in range(200)]
    topics = await asyncio.gather(*(rig.topic(name) for name in names))
    assert len({id(topic) for topic in topics}) == 200
    assert len(await rig.broker.topics.list_topics(NAMESPACE)) == 200
    await rig.broker.namespaces.unload_namespace(NAMESPACE)
    assert rig.broker.topics.topics == {}


async def test_partitions_grow_and_go(rig: Rig) -> None:
    topics = rig.broker.topics
    await topics.partitioned.create(name_of("p"), 20)
    await (await rig.topic("p-partition-3")).create_subscription("s", starts_at_earliest=False)
    await topics.partitioned.grow(name_of("p"), 25)
    assert list((await rig.topic("p-partition-24")).subscriptions) == ["s"]
    assert len(await topics.list_topics(NAMESPACE)) == 25
    await topics.partitioned.delete(name_of("p"))
    assert await topics.list_topics(NAMESPACE) == []


async def test_policies_survive_and_apply(rig: Rig) -> None:
    topic = await rig.persistent()
    await rig.broker.resources.topic_policies.create(topic.name, TopicPolicies(max_producers=7))
    await rig.restart()
    assert (await rig.persistent()).settings.max_producers == 7


async def test_names_of_producers_differ_after_a_restart(rig: Rig) -> None:
    first = await rig.grant(await rig.persistent(), rig.cnx(), None)
    await rig.restart()
    second = await rig.grant(await rig.persistent(), rig.cnx(), None)
    assert first.producer_name != second.producer_name
