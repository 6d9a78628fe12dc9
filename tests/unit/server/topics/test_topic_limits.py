"""Rates of topics, in virtual time: under steady excess each window of ten seconds is right."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.names import TopicName
from pulsar_py.metadata.documents import NamespacePolicies, ResourceGroup, TopicPolicies
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.limits.in_flight import MAX_HELD_BYTES
from pulsar_py.server.topics.topic import Topic
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.hostile_ledgers import HostileLedgers, LedgerFaults
from tests.unit.server.topics.rig import (
    NAMESPACE,
    FakeCnx,
    Rig,
    entry,
    name_of,
    send,
    subscribe_request,
)

SIZE = len(entry(1, b"x" * 100))
TYPES = [SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED, SubscriptionType.KEY_SHARED]


class Times:
    """The times at which a connection got commands of one kind, with what each counts."""

    def __init__(self, cnx: FakeCnx, clock: Clock, kind: str) -> None:
        self._cnx, self._clock, self._kind = cnx, clock, kind
        self._start = clock.monotonic_seconds()
        self.at: list[float] = []

    def collect(self) -> None:
        now = self._clock.monotonic_seconds() - self._start
        self.at += [now for line in self._cnx.take() if line.startswith(self._kind)]

    async def run(self, seconds: float, *, excess: Callable[[], object] = lambda: None) -> None:
        until = self._clock.monotonic_seconds() + seconds
        while self._clock.monotonic_seconds() < until:
            excess()
            await self._clock.sleep(0.01)
            self.collect()


def check_windows(times: Sequence[float], per_second: float, *, seconds: float) -> None:
    """At most a second's worth at once; then each window is right within 2 % and one entry."""
    assert sum(each < 0.1 for each in times) <= per_second * 1.1 + 1
    start = 2.0
    while start + 10 <= seconds:
        count = sum(start <= each < start + 10 for each in times)
        assert abs(count - per_second * 10) <= per_second * 0.2 + 1, (start, count)
        start += 0.7


async def set_namespace(rig: Rig, **policies: Any) -> None:
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda known: NamespacePolicies({**known.json, **policies})
    )
    await asyncio.sleep(0.1)


async def set_topic(rig: Rig, name: str, **policies: Any) -> None:
    await rig.broker.resources.topic_policies.update_or_create(
        name_of(name), lambda known: TopicPolicies({**(known.json if known else {}), **policies})
    )
    await asyncio.sleep(0.1)


def publish_rate(messages: int = -1, size: int = -1) -> dict[str, int]:
    return {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size}


def dispatch_rate(messages: int = -1, size: int = -1, period: int = 1) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": size,
        "ratePeriodInSecond": period,
    }


async def publish_times(
    rig: Rig, clock: Clock, topic: Topic, *, seconds: float = 25, name: str = "p"
) -> list[float]:
    """When receipts come for far more than a topic may take."""
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx, name)
    times = Times(cnx, clock, "receipt")
    sequence_ids = iter(range(10**6))

    def fill() -> None:
        while cnx.in_flight.entries_count < 200:
            send(producer, next(sequence_ids), entry(1, b"x" * 100))

    await times.run(seconds, excess=fill)
    await producer_gone(topic, cnx)
    return times.at


async def producer_gone(topic: Topic, cnx: FakeCnx) -> None:
    cnx.close()
    for producer in list(topic.producers.values()):
        if producer.connection is cnx:
            producer.on_connection_lost()
    assert cnx.in_flight.held_bytes == 0
    await asyncio.sleep(0.01)
    assert cnx.in_flight.entries_count == 0


async def dispatch_times(
    clock: Clock, topic: Topic, rig: Rig, kind: SubscriptionType, *, seconds: float = 25
) -> list[float]:
    cnx = rig.cnx()
    consumer = await topic.subscribe(subscribe_request(cnx, "sub", kind, starts_at_earliest=True))
    times = Times(cnx, clock, "message")
    consumer.flow(100_000)
    await times.run(seconds)
    return times.at


async def fill(rig: Rig, topic: Topic, count: int, *, messages_count: int = 1) -> None:
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx, "filler")
    fields = {} if messages_count == 1 else {"num_messages_in_batch": messages_count}
    for number in range(count):
        data = entry(number, b"x" * 100, **fields)
        send(producer, number, data, messages_count=messages_count)
        if number % 500 == 0:
            await asyncio.sleep(0.01)
    await asyncio.sleep(5)
    await producer_gone(topic, cnx)


PUBLISH_SETTINGS = {
    ("broker", "messages"): "brokerPublisherThrottlingMaxMessageRate",
    ("broker", "bytes"): "brokerPublisherThrottlingMaxByteRate",
    ("setting", "messages"): "maxPublishRatePerTopicInMessages",
    ("setting", "bytes"): "maxPublishRatePerTopicInBytes",
}


@pytest.mark.parametrize("unit", ["messages", "bytes"])
@pytest.mark.parametrize("level", ["topic", "namespace", "broker", "group", "setting"])
async def test_publishing_keeps_to_the_rate_of_each_level(
    level: str, unit: str, virtual_clock: VirtualClock
) -> None:
    messages, size = (20, -1) if unit == "messages" else (-1, 20 * SIZE)
    setting = PUBLISH_SETTINGS.get((level, unit))
    config = BrokerConfig.from_values({} if setting is None else {setting: max(messages, size)})
    async with Rig(virtual_clock, config=config) as rig:
        topic = await rig.topic("t")
        if level == "topic":
            await set_topic(rig, "t", publishRate=publish_rate(messages, size))
        elif level == "namespace":
            rates = {"standalone": publish_rate(messages, size)}
            await set_namespace(rig, publishMaxMessageRate=rates)
        elif level == "group":
            await rig.broker.resources.resource_groups.create(
                "g", ResourceGroup({"publishRateInMsgs": messages, "publishRateInBytes": size})
            )
            await set_namespace(rig, resource_group_name="g")
        times = await publish_times(rig, virtual_clock, topic)
        check_windows(times, 20, seconds=25)


@pytest.mark.parametrize("unit", ["messages", "bytes"])
async def test_publishing_to_non_persistent_topics_keeps_to_the_rate(
    rig: Rig, unit: str, virtual_clock: VirtualClock
) -> None:
    topic = await rig.topic(name_of("t", domain="non-persistent"))
    rate = publish_rate(20) if unit == "messages" else publish_rate(size=20 * SIZE)
    await set_namespace(rig, publishMaxMessageRate={"standalone": rate})
    check_windows(await publish_times(rig, virtual_clock, topic), 20, seconds=25)


async def test_the_topics_rate_counts_before_its_namespaces(
    rig: Rig, virtual_clock: VirtualClock
) -> None:
    topic = await rig.topic("t")
    await set_namespace(rig, publishMaxMessageRate={"standalone": publish_rate(5)})
    await set_topic(rig, "t", publishRate=publish_rate(40))
    check_windows(await publish_times(rig, virtual_clock, topic), 40, seconds=25)


async def test_topics_share_the_rate_of_the_broker(virtual_clock: VirtualClock) -> None:
    config = BrokerConfig.from_values({"brokerPublisherThrottlingMaxMessageRate": 20})
    async with Rig(virtual_clock, config=config) as rig:
        one, two = await rig.topic("one"), await rig.topic("two")
        first, second = await asyncio.gather(
            publish_times(rig, virtual_clock, one), publish_times(rig, virtual_clock, two)
        )
        check_windows(sorted(first + second), 20, seconds=25)
        assert abs(len(first) - len(second)) < 0.2 * len(first)


async def test_a_rate_that_changes_counts_at_once(rig: Rig, virtual_clock: VirtualClock) -> None:
    topic = await rig.topic("t")
    await set_topic(rig, "t", publishRate=publish_rate(1))
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx)
    for number in range(300):
        send(producer, number)
    await virtual_clock.sleep(1)
    assert len(cnx.take()) <= 3
    await set_topic(rig, "t", publishRate=publish_rate(100))
    await virtual_clock.sleep(1)
    assert 95 <= len(cnx.take()) <= 115
    await set_topic(rig, "t", publishRate=publish_rate())
    await virtual_clock.sleep(0.01)
    assert cnx.in_flight.entries_count == 0
    assert len(topic.producers) == 1


async def test_order_is_kept_and_the_connection_serves_others(rig: Rig) -> None:
    slow, fast = await rig.topic("slow"), await rig.topic("fast")
    await set_topic(rig, "slow", publishRate=publish_rate(10))
    cnx = rig.cnx()
    limited = await rig.producer(slow, cnx, "a")
    free = await rig.producer(fast, cnx, "b")
    for number in range(50):
        send(limited, number)
        send(free, 1000 + number)
    await asyncio.sleep(0.01)
    lines = cnx.take()
    assert sum(line.startswith("receipt 1") and len(line.split()[1]) == 4 for line in lines) == 50
    assert cnx.pauses == []
    await asyncio.sleep(10)
    later = [line.split()[1] for line in cnx.take()]
    assert later == sorted(later, key=int)


async def test_a_connection_that_is_far_ahead_is_not_read_any_more(rig: Rig) -> None:
    topic = await rig.topic("t")
    await set_topic(rig, "t", publishRate=publish_rate(10))
    cnx, other = rig.cnx(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    for number in range(20):
        send(producer, number, entry(number, b"x" * (MAX_HELD_BYTES // 10)))
    assert cnx.pauses == ["pause"]
    assert other.pauses == []
    await asyncio.sleep(3)
    assert cnx.pauses == ["pause", "resume"]


async def test_what_a_lost_connection_had_waiting_is_dropped(rig: Rig) -> None:
    topic = await rig.persistent()
    await set_topic(rig, "t", publishRate=publish_rate(10))
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx)
    for number in range(50):
        send(producer, number)
    await producer_gone(topic, cnx)
    await asyncio.sleep(10)
    assert topic.ledger.entries_count <= 11


RATE_SETTINGS = {
    "broker": "dispatchThrottlingRateIn",
    "each topic": "dispatchThrottlingRatePerTopicIn",
    "each subscription": "dispatchThrottlingRatePerSubscriptionIn",
}
DISPATCH_LEVELS = [
    "topic",
    "subscription",
    "own",
    "namespace",
    "subscriptions of a namespace",
    "group",
    *RATE_SETTINGS,
]


@pytest.mark.parametrize("unit", ["messages", "bytes"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("level", DISPATCH_LEVELS)
async def test_dispatch_keeps_to_the_rate_of_each_level(
    kind: SubscriptionType, level: str, unit: str, virtual_clock: VirtualClock
) -> None:
    messages, size = (20, -1) if unit == "messages" else (-1, 20 * SIZE)
    values = {}
    if level in RATE_SETTINGS:
        name = RATE_SETTINGS[level] + ("Msg" if unit == "messages" else "Byte")
        values = {name: max(messages, size)}
    async with Rig(virtual_clock, config=BrokerConfig.from_values(values)) as rig:
        topic = await rig.topic("t")
        await fill(rig, topic, 800)
        rate = dispatch_rate(messages, size)
        if level == "topic":
            await set_topic(rig, "t", dispatchRate=rate)
        elif level == "subscription":
            await set_topic(
                rig, "t", subscriptionDispatchRate=dispatch_rate(3 * messages, 3 * size, 3)
            )
        elif level == "own":
            await set_topic(
                rig,
                "t",
                subscriptionDispatchRate=dispatch_rate(1),
                subscriptionPolicies={"sub": {"dispatchRate": rate}},
            )
        elif level == "namespace":
            await set_namespace(rig, topicDispatchRate={"standalone": rate})
        elif level == "subscriptions of a namespace":
            await set_namespace(rig, subscriptionDispatchRate={"standalone": rate})
        elif level == "group":
            await rig.broker.resources.resource_groups.create(
                "g", ResourceGroup({"dispatchRateInMsgs": messages, "dispatchRateInBytes": size})
            )
            await set_namespace(rig, resource_group_name="g")
        times = await dispatch_times(virtual_clock, topic, rig, kind)
        check_windows(times, 20, seconds=25)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("unit", ["messages", "bytes"])
async def test_entries_of_all_sizes_keep_to_the_rate(
    kind: SubscriptionType, unit: str, rig: Rig, virtual_clock: VirtualClock
) -> None:
    """Two subscriptions; the first entries are small ones, so that nobody expects the others."""
    chance = random.Random(3)
    topic = await rig.topic("t")
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx)
    costs: list[int] = []
    for number in range(3000):
        count, size = chance.choice([1, 1, 1, 2, 10]), chance.choice([10, 100, 100, 2000])
        if number < 2:
            count, size = 1, 10
        fields = {} if count == 1 else {"num_messages_in_batch": count}
        data = entry(number, b"x" * size, **fields)
        costs.append(count if unit == "messages" else len(data))
        send(producer, number, data, messages_count=count)
        if number % 200 == 0:
            await asyncio.sleep(0.01)
    await asyncio.sleep(5)
    await producer_gone(topic, cnx)
    rate = 100 if unit == "messages" else 50_000
    limits = dispatch_rate(rate) if unit == "messages" else dispatch_rate(size=rate)
    await set_topic(rig, "t", dispatchRate=limits)
    connections = [rig.cnx() for _ in range(2)]
    start = virtual_clock.monotonic_seconds()
    for name, each in zip(("a", "b"), connections, strict=True):
        request = subscribe_request(each, name, kind, starts_at_earliest=True)
        (await topic.subscribe(request)).flow(100_000)
    spent: list[tuple[float, int]] = []
    sent: list[list[int]] = [[], []]
    while (now := virtual_clock.monotonic_seconds() - start) < 25:
        for each, ids in zip(connections, sent, strict=True):
            for line in each.take():
                ids.append(int(line.removeprefix("message ")))
                spent.append((now, costs[ids[-1]]))
        await virtual_clock.sleep(0.01)
    for ids in sent:
        assert ids == list(range(len(ids)))  # what was read again is sent once, and in order
    assert sum(cost for at, cost in spent if at < 0.1) <= rate * 1.1 + max(costs)
    for begin in (2.0, 4.5, 7.0, 9.5, 12.0, 14.5):
        total = sum(cost for at, cost in spent if begin <= at < begin + 10)
        assert abs(total - rate * 10) <= rate * 0.2 + max(costs), begin


@pytest.mark.parametrize("kind", TYPES)
async def test_messages_of_a_batch_are_counted(
    kind: SubscriptionType, rig: Rig, virtual_clock: VirtualClock
) -> None:
    topic = await rig.topic("t")
    await fill(rig, topic, 300, messages_count=10)
    await set_topic(rig, "t", dispatchRate=dispatch_rate(50))
    times = await dispatch_times(virtual_clock, topic, rig, kind)
    check_windows(times, 5, seconds=25)


async def test_a_dispatch_rate_that_changes_counts_at_once(
    rig: Rig, virtual_clock: VirtualClock
) -> None:
    topic = await rig.topic("t")
    await fill(rig, topic, 500)
    await set_topic(rig, "t", dispatchRate=dispatch_rate(1))
    assert len(await dispatch_times(virtual_clock, topic, rig, TYPES[1], seconds=2)) <= 3
    consumer = topic.subscriptions["sub"].consumers[0]
    await set_topic(rig, "t", dispatchRate=dispatch_rate())
    assert isinstance(consumer.connection, FakeCnx)
    assert len(consumer.connection.take()) >= 490


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("limit", "expected"), [("messages", 10), ("bytes", 10), ("not", 20)])
async def test_what_users_filters_refuse_counts_if_it_is_to(
    kind: SubscriptionType, limit: str, expected: int, virtual_clock: VirtualClock
) -> None:
    """Batches of two; one in two is rejected, and what is put off counts each time it is read."""
    counts = limit != "not"
    config = BrokerConfig.from_values(
        {
            "entryFilterNames": "tests.hook_classes.ByPayload",
            "dispatchThrottlingForFilteredEntriesEnabled": counts,
        }
    )
    async with Rig(virtual_clock, config=config) as rig:
        topic = await rig.topic("t")
        cnx = rig.cnx()
        producer = await rig.producer(topic, cnx)
        size = 0
        for number in range(1500):
            payload = (b"yes", b"no.")[number % 2] + b"x" * 100
            data = entry(number, payload, num_messages_in_batch=2)
            size = len(data)
            send(producer, number, data, messages_count=2)
            if number % 500 == 0:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        await producer_gone(topic, cnx)
        rate = dispatch_rate(size=20 * size) if limit == "bytes" else dispatch_rate(40)
        await set_topic(rig, "t", dispatchRate=rate)
        times = await dispatch_times(virtual_clock, topic, rig, kind)
        check_windows(times, expected, seconds=25)


async def test_delayed_messages_and_markers_count_once_they_are_sent(
    virtual_clock: VirtualClock,
) -> None:
    values = {"dispatchThrottlingForFilteredEntriesEnabled": True}
    async with Rig(virtual_clock, config=BrokerConfig.from_values(values)) as rig:
        topic = await rig.topic("t")
        await set_topic(rig, "t", dispatchRate=dispatch_rate(10))
        cnx = rig.cnx()
        producer = await rig.producer(topic, cnx)
        consumer = await topic.subscribe(
            subscribe_request(cnx, "sub", SubscriptionType.SHARED, starts_at_earliest=True)
        )
        due = rig.clock.wall_time_millis() + 20_000
        for number in range(100):
            send(producer, number, entry(number, deliver_at_time=due))
        for number in range(100, 105):
            send(producer, number)
        consumer.flow(1000)
        await virtual_clock.sleep(1)
        assert sum(line.startswith("message") for line in cnx.take()) == 5


@pytest.mark.parametrize("kind", TYPES)
async def test_who_caught_up_has_no_debt_from_the_time_in_which_no_rate_held(
    kind: SubscriptionType, virtual_clock: VirtualClock
) -> None:
    values = {"dispatchThrottlingOnNonBacklogConsumerEnabled": False}
    async with Rig(virtual_clock, config=BrokerConfig.from_values(values)) as rig:
        topic = await rig.topic("t")
        await set_topic(rig, "t", dispatchRate=dispatch_rate(50))
        cnx = rig.cnx()
        producer = await rig.producer(topic, cnx)
        consumer = await topic.subscribe(subscribe_request(cnx, "sub", kind))
        times = Times(cnx, virtual_clock, "message")
        consumer.flow(900)
        for number in range(900):
            send(producer, number)
        await times.run(1)
        assert len(times.at) == 900  # it is less than 1000 behind
        for number in range(900, 4000):
            send(producer, number)
            if number % 500 == 0:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        await producer_gone(topic, cnx)
        cnx.is_connected = True
        times = Times(cnx, virtual_clock, "message")
        consumer.flow(10_000)
        await times.run(25)
        check_windows(times.at, 50, seconds=25)


@pytest.mark.parametrize("limit", ["messages", "bytes"])
async def test_subscriptions_that_read_from_storage_at_once_share_the_rate(
    limit: str, virtual_clock: VirtualClock
) -> None:
    """None of them knows what the others will send of what they read at the moment."""
    faults = LedgerFaults(delay_seconds=0.05)
    store = HostileLedgers(random.Random(1), faults).connect("broker")
    async with Rig(virtual_clock, ledgers=store) as rig:
        topic = await rig.topic("t")
        await fill(rig, topic, 3000)
        rate = dispatch_rate(100) if limit == "messages" else dispatch_rate(size=100 * SIZE)
        await set_topic(rig, "t", dispatchRate=rate)
        connections = [rig.cnx() for _ in range(10)]
        consumers = [
            await topic.subscribe(
                subscribe_request(
                    cnx, f"s{number}", SubscriptionType.SHARED, starts_at_earliest=True
                )
            )
            for number, cnx in enumerate(connections)
        ]
        for consumer in consumers:
            consumer.flow(1)  # from now on the size of an entry is known
        await asyncio.sleep(3)
        for cnx in connections:
            assert len(cnx.take()) == 1
        times = [Times(cnx, virtual_clock, "message") for cnx in connections]
        for consumer in consumers:
            consumer.flow(1000)
        await asyncio.gather(*(each.run(25) for each in times))
        check_windows(sorted(at for each in times for at in each.at), 100, seconds=25)


async def test_a_rate_may_come_on_top_of_that_of_publishing(
    rig: Rig, virtual_clock: VirtualClock
) -> None:
    topic = await rig.topic("t")
    rate = {**dispatch_rate(10), "relativeToPublishRate": True}
    await set_topic(rig, "t", dispatchRate=rate)
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx)
    for number in range(300):
        send(producer, number)
    await asyncio.sleep(0.1)
    consumer = await topic.subscribe(subscribe_request(cnx, starts_at_earliest=True))
    topic.roll_rates(10.0)  # 30 a second
    times = Times(cnx, virtual_clock, "message")
    consumer.flow(1000)
    await times.run(7)
    assert sum(2 <= each < 7 for each in times.at) == pytest.approx(200, abs=5)


async def test_a_consumer_may_subscribe_only_so_often(
    rig: Rig, virtual_clock: VirtualClock
) -> None:
    topic = await rig.topic("t")
    rate = {"subscribeThrottlingRatePerConsumer": 2, "ratePeriodInSecond": 5}
    await set_namespace(rig, clusterSubscribeRate={"standalone": rate})

    async def subscribe(subscription: str, name: str = "c", consumer_id: int = 1) -> None:
        request = subscribe_request(
            rig.cnx(),
            subscription,
            SubscriptionType.SHARED,
            consumer_name=name,
            consumer_id=consumer_id,
        )
        await topic.subscribe(request)

    await subscribe("a")
    await subscribe("a")
    for subscription in ("a", "b"):
        with pytest.raises(NotAllowedError, match="Subscribe limited by subscribe rate limit"):
            await subscribe(subscription)
    await subscribe("a", name="other")
    await subscribe("a", consumer_id=2)
    await virtual_clock.sleep(5.2)
    await subscribe("a")


@pytest.mark.parametrize("level", ["topic", "namespace", "broker"])
async def test_subscribes_of_each_level(level: str, virtual_clock: VirtualClock) -> None:
    """Two at once and two in each five seconds, whoever asks without end."""
    rate = {"subscribeThrottlingRatePerConsumer": 2, "ratePeriodInSecond": 5}
    settings = {
        "subscribeThrottlingRatePerConsumer": 2,
        "subscribeRatePeriodPerConsumerInSecond": 5,
    }
    config = BrokerConfig.from_values(settings if level == "broker" else {})
    async with Rig(virtual_clock, config=config) as rig:
        topic = await rig.topic("t")
        if level == "topic":
            await set_topic(rig, "t", subscribeRate=rate)
        elif level == "namespace":
            await set_namespace(rig, clusterSubscribeRate={"standalone": rate})
        admitted: list[float] = []
        start = virtual_clock.monotonic_seconds()
        while (now := virtual_clock.monotonic_seconds() - start) < 32:
            request = subscribe_request(
                rig.cnx(), "s", SubscriptionType.SHARED, consumer_name="c", consumer_id=1
            )
            with contextlib.suppress(NotAllowedError):
                await topic.subscribe(request)
                admitted.append(now)
            await virtual_clock.sleep(0.1)
        assert sum(each < 1 for each in admitted) == 2
        for begin in (2.0, 7.0, 12.0, 17.0, 22.0):
            assert abs(sum(begin <= each < begin + 10 for each in admitted) - 4) <= 1


async def test_system_topics_have_no_rates(rig: Rig) -> None:
    await set_namespace(rig, publishMaxMessageRate={"standalone": publish_rate(1)})
    topic = await rig.topic(TopicName.parse("persistent://public/default/__change_events"))
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx)
    for number in range(50):
        send(producer, number)
    await asyncio.sleep(0.1)
    assert len(cnx.take()) == 50


async def test_without_rates_nothing_is_in_between(rig: Rig) -> None:
    topic = await rig.persistent()
    assert topic.append_function() == topic.ledger.append
    assert topic.dispatch_throttle("sub") is None
