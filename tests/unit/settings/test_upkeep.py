"""Settings of what a broker does from time to time: intervals, ages and quotas, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Literal

import pytest

from pulsar_py.common.errors import PulsarError
from pulsar_py.common.policies import BacklogQuotaAction, InactiveTopicDeleteMode
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.unit.server.topics.rig import FakeCnx, Rig, entry, name_of, send, subscribe_request
from tests.unit.settings.parts import broker


async def with_backlog(rig: Rig, cnx: FakeCnx | None = None, count: int = 1) -> PersistentTopic:
    """A topic with a subscription that has so many messages to get, and a producer, id 7."""
    topic = await rig.persistent()
    await topic.create_subscription("sub", starts_at_earliest=True)
    producer = await rig.producer(topic, cnx or rig.cnx(), producer_id=7)
    now = rig.clock.wall_time_millis()
    for number in range(count):
        send(producer, number, entry(number, publish_time=now))
    await rig.clock.sleep(0.01)
    return topic


def backlog(topic: PersistentTopic) -> int:
    return topic.subscriptions["sub"].stats().backlog_entries


@pytest.mark.setting("ttlDurationDefaultInSeconds", "messageExpiryCheckIntervalInMinutes")
async def test_messages_expire(virtual_clock: VirtualClock) -> None:
    settings = {"ttlDurationDefaultInSeconds": 60, "messageExpiryCheckIntervalInMinutes": 1}
    async with broker(virtual_clock, **settings) as rig:
        topic = await with_backlog(rig)
        await rig.clock.sleep(59)
        assert backlog(topic) == 1
        await rig.clock.sleep(120)
        assert backlog(topic) == 0


@pytest.mark.setting("additionalSystemCursorNames")
async def test_subscriptions_whose_messages_stay(virtual_clock: VirtualClock) -> None:
    settings = {
        "ttlDurationDefaultInSeconds": 60,
        "messageExpiryCheckIntervalInMinutes": 1,
        "additionalSystemCursorNames": frozenset({"sub"}),
    }
    async with broker(virtual_clock, **settings) as rig:
        topic = await with_backlog(rig)
        await topic.create_subscription("other", starts_at_earliest=True)
        await rig.clock.sleep(180)
        assert backlog(topic) == 1
        assert topic.subscriptions["other"].stats().backlog_entries == 0


@pytest.mark.setting("backlogQuotaCheckIntervalInSeconds", "backlogQuotaDefaultLimitBytes")
async def test_a_quota_in_bytes(virtual_clock: VirtualClock) -> None:
    settings = {"backlogQuotaCheckIntervalInSeconds": 10, "backlogQuotaDefaultLimitBytes": 1}
    async with broker(virtual_clock, **settings) as rig:
        cnx = rig.cnx()
        await with_backlog(rig, cnx)
        await rig.clock.sleep(9)
        assert cnx.closed_producers == []
        await rig.clock.sleep(2)
        assert cnx.closed_producers == [7]


@pytest.mark.setting("backlogQuotaDefaultRetentionPolicy")
async def test_what_happens_beyond_a_quota(virtual_clock: VirtualClock) -> None:
    settings = {
        "backlogQuotaDefaultLimitBytes": 1,
        "backlogQuotaDefaultRetentionPolicy": BacklogQuotaAction.CONSUMER_BACKLOG_EVICTION,
    }
    async with broker(virtual_clock, **settings) as rig:
        topic = await with_backlog(rig, count=10)
        await rig.clock.sleep(61)
        assert backlog(topic) < 10


@pytest.mark.setting("backlogQuotaCheckEnabled")
async def test_quotas_can_be_switched_off(virtual_clock: VirtualClock) -> None:
    settings = {"backlogQuotaDefaultLimitBytes": 1, "backlogQuotaCheckEnabled": False}
    async with broker(virtual_clock, **settings) as rig:
        cnx = rig.cnx()
        await with_backlog(rig, cnx)
        await rig.clock.sleep(61)
        assert cnx.closed_producers == []


@pytest.mark.setting("backlogQuotaDefaultLimitSecond", "preciseTimeBasedBacklogQuotaCheck")
async def test_a_quota_in_seconds_by_the_messages_own_time(virtual_clock: VirtualClock) -> None:
    settings = {"backlogQuotaDefaultLimitSecond": 50, "preciseTimeBasedBacklogQuotaCheck": True}
    async with broker(virtual_clock, **settings) as rig:
        cnx = rig.cnx()
        await with_backlog(rig, cnx)
        await rig.clock.sleep(61)
        assert cnx.closed_producers == [7]


@pytest.mark.setting("retentionCheckIntervalInSeconds")
async def test_how_often_it_is_looked_for_what_can_go(virtual_clock: VirtualClock) -> None:
    settings = {
        "retentionCheckIntervalInSeconds": 10,
        "managedLedgerInactiveLedgerRolloverTimeSeconds": 5,
    }
    async with broker(virtual_clock, **settings) as rig:
        topic = await with_backlog(rig)
        before = topic.ledger.ledgers_info()[-1].ledger_id
        await rig.clock.sleep(31)
        assert topic.ledger.ledgers_info()[-1].ledger_id != before


@pytest.mark.setting(
    "subscriptionExpirationTimeMinutes", "subscriptionExpiryCheckIntervalInMinutes"
)
async def test_subscriptions_expire(virtual_clock: VirtualClock) -> None:
    settings = {
        "subscriptionExpirationTimeMinutes": 2,
        "subscriptionExpiryCheckIntervalInMinutes": 1,
    }
    async with broker(virtual_clock, **settings) as rig:
        topic = await with_backlog(rig)
        await rig.clock.sleep(119)
        assert "sub" in topic.subscriptions
        await rig.clock.sleep(62)
        assert "sub" not in topic.subscriptions


SOON: Mapping[str, object] = {"brokerDeleteInactiveTopicsFrequencySeconds": 10}


async def is_deleted_within(
    clock: VirtualClock,
    seconds: float,
    settings: Mapping[str, object],
    *,
    has_subscription: bool = False,
) -> bool:
    """Whether a topic nobody uses goes away in that time."""
    async with broker(clock, **settings) as rig:
        topic = await rig.persistent()
        if has_subscription:
            await topic.create_subscription("sub", starts_at_earliest=True)
        await clock.sleep(seconds)
        return not await rig.broker.topics.exists(topic.name)


@pytest.mark.setting("brokerDeleteInactiveTopicsFrequencySeconds")
async def test_how_often_it_is_looked_for_inactive_topics(virtual_clock: VirtualClock) -> None:
    assert await is_deleted_within(virtual_clock, 25, SOON)


@pytest.mark.setting("brokerDeleteInactiveTopicsEnabled")
async def test_inactive_topics_may_stay(virtual_clock: VirtualClock) -> None:
    settings = {**SOON, "brokerDeleteInactiveTopicsEnabled": False}
    assert not await is_deleted_within(virtual_clock, 25, settings)


@pytest.mark.setting("brokerDeleteInactiveTopicsMaxInactiveDurationSeconds")
async def test_how_long_topics_have_to_be_inactive(virtual_clock: VirtualClock) -> None:
    settings = {**SOON, "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": 100}
    assert not await is_deleted_within(virtual_clock, 99, settings)
    assert await is_deleted_within(virtual_clock, 111, settings)


@pytest.mark.setting("brokerDeleteInactiveTopicsMode")
async def test_which_topics_are_inactive(virtual_clock: VirtualClock) -> None:
    mode = InactiveTopicDeleteMode.DELETE_WHEN_SUBSCRIPTIONS_CAUGHT_UP
    settings = {**SOON, "brokerDeleteInactiveTopicsMode": mode}
    assert not await is_deleted_within(virtual_clock, 25, SOON, has_subscription=True)
    assert await is_deleted_within(virtual_clock, 25, settings, has_subscription=True)


@pytest.mark.setting("brokerDeleteInactivePartitionedTopicMetadataEnabled")
async def test_a_partitioned_topic_goes_with_its_partitions(virtual_clock: VirtualClock) -> None:
    settings = {**SOON, "brokerDeleteInactivePartitionedTopicMetadataEnabled": True}
    async with broker(virtual_clock, **settings) as rig:
        await rig.broker.topics.partitioned.create(name_of("p"), 1)
        await rig.topic("p-partition-0")
        await rig.clock.sleep(25)
        assert await rig.broker.topics.partitioned.count(name_of("p")) == 0


def snapshot(topic: PersistentTopic) -> Mapping[str, int]:
    """What of deduplication is stored."""
    assert topic.deduplication is not None
    return topic.deduplication.cursor.properties


@pytest.mark.setting(
    "brokerDeduplicationEnabled",
    "brokerDeduplicationSnapshotIntervalSeconds",
    "brokerDeduplicationSnapshotFrequencyInSeconds",
)
async def test_when_deduplication_is_stored(virtual_clock: VirtualClock) -> None:
    settings = {
        "brokerDeduplicationEnabled": True,
        "brokerDeduplicationSnapshotIntervalSeconds": 10,
        "brokerDeduplicationSnapshotFrequencyInSeconds": 3,
    }
    async with broker(virtual_clock, **settings) as rig:
        topic = await with_backlog(rig)
        await rig.clock.sleep(9)
        assert snapshot(topic) == {}
        await rig.clock.sleep(4)
        assert snapshot(topic) == {"p": 0}


@pytest.mark.setting("brokerDeduplicationEntriesInterval")
async def test_after_how_many_entries_deduplication_is_stored(virtual_clock: VirtualClock) -> None:
    settings = {"brokerDeduplicationEnabled": True, "brokerDeduplicationEntriesInterval": 3}
    async with broker(virtual_clock, **settings) as rig:
        assert snapshot(await with_backlog(rig, count=3)) == {"p": 2}


@pytest.mark.setting("brokerDeduplicationMaxNumberOfProducers")
async def test_how_many_producers_are_remembered(virtual_clock: VirtualClock) -> None:
    settings = {"brokerDeduplicationEnabled": True, "brokerDeduplicationMaxNumberOfProducers": 1}
    async with broker(virtual_clock, **settings) as rig:
        topic = await with_backlog(rig)
        other = await rig.producer(topic, rig.cnx(), "other")
        send(other, 0, entry(0, producer_name="other"))
        await rig.clock.sleep(0.01)
        assert topic.deduplication is not None
        topic.deduplication.take_snapshot()
        assert len(snapshot(topic)) == 1


@pytest.mark.setting("brokerDeduplicationProducerInactivityTimeoutMinutes")
async def test_how_long_producers_are_remembered(virtual_clock: VirtualClock) -> None:
    settings = {
        "brokerDeduplicationEnabled": True,
        "brokerDeduplicationProducerInactivityTimeoutMinutes": 3,
    }
    async with broker(virtual_clock, **settings) as rig:
        topic, cnx = await with_backlog(rig), rig.cnx()
        await next(iter(topic.producers.values())).close()
        await rig.clock.sleep(119)
        grant = await rig.grant(topic, cnx)
        assert grant.last_sequence_id == 0
        await grant.producer.close()
        await rig.clock.sleep(361)
        assert (await rig.grant(topic, cnx)).last_sequence_id == -1


@pytest.mark.setting("brokerShutdownTimeoutMs")
async def test_how_long_a_stop_may_take(
    virtual_clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = SimulatedLedgerStore()
    async with broker(virtual_clock, ledgers=store, brokerShutdownTimeoutMs=5000) as rig:
        topic = await rig.persistent()
        producer = await rig.producer(topic, rig.cnx())
        store.is_holding = True
        send(producer, 0)
        virtual_clock.call_later(20, store.release)
        with caplog.at_level(logging.WARNING):
            await rig.broker.close()
        assert "topics did not close in time" in caplog.text


@pytest.mark.setting("topicLoadTimeoutSeconds")
async def test_how_long_a_load_may_take(virtual_clock: VirtualClock) -> None:
    store = SimulatedLedgerStore()
    async with broker(virtual_clock, ledgers=store, topicLoadTimeoutSeconds=5) as rig:
        store.creations_may_proceed = gate = asyncio.Event()
        virtual_clock.call_later(20, gate.set)
        with pytest.raises(PulsarError, match="was not loaded within 5 s"):
            await rig.topic("t")
        await rig.clock.sleep(20)


class CountingGate(asyncio.Event):
    """Knows how many have come to it."""

    waiting_count = 0

    async def wait(self) -> Literal[True]:
        self.waiting_count += 1
        return await super().wait()


@pytest.mark.setting("maxConcurrentTopicLoadRequest")
async def test_how_many_topics_are_loaded_at_a_time(virtual_clock: VirtualClock) -> None:
    store = SimulatedLedgerStore()
    async with broker(virtual_clock, ledgers=store, maxConcurrentTopicLoadRequest=1) as rig:
        store.creations_may_proceed = gate = CountingGate()
        virtual_clock.call_later(10, gate.set)
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b"):
                group.create_task(rig.topic(name))
            await rig.clock.sleep(1)
            assert gate.waiting_count == 1


@pytest.mark.setting("maxUnackedMessagesPerBroker")
async def test_unacknowledged_messages_of_the_whole_broker(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, maxUnackedMessagesPerBroker=4) as rig:
        assert await messages_sent(rig, "a", 10) == 4


@pytest.mark.setting("maxUnackedMessagesPerSubscriptionOnBrokerBlocked")
async def test_which_subscriptions_are_paused_then(virtual_clock: VirtualClock) -> None:
    settings = {
        "maxUnackedMessagesPerBroker": 10,
        "maxUnackedMessagesPerSubscriptionOnBrokerBlocked": 0.5,
    }
    async with broker(virtual_clock, **settings) as rig:
        assert await messages_sent(rig, "a", 4) == 4
        assert await messages_sent(rig, "b", 10) == 6
        assert await messages_sent(rig, "a", 2, consumer_id=2) == 1


async def messages_sent(rig: Rig, name: str, count: int, *, consumer_id: int = 1) -> int:
    """How many of so many messages published now a new Shared consumer gets."""
    topic, cnx = await rig.persistent(name), rig.cnx()
    request = subscribe_request(cnx, "s", SubscriptionType.SHARED, consumer_id=consumer_id)
    (await topic.subscribe(request)).flow(100)
    producer = await rig.producer(topic, cnx, f"{name}{consumer_id}")
    for number in range(count):
        send(producer, number)
        await rig.clock.sleep(0.01)
    return sum(line.startswith("message") for line in cnx.take())
