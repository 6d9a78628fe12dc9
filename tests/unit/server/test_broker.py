from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.documents import DynamicConfiguration
from pulsar_py.server.config import BrokerConfig
from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.unit.server.topics.rig import Rig, name_of, send, subscribe_request


def in_virtual_time(test):
    """Run a coroutine function with a clock of a virtual loop."""

    def run() -> None:
        run_virtual(test(VirtualClock()))

    run.__name__ = test.__name__
    return run


@in_virtual_time
async def test_inactive_topics_go_away_by_themselves(clock: VirtualClock) -> None:
    config = BrokerConfig(brokerDeleteInactiveTopicsFrequencySeconds=10)
    async with Rig(clock, config=config) as rig:
        await rig.topic("unused")
        used = await rig.topic("used")
        await used.subscribe(subscribe_request(rig.cnx()))
        await clock.sleep(25)
        assert list(rig.broker.topics.topics) == [str(used.name)]
        assert not await rig.broker.topics.exists(name_of("unused"))


@in_virtual_time
async def test_the_metadata_of_emptied_partitioned_topics_can_go_too(clock: VirtualClock) -> None:
    config = BrokerConfig(
        brokerDeleteInactiveTopicsFrequencySeconds=10,
        brokerDeleteInactivePartitionedTopicMetadataEnabled=True,
    )
    async with Rig(clock, config=config) as rig:
        await rig.broker.topics.partitioned.create(name_of("p"), 1)
        await rig.topic("p-partition-0")
        await clock.sleep(25)
        assert await rig.broker.topics.partitioned.count(name_of("p")) == 0


@in_virtual_time
async def test_messages_expire_by_themselves(clock: VirtualClock) -> None:
    config = BrokerConfig(ttlDurationDefaultInSeconds=60, messageExpiryCheckIntervalInMinutes=1)
    async with Rig(clock, config=config) as rig:
        topic = await rig.persistent()
        sub = await topic.create_subscription("sub", starts_at_earliest=True)
        producer = await rig.producer(topic, rig.cnx())
        send(producer, 0)
        await clock.sleep(59)
        assert sub.stats().backlog_entries == 1
        await clock.sleep(120)
        assert sub.stats().backlog_entries == 0


@in_virtual_time
async def test_a_stop_tells_the_clients_and_serves_nobody_any_more(clock: VirtualClock) -> None:
    async with Rig(clock) as rig:
        topic, cnx = await rig.persistent(), rig.cnx()
        await rig.producer(topic, cnx, producer_id=3)
        await topic.subscribe(subscribe_request(cnx, consumer_id=4))
        await rig.broker.close()
        assert cnx.closed_producers == [3]
        assert cnx.closed_consumers == [4]
        with pytest.raises(ServiceNotReadyError):
            await rig.broker.namespaces.lookup(topic.name)


@in_virtual_time
async def test_a_stop_writes_every_acknowledgement(clock: VirtualClock) -> None:
    async with Rig(clock) as rig:
        topic = await rig.persistent()
        sub = await topic.create_subscription("sub", starts_at_earliest=True)
        producer = await rig.producer(topic, rig.cnx())
        for n in range(10):
            send(producer, n)
        await producer.close()
        sub.cursor.acknowledge([topic.last_message_position()])  # type: ignore[attr-defined]
        await rig.restart()
        again = await rig.persistent()
        assert again.subscriptions["sub"].stats().backlog_entries == 9


@in_virtual_time
async def test_dynamic_settings_reach_running_topics(clock: VirtualClock) -> None:
    async with Rig(clock) as rig:
        topic = await rig.persistent()
        await rig.broker.resources.dynamic_configuration.update_or_create(
            "", lambda _: DynamicConfiguration({"allowAutoSubscriptionCreation": "false"})
        )
        await clock.sleep(0.1)
        assert not topic.settings.allows_subscription_creation
        assert not rig.broker.config.allowAutoSubscriptionCreation
        await rig.broker.resources.dynamic_configuration.delete("")
        await clock.sleep(0.1)
        assert topic.settings.allows_subscription_creation


@in_virtual_time
async def test_health(clock: VirtualClock) -> None:
    async with Rig(clock) as rig:
        await rig.broker.check_health()


def test_ten_brokers_in_one_loop_do_not_disturb_one_another() -> None:
    async def run() -> None:
        rigs = [Rig(SystemClock()) for _ in range(10)]
        await asyncio.gather(*(rig.__aenter__() for rig in rigs))
        for number, rig in enumerate(rigs):
            topic, cnx = await rig.persistent(), rig.cnx()
            producer = await rig.producer(topic, cnx)
            for n in range(number + 1):
                send(producer, n)
            await producer.close()
            assert len(cnx.take()) == number + 1
            assert topic.stats().messages_in_count == number + 1
        await asyncio.gather(*(rig.__aexit__(None, None, None) for rig in rigs))

    asyncio.run(run())
