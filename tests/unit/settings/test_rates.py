"""Settings of rates: what comes in the first second, and how much more in the next, in virtual time."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.topics.rig import Rig, entry, send, subscribe_request
from tests.unit.settings.parts import broker

SIZE = len(entry(1))


async def published(rig: Rig, *topics: str) -> int:
    """Receipts within two seconds, for 100 messages to each topic: 20 at a rate of 10 in all."""
    connections = []
    for name in topics:
        cnx = rig.cnx()
        producer = await rig.producer(await rig.topic(name), cnx)
        for number in range(100):
            send(producer, number, entry(1))
        connections.append(cnx)
    await rig.clock.sleep(1.05)
    return sum(line.startswith("receipt") for cnx in connections for line in cnx.take())


async def delivered(rig: Rig, *topics: str, subscriptions: int = 1, batch: int = 1) -> int:
    """Entries that consumers get within a second, of 100 in each topic."""
    readers = []
    for name in topics:
        topic, cnx = await rig.topic(name), rig.cnx()
        producer = await rig.producer(topic, cnx)
        fields = {} if batch == 1 else {"num_messages_in_batch": batch}
        for number in range(100):
            send(producer, number, entry(1, **fields), messages_count=batch)
        await rig.clock.sleep(0.01)
        readers += [(topic, f"s{index}") for index in range(subscriptions)]
    connections = []
    for topic, subscription in readers:
        cnx = rig.cnx()
        request = subscribe_request(
            cnx, subscription, SubscriptionType.SHARED, starts_at_earliest=True
        )
        (await topic.subscribe(request)).flow(10_000)
        connections.append(cnx)
    await rig.clock.sleep(1.05)
    return sum(line.startswith("message") for cnx in connections for line in cnx.take())


@pytest.mark.setting("maxPublishRatePerTopicInMessages")
async def test_messages_that_a_topic_takes(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, maxPublishRatePerTopicInMessages=10) as rig:
        assert await published(rig, "a", "b") == 40


@pytest.mark.setting("maxPublishRatePerTopicInBytes")
async def test_bytes_that_a_topic_takes(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, maxPublishRatePerTopicInBytes=10 * SIZE) as rig:
        assert await published(rig, "a", "b") == 40


@pytest.mark.setting("brokerPublisherThrottlingMaxMessageRate")
async def test_messages_that_a_broker_takes(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, brokerPublisherThrottlingMaxMessageRate=10) as rig:
        assert await published(rig, "a", "b") == 20


@pytest.mark.setting("brokerPublisherThrottlingMaxByteRate")
async def test_bytes_that_a_broker_takes(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, brokerPublisherThrottlingMaxByteRate=10 * SIZE) as rig:
        assert await published(rig, "a", "b") == 20


@pytest.mark.setting("dispatchThrottlingRateInMsg")
async def test_messages_that_a_broker_sends(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, dispatchThrottlingRateInMsg=10) as rig:
        assert await delivered(rig, "a", "b") == 20


@pytest.mark.setting("dispatchThrottlingRateInByte")
async def test_bytes_that_a_broker_sends(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, dispatchThrottlingRateInByte=10 * SIZE) as rig:
        assert await delivered(rig, "a", "b") == 20


@pytest.mark.setting("dispatchThrottlingRatePerTopicInMsg")
async def test_messages_that_a_topic_sends(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, dispatchThrottlingRatePerTopicInMsg=10) as rig:
        assert await delivered(rig, "a", subscriptions=2) == 20


@pytest.mark.setting("dispatchThrottlingRatePerTopicInByte")
async def test_bytes_that_a_topic_sends(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, dispatchThrottlingRatePerTopicInByte=10 * SIZE) as rig:
        assert await delivered(rig, "a", subscriptions=2) == 20


@pytest.mark.setting("dispatchThrottlingRatePerSubscriptionInMsg")
async def test_messages_that_a_subscription_sends(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, dispatchThrottlingRatePerSubscriptionInMsg=10) as rig:
        assert await delivered(rig, "a", subscriptions=2) == 40


@pytest.mark.setting("dispatchThrottlingRatePerSubscriptionInByte")
async def test_bytes_that_a_subscription_sends(virtual_clock: VirtualClock) -> None:
    settings = {"dispatchThrottlingRatePerSubscriptionInByte": 10 * SIZE}
    async with broker(virtual_clock, **settings) as rig:
        assert await delivered(rig, "a", subscriptions=2) == 40


@pytest.mark.setting("dispatchThrottlingOnBatchMessageEnabled")
async def test_a_batch_may_count_as_one_message(virtual_clock: VirtualClock) -> None:
    settings = {
        "dispatchThrottlingRatePerTopicInMsg": 10,
        "dispatchThrottlingOnBatchMessageEnabled": True,
    }
    async with broker(virtual_clock, **settings) as rig:
        assert await delivered(rig, "a", batch=10) == 20


@pytest.mark.setting("dispatchThrottlingOnNonBacklogConsumerEnabled")
async def test_who_is_not_behind_may_be_free(virtual_clock: VirtualClock) -> None:
    settings = {
        "dispatchThrottlingRatePerTopicInMsg": 10,
        "dispatchThrottlingOnNonBacklogConsumerEnabled": False,
    }
    async with broker(virtual_clock, **settings) as rig:
        assert await delivered(rig, "a") == 100


@pytest.mark.setting("dispatchThrottlingRateRelativeToPublishRate")
async def test_a_rate_may_follow_that_of_publishing(virtual_clock: VirtualClock) -> None:
    settings = {
        "dispatchThrottlingRatePerTopicInMsg": 10,
        "dispatchThrottlingRateRelativeToPublishRate": True,
    }
    async with broker(virtual_clock, **settings) as rig:
        assert await delivered(rig, "a") == 20
        topic = await rig.topic("a")
        topic.roll_rates(5.0)  # 100 messages were 20 a second
        cnx = topic.subscriptions["s0"].consumers[0].connection
        await rig.clock.sleep(1)
        assert len(cnx.take()) == pytest.approx(30, abs=2)  # type: ignore[attr-defined]


@pytest.mark.setting("dispatchThrottlingForFilteredEntriesEnabled")
async def test_what_is_filtered_may_count(virtual_clock: VirtualClock) -> None:
    settings = {
        "dispatchThrottlingRatePerTopicInMsg": 10,
        "dispatchThrottlingForFilteredEntriesEnabled": True,
        "entryFilterNames": ("tests.hook_classes.ByPayload",),
    }
    async with broker(virtual_clock, **settings) as rig:
        topic, cnx = await rig.topic("a"), rig.cnx()
        producer = await rig.producer(topic, cnx)
        for number in range(30):
            send(producer, number, entry(1, b"no" if number else b"yes"))
        send(producer, 30, entry(1))
        await rig.clock.sleep(0.01)
        cnx.take()
        request = subscribe_request(cnx, starts_at_earliest=True)
        (await topic.subscribe(request)).flow(100)
        await rig.clock.sleep(0.5)
        assert [line for line in cnx.take() if line.startswith("message")] == ["message 0"]
        await rig.clock.sleep(3)
        assert "message 30" in cnx.take()


async def subscribes(rig: Rig) -> bool:
    topic = await rig.topic("a")
    request = subscribe_request(rig.cnx(), "s", SubscriptionType.SHARED, consumer_name="c")
    try:
        await topic.subscribe(request)
    except NotAllowedError:
        return False
    return True


@pytest.mark.setting("subscribeThrottlingRatePerConsumer")
async def test_subscribes_in_a_period(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, subscribeThrottlingRatePerConsumer=2) as rig:
        assert [await subscribes(rig) for _ in range(3)] == [True, True, False]


@pytest.mark.setting("subscribeRatePeriodPerConsumerInSecond")
async def test_the_period_of_subscribes(virtual_clock: VirtualClock) -> None:
    settings = {
        "subscribeThrottlingRatePerConsumer": 1,
        "subscribeRatePeriodPerConsumerInSecond": 5,
    }
    async with broker(virtual_clock, **settings) as rig:
        assert [await subscribes(rig) for _ in range(2)] == [True, False]
        await rig.clock.sleep(5.1)
        assert await subscribes(rig)
