"""Settings of dispatch: each test sets one, and sees what it changes in what consumers get."""

from __future__ import annotations

import asyncio
from math import ceil

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.dispatcher import BATCHES_TOGETHER
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.testing.clock import VirtualClock
from tests.dispatch_parts import FakeConnection, Topic, ack, message, received, settle
from tests.unit.settings.parts import dispatching

EXCLUSIVE = SubscriptionType.EXCLUSIVE
FAILOVER = SubscriptionType.FAILOVER
SHARED = SubscriptionType.SHARED
KEY_SHARED = SubscriptionType.KEY_SHARED
OF_C1, OF_C2 = "k0", "k1"  # Keys of consumers named c1 and c2.


@pytest.mark.setting("dispatcherMaxReadBatchSize", "dispatcherMaxReadSizeBytes")
@pytest.mark.parametrize(
    ("name", "kind", "writes"),
    [
        ("dispatcherMaxReadBatchSize", EXCLUSIVE, 9 / BATCHES_TOGETHER),
        ("dispatcherMaxReadBatchSize", SHARED, 9),
        ("dispatcherMaxReadSizeBytes", EXCLUSIVE, 9),
    ],
)
async def test_how_much_one_read_takes(
    virtual_clock: VirtualClock, name: str, kind: SubscriptionType, writes: float
) -> None:
    async with dispatching(virtual_clock, **{name: 1}) as topic:
        await topic.publish_many(9)
        connection = FakeConnection()
        await topic.consume(kind=kind, permits=10, connection=connection)
        await settle()
        assert connection.writes_count == ceil(writes)


class FailingReads:
    """Lets the first reads of a subscription fail, and keeps how much each asked for."""

    def __init__(self, cursor: object, failures_count: int, patch: pytest.MonkeyPatch) -> None:
        self.limits: list[int] = []
        self._failures_count = failures_count
        self._read = cursor.read  # type: ignore[attr-defined]
        patch.setattr(cursor, "read", self)

    async def __call__(self, limit: int, *rest: object) -> list[Entry]:
        self.limits.append(limit)
        if len(self.limits) <= self._failures_count:
            raise CorruptDataError("bad")
        entries: list[Entry] = await self._read(limit, *rest)
        return entries


@pytest.mark.setting("dispatcherMinReadBatchSize", "dispatcherReadFailureBackoffInitialTimeInMs")
async def test_reads_after_a_failed_one(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "dispatcherMinReadBatchSize": 3,
        "dispatcherReadFailureBackoffInitialTimeInMs": 1000,
    }
    async with dispatching(virtual_clock, is_cold=True, **settings) as topic:
        await topic.publish_many(10)
        reads = FailingReads((await topic.subscription()).cursor, 1, monkeypatch)
        consumer = await topic.consume(permits=100)
        await asyncio.sleep(0.9)
        assert reads.limits == [100]
        await asyncio.sleep(0.2)
        assert reads.limits[1] == 3
        assert received(consumer) == list(range(10))


@pytest.mark.setting("dispatcherReadFailureBackoffMaxTimeInMs")
async def test_the_longest_pause_after_failed_reads(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"dispatcherReadFailureBackoffMaxTimeInMs": 15_000}
    async with dispatching(virtual_clock, is_cold=True, **settings) as topic:
        await topic.publish_many(1)
        reads = FailingReads((await topic.subscription()).cursor, 3, monkeypatch)
        await topic.consume(permits=100)
        await asyncio.sleep(46)
        assert len(reads.limits) == 4


@pytest.mark.setting("dispatcherMaxRoundRobinBatchSize")
async def test_how_much_a_consumer_gets_at_a_turn(virtual_clock: VirtualClock) -> None:
    async with dispatching(virtual_clock, dispatcherMaxRoundRobinBatchSize=2) as topic:
        connection = FakeConnection(is_writable=False)
        first = await topic.consume(1, permits=10, connection=connection)
        second = await topic.consume(2, permits=10, connection=connection)
        await topic.publish_many(4)
        connection.become_writable()
        await settle()
        assert (received(first), received(second)) == ([0, 1], [2, 3])


@pytest.mark.setting("activeConsumerFailoverDelayTimeMillis")
async def test_the_pause_before_a_new_active_consumer(virtual_clock: VirtualClock) -> None:
    async with dispatching(virtual_clock, activeConsumerFailoverDelayTimeMillis=5000) as topic:
        await topic.publish_many(1)
        consumer = await topic.consume(kind=FAILOVER, permits=10)
        await asyncio.sleep(4.9)
        assert received(consumer) == []
        await asyncio.sleep(0.2)
        assert received(consumer) == [0]


@pytest.mark.setting("activeConsumerFailoverConsistentHashing")
async def test_a_ring_picks_the_active_consumer(virtual_clock: VirtualClock) -> None:
    actives = []
    for uses_ring in (False, True):
        settings = {"activeConsumerFailoverConsistentHashing": uses_ring}
        async with dispatching(virtual_clock, **settings) as topic:
            for number in range(4):
                last = await topic.consume(number, FAILOVER, consumer_name=f"c{number}")
            active = last.subscription.dispatcher.active_consumer
            actives.append(active.name)
    assert actives == ["c0", "c1"]


async def join(topic: Topic, number: int, *, permits: int = 100) -> Consumer:
    return await topic.consume(number, KEY_SHARED, permits=permits, consumer_name=f"c{number}")


@pytest.mark.setting("subscriptionKeySharedUseConsistentHashing")
async def test_keys_are_spread_over_halves_of_ranges(virtual_clock: VirtualClock) -> None:
    settings = {"subscriptionKeySharedUseConsistentHashing": False}
    async with dispatching(virtual_clock, **settings) as topic:
        consumers = [await join(topic, number) for number in (1, 2)]
        ranges = [each.stats().key_hash_ranges for each in consumers]
        assert ranges == [((32_769, 65_536),), ((0, 32_768),)]


@pytest.mark.setting("subscriptionKeySharedConsistentHashingReplicaPoints")
async def test_points_of_a_consumer_on_the_ring(virtual_clock: VirtualClock) -> None:
    settings = {"subscriptionKeySharedConsistentHashingReplicaPoints": 1}
    async with dispatching(virtual_clock, **settings) as topic:
        consumers = [await join(topic, number) for number in (1, 2)]
        ranges = [each.stats().key_hash_ranges for each in consumers]
        assert sum(map(len, ranges)) <= 3


@pytest.mark.setting(
    "keySharedLookAheadMsgInReplayThresholdPerConsumer",
    "keySharedLookAheadMsgInReplayThresholdPerSubscription",
)
@pytest.mark.parametrize(
    ("name", "threshold"),
    [
        ("keySharedLookAheadMsgInReplayThresholdPerConsumer", 1),
        ("keySharedLookAheadMsgInReplayThresholdPerSubscription", 2),
    ],
)
async def test_how_far_reading_goes_past_messages_held_back(
    virtual_clock: VirtualClock, name: str, threshold: int
) -> None:
    settings = {name: threshold, "dispatcherMaxReadBatchSize": 1}
    async with dispatching(virtual_clock, **settings) as topic:
        await join(topic, 1, permits=0)
        second = await join(topic, 2)
        await topic.publish(message(partition_key=OF_C1), message(partition_key=OF_C2))
        await topic.publish(message(partition_key=OF_C1), message(partition_key=OF_C2))
        await asyncio.sleep(1)
        assert received(second) == [1]


@pytest.mark.setting("keySharedUnblockingIntervalMs")
async def test_the_end_of_blocked_keys_is_gathered(virtual_clock: VirtualClock) -> None:
    async with dispatching(virtual_clock, keySharedUnblockingIntervalMs=5000) as topic:
        first = await join(topic, 1)
        await topic.publish(message(partition_key=OF_C2))
        await settle()
        second = await join(topic, 2)
        await topic.publish(message(partition_key=OF_C2))
        await asyncio.sleep(1)
        ack(first, 0)
        await asyncio.sleep(4.9)
        assert received(second) == []
        await asyncio.sleep(0.2)
        assert received(second) == [1]


async def delayed(topic: Topic, *delays_millis: int) -> Consumer:
    now = topic.clock.wall_time_millis()
    await topic.publish(*[message(deliver_at_time=now + each) for each in delays_millis])
    consumer = await topic.consume(permits=100)
    await settle()
    return consumer


@pytest.mark.setting("delayedDeliveryTickTimeMillis")
async def test_how_exact_delays_are(virtual_clock: VirtualClock) -> None:
    async with dispatching(virtual_clock, delayedDeliveryTickTimeMillis=8000) as topic:
        # One millisecond behind the start of a group, which is 4096 ms long.
        delay_millis = 4097 - topic.clock.wall_time_millis() % 4096
        consumer = await delayed(topic, delay_millis)
        await asyncio.sleep((delay_millis + 4094) / 1000)
        assert received(consumer) == []
        await asyncio.sleep(0.001)
        assert received(consumer) == [0]


@pytest.mark.setting("delayedDeliveryFixedDelayDetectionLookahead")
async def test_reading_pauses_when_all_delays_are_alike(virtual_clock: VirtualClock) -> None:
    settings = {
        "delayedDeliveryFixedDelayDetectionLookahead": 2,
        "dispatcherMaxReadBatchSize": 1,
    }
    async with dispatching(virtual_clock, **settings) as topic:
        consumer = await delayed(topic, 60_000, 60_000, 60_000, 60_000)
        assert consumer.subscription.stats().delayed_entries == 2


@pytest.mark.setting("delayedDeliveryEnabled")
async def test_delays_can_be_switched_off(virtual_clock: VirtualClock) -> None:
    async with dispatching(virtual_clock, delayedDeliveryEnabled=False) as topic:
        assert received(await delayed(topic, 60_000)) == [0]
