"""Numbers of what is filtered, held back, waiting and sent again, after loads that are counted here.

What `test_known_load` expects to be nothing has a value here, which is added up of what the clients
sent, got and did not get; metrics say the same as statistics.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ProducerAccessMode
from pulsar_py.testing.network import run_simulated
from tests.counted_load import (
    KEY_SHARED,
    PATH,
    SHARED,
    TOPIC,
    WINDOW,
    House,
    Json,
    house,
)
from tests.unit.admin.metrics.metric_pages import by

FILTER: Final = "tests.hook_classes.ByPayload"


async def subscription_of(found: House, name: str = "s") -> Json:
    stats = await found.call("GET", PATH + "/stats")
    subscription: Json = stats["subscriptions"][name]
    return subscription


async def value_of(found: House, metric: str) -> float:
    """The one line of a metric of `TOPIC`."""
    (value,) = [
        value
        for labels, value in (await found.metrics())[metric].items()
        if ("topic", TOPIC) in labels
    ]
    return value


@pytest.mark.metric(
    *(
        f"pulsar_subscription_filter_{each}_msg_count"
        for each in ("processed", "accepted", "rejected", "rescheduled")
    )
)
def test_what_filters_decided_is_counted() -> None:
    async def run() -> None:
        async with house(entryFilterNames=FILTER) as found:
            publisher, reader = await found.publisher("p"), await found.reader("s", SHARED)
            bodies = {b"yes": 7, b"no": 5, b"later": 3}
            for body, count in bodies.items():
                for _ in range(count):
                    publisher.send(body)
            reader.flow(100)
            await found.broker.service.clock.sleep(WINDOW)
            assert reader.messages == bodies[b"yes"] + bodies[b"later"]
            expected = {
                "Processed": sum(bodies.values()) + bodies[b"later"],  # what is put off comes twice
                "Accepted": bodies[b"yes"] + bodies[b"later"],
                "Rejected": bodies[b"no"],
                "Rescheduled": bodies[b"later"],
            }
            subscription = await subscription_of(found)
            assert {each: subscription[f"filter{each}MsgCount"] for each in expected} == expected
            for each, count in expected.items():
                name = f"pulsar_subscription_filter_{each.lower()}_msg_count"
                assert await value_of(found, name) == count, name

    run_simulated(run())


@pytest.mark.metric(
    "pulsar_consumer_blocked_on_unacked_messages", "pulsar_subscription_blocked_on_unacked_messages"
)
@pytest.mark.parametrize("place", ["consumer", "subscription"])
def test_what_unacknowledged_messages_stop_says_so(place: str) -> None:
    limits = {
        "consumer": {"maxUnackedMessagesPerConsumer": 10},
        "subscription": {"maxUnackedMessagesPerSubscription": 10},
    }

    async def run() -> None:
        async with house(exposeConsumerLevelMetricsInPrometheus=True, **limits[place]) as found:
            clock = found.broker.service.clock
            publisher, reader = await found.publisher("p"), await found.reader("s", SHARED)
            for _ in range(30):
                publisher.send(b"m")
                await clock.sleep(0.01)
            for _ in range(12):
                reader.flow(1)
                await clock.sleep(0.1)
            for is_blocked in (True, False):
                subscription = await subscription_of(found)
                (consumer,) = subscription["consumers"]
                shown = {
                    "consumer": consumer["blockedConsumerOnUnackedMsgs"],
                    "subscription": subscription["blockedSubscriptionOnUnackedMsgs"],
                }
                assert shown == {each: each == place and is_blocked for each in shown}
                assert subscription["unackedMessages"] == reader.messages - reader.acked
                name = f"pulsar_{place}_blocked_on_unacked_messages"
                assert await value_of(found, name) == is_blocked
                if is_blocked:
                    assert reader.messages == 10
                    reader.ack(reader.taken)
                    await clock.sleep(1)
            assert reader.messages == 12

    run_simulated(run())


@pytest.mark.metric("pulsar_subscription_in_replay")
def test_what_waits_to_be_sent_again_is_counted() -> None:
    async def run() -> None:
        async with house() as found:
            clock = found.broker.service.clock
            publisher, reader = await found.publisher("p"), await found.reader("s", SHARED)
            for _ in range(10):
                publisher.send(b"m")
            reader.flow(10)
            await clock.sleep(1)
            reader.give_back(reader.taken[2:8])
            await clock.sleep(1)
            assert reader.given_back == 6
            assert (await subscription_of(found))["msgInReplay"] == 6
            assert await value_of(found, "pulsar_subscription_in_replay") == 6
            reader.flow(4)
            await clock.sleep(1)
            assert (await subscription_of(found))["msgInReplay"] == 6 - 4

    run_simulated(run())


def test_hashes_that_drain_are_counted() -> None:
    """What the second consumer gets once the first one has acknowledged tells which keys moved."""
    keys = [f"k{number}" for number in range(40)]

    async def run() -> None:
        async with house() as found:
            clock = found.broker.service.clock
            publisher = await found.publisher("p")
            first = await found.reader("s", KEY_SHARED, name="first")
            first.flow(1000)
            for key in keys:
                publisher.send(b"m", partition_key=key)
            await clock.sleep(1)
            assert first.messages == len(keys)
            second = await found.reader("s", KEY_SHARED, name="second")
            second.flow(1000)
            for key in keys:
                publisher.send(b"m", partition_key=key)
            await clock.sleep(1)
            assert second.messages == 0
            before = await subscription_of(found)
            first.ack(first.taken)
            await clock.sleep(1)
            moved = second.messages
            assert 0 < moved < len(keys)
            after = await subscription_of(found)
            assert counts(before) == (moved, moved, 0)
            assert counts(after) == (0, 0, moved)
            assert counts(of_consumer(before, "first")) == (moved, moved, 0)
            assert counts(of_consumer(after, "first")) == (0, 0, moved)
            assert counts(of_consumer(after, "second")) == (0, 0, 0)
            draining = of_consumer(before, "first")["drainingHashes"]
            assert len({each["hash"] for each in draining}) == moved
            assert {each["unackMsgs"] for each in draining} == {1}
            assert of_consumer(after, "first")["drainingHashes"] in (None, [])

    run_simulated(run())


def counts(shown: Json) -> tuple[int, int, int]:
    """Hashes that drain, their unacknowledged messages, and hashes that are done with."""
    return (
        shown["drainingHashesCount"],
        shown["drainingHashesUnackedMessages"],
        shown["drainingHashesClearedTotal"],
    )


def of_consumer(subscription: Json, name: str) -> Json:
    (found,) = [each for each in subscription["consumers"] if each["consumerName"] == name]
    consumer: Json = found
    return consumer


@pytest.mark.metric(
    "pulsar_subscription_dispatch_throttled_msg_events",
    "pulsar_subscription_dispatch_throttled_bytes_events",
)
@pytest.mark.parametrize("unit", ["Msg", "Bytes"])
@pytest.mark.parametrize("place", ["Subscription", "Topic", "Broker"])
def test_each_limit_of_sending_counts_for_itself(place: str, unit: str) -> None:
    size = 100
    rate = 10 if unit == "Msg" else 10 * size
    config: dict[str, Any] = {}
    if place == "Broker":
        config = {f"dispatchThrottlingRateIn{'Msg' if unit == 'Msg' else 'Byte'}": rate}

    async def run() -> None:
        async with house(**config) as found:
            await found.call("PUT", PATH)
            if place != "Broker":
                path = "dispatchRate" if place == "Topic" else "subscriptionDispatchRate"
                name = f"dispatchThrottlingRateIn{'Msg' if unit == 'Msg' else 'Byte'}"
                body = f'{{"{name}": {rate}, "ratePeriodInSecond": 1}}'
                await found.call("POST", f"{PATH}/{path}", body.encode())
            publisher, reader = await found.publisher("p"), await found.reader("s", SHARED)
            for _ in range(40):
                publisher.send(b"m" * size)
            reader.flow(1000)
            await found.broker.service.clock.sleep(30)
            assert reader.messages == 40
            subscription = await subscription_of(found)
            metrics = await found.metrics()
            for each_unit in ("Msg", "Bytes"):
                events = {
                    each: subscription[f"dispatchThrottled{each_unit}EventsBy{each}Limit"]
                    for each in ("Subscription", "Topic", "Broker")
                }
                assert [each for each, count in events.items() if count] == (
                    [place] if each_unit == unit else []
                )
                name = f"pulsar_subscription_dispatch_throttled_{each_unit.lower()}_events"
                assert by(metrics, name, "reason") == {
                    each.lower(): count for each, count in events.items()
                }

    run_simulated(run())


def test_publishing_that_a_limit_held_is_counted() -> None:
    async def run() -> None:
        async with house() as found:
            clock = found.broker.service.clock
            await found.call("PUT", PATH)
            limit = b'{"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1}'
            await found.call("POST", PATH + "/publishRate", limit)
            publisher = await found.publisher("p")
            seen = [0]
            for _ in range(3):
                for _ in range(30):
                    publisher.send(b"m")
                await clock.sleep(10)
                stats = await found.call("GET", PATH + "/stats")
                seen.append(stats["publishRateLimitedTimes"])
                limited = await value_of(found, "pulsar_publish_rate_limit_times")
                assert limited == stats["publishRateLimitedTimes"]
            assert seen == sorted(set(seen)), "each burst is held"
            assert stats["msgInCounter"] == publisher.messages

    run_simulated(run())


async def ask_to_publish(
    found: House, name: str, mode: ProducerAccessMode.ValueType
) -> BaseCommand:
    """A producer that wants the topic for itself; the first answer it gets."""
    client = await found.client()
    await client.lookup(TOPIC)
    command = BaseCommand(type=BaseCommand.PRODUCER)
    command.producer.topic = TOPIC
    command.producer.producer_id = 1
    command.producer.producer_name = name
    command.producer.producer_access_mode = mode
    command.producer.request_id = client.next_request_id()
    return await client.request(command, command.producer.request_id)


def test_producers_that_wait_are_counted() -> None:
    async def run() -> None:
        async with house() as found:
            waiting = ProducerAccessMode.WaitForExclusive
            for number in range(4):
                answer = await ask_to_publish(found, f"p{number}", waiting)
                assert answer.producer_success.producer_ready == (number == 0)
            stats = await found.call("GET", PATH + "/stats")
            assert [each["producerName"] for each in stats["publishers"]] == ["p0"]
            assert stats["publishers"][0]["accessMode"] == "WaitForExclusive"
            assert stats["waitingPublishers"] == 4 - 1
            await found.clients[0].close()
            await found.broker.service.clock.sleep(1)
            stats = await found.call("GET", PATH + "/stats")
            assert [each["producerName"] for each in stats["publishers"]] == ["p1"]
            assert stats["waitingPublishers"] == 4 - 2

    run_simulated(run())


@pytest.mark.metric(
    *(
        f"pulsar_subscription_last_{each}_timestamp"
        for each in ("acked", "consumed_flow", "consumed", "mark_delete_advanced")
    )
)
def test_moments_are_those_at_which_it_happened() -> None:
    async def run() -> None:
        async with house() as found:
            clock = found.broker.service.clock
            publisher, reader = await found.publisher("p"), await found.reader("s", SHARED)
            moments = {"published": clock.wall_time_millis()}
            for _ in range(10):
                publisher.send(b"m")
            await clock.sleep(1)
            moments["flow"] = clock.wall_time_millis()
            reader.flow(5)
            await clock.sleep(1)
            moments["acked"] = clock.wall_time_millis()
            reader.ack(reader.taken[:2])
            await clock.sleep(1)
            stats = await found.call("GET", PATH + "/stats")
            expected = {
                "lastConsumedFlowTimestamp": moments["flow"],
                "lastConsumedTimestamp": moments["flow"],
                "lastAckedTimestamp": moments["acked"],
                "lastMarkDeleteAdvancedTimestamp": moments["acked"],
            }
            subscription = stats["subscriptions"]["s"]
            assert stats["lastPublishTimeStamp"] == moments["published"]
            assert {each: subscription[each] for each in expected} == expected
            (consumer,) = subscription["consumers"]
            del expected["lastMarkDeleteAdvancedTimestamp"]
            assert {each: consumer[each] for each in expected} == expected
            for field_name, moment in (
                ("last_consumed_flow", moments["flow"]),
                ("last_consumed", moments["flow"]),
                ("last_acked", moments["acked"]),
                ("last_mark_delete_advanced", moments["acked"]),
            ):
                name = f"pulsar_subscription_{field_name}_timestamp"
                assert await value_of(found, name) == moment, name

    run_simulated(run())
