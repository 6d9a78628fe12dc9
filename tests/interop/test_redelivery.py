"""Negative acks, ack time-outs, dead-letter and retry topics with the official client.

The Python client has no `reconsume_later`, unlike Java's: what it would do with a retry topic is
done by hand here, from publishing with a delay up to the dead-letter topic. To the broker both look
the same: a Shared subscription on two topics, delayed messages, and properties it never reads.
"""

from __future__ import annotations

import time

import pulsar
from pulsar import ConsumerDeadLetterPolicy, ConsumerType, InitialPosition

from tests.interop.test_produce_consume import (
    TIMEOUT,
    assert_nothing_left,
    publish,
    receive_all,
)


def test_negative_ack_brings_the_message_again(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(
        topic, "sub", consumer_type=ConsumerType.Shared, negative_ack_redelivery_delay_ms=200
    )
    publish(client, topic, 3)
    messages = [consumer.receive(TIMEOUT) for _ in range(3)]
    consumer.acknowledge(messages[0])
    consumer.negative_acknowledge(messages[1])
    consumer.acknowledge(messages[2])

    again = consumer.receive(TIMEOUT)

    assert again.data() == b"m1"
    assert again.redelivery_count() == 1
    consumer.acknowledge(again)
    assert_nothing_left(consumer, 500)


def test_refused_and_delayed_messages_come_beside_each_other_and_none_early(
    client: pulsar.Client, topic: str
) -> None:
    refused_millis, count = 300, 30
    consumer = client.subscribe(
        topic,
        "sub",
        consumer_type=ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=refused_millis,
    )
    producer = client.create_producer(topic, batching_enabled=False)
    dues_millis: dict[int, float] = {}
    for number in range(count):
        now = int(time.time() * 1000)
        dues_millis[number] = now + 400 + number * 20 if number % 3 == 0 else now
        is_delayed = dues_millis[number] > now
        due = {"deliver_at": int(dues_millis[number])} if is_delayed else {}
        producer.send(b"%d" % number, **due)

    counts = dict.fromkeys(range(count), 0)
    while sum(counts.values()) < 3 * count:
        message = consumer.receive(TIMEOUT)
        number = int(message.data())
        assert time.time() * 1000 >= dues_millis[number]
        assert message.redelivery_count() == counts[number]
        counts[number] += 1
        if counts[number] < 3:
            dues_millis[number] = time.time() * 1000 + refused_millis
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)

    assert counts == dict.fromkeys(range(count), 3)
    assert_nothing_left(consumer, 500)


def test_negative_ack_on_an_exclusive_subscription(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub", negative_ack_redelivery_delay_ms=200)
    publish(client, topic, 3)
    messages = [consumer.receive(TIMEOUT) for _ in range(3)]
    consumer.acknowledge(messages[0])

    consumer.negative_acknowledge(messages[1])

    assert [m.data() for m in receive_all(consumer, 2)] == [b"m1", b"m2"]


def test_ack_timeout_brings_messages_again(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(
        topic, "sub", consumer_type=ConsumerType.Shared, unacked_messages_timeout_ms=10_000
    )
    publish(client, topic, 2)
    first = [consumer.receive(TIMEOUT).data() for _ in range(2)]
    start = time.monotonic()

    second = [m.data() for m in (consumer.receive(25_000), consumer.receive(5_000))]

    assert sorted(first) == sorted(second)
    assert time.monotonic() - start > 5


def test_dead_letter_topic_takes_what_is_rejected_too_often(
    client: pulsar.Client, topic: str
) -> None:
    consumer = client.subscribe(
        topic,
        "sub",
        consumer_type=ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=ConsumerDeadLetterPolicy(
            max_redeliver_count=2,
            dead_letter_topic=f"{topic}-DLQ",
            initial_subscription_name="init",
        ),
    )
    publish(client, topic, 1)
    counts = []
    for _ in range(3):
        message = consumer.receive(TIMEOUT)
        counts.append(message.redelivery_count())
        consumer.negative_acknowledge(message)

    dead = client.subscribe(f"{topic}-DLQ", "init", initial_position=InitialPosition.Earliest)

    assert counts == [0, 1, 2]
    assert dead.receive(TIMEOUT).data() == b"m0"


def test_unacknowledged_messages_of_a_closed_consumer_go_to_another(
    client: pulsar.Client, topic: str
) -> None:
    first = client.subscribe(topic, "sub", consumer_type=ConsumerType.Shared)
    publish(client, topic, 10)
    for _ in range(10):
        first.receive(TIMEOUT)

    second = client.subscribe(topic, "sub", consumer_type=ConsumerType.Shared)
    first.close()

    assert {m.data() for m in receive_all(second, 10)} == {f"m{i}".encode() for i in range(10)}


def test_redeliver_unacknowledged(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub", consumer_type=ConsumerType.Shared)
    publish(client, topic, 5)
    for _ in range(5):
        consumer.receive(TIMEOUT)

    consumer.redeliver_unacknowledged_messages()

    assert len(receive_all(consumer, 5)) == 5


def reconsume_later(
    client: pulsar.Client, consumer: pulsar.Consumer, message: pulsar.Message, to: str, **more: int
) -> None:
    """Publish a copy, then acknowledge; the copy counts how often that was done."""
    properties = dict(message.properties())
    count = int(properties.get("RECONSUMETIMES", "0")) + 1
    properties |= {"RECONSUMETIMES": str(count), "REAL_TOPIC": message.topic_name()}
    client.create_producer(to).send(message.data(), properties=properties, **more)
    consumer.acknowledge(message)


def test_retry_topic_by_hand(client: pulsar.Client, topic: str) -> None:
    """A message goes through the retry topic twice, each time delayed, and then to the dead."""
    retry, dead = f"{topic}-sub-RETRY", f"{topic}-sub-DLQ"
    consumer = client.subscribe([topic, retry], "sub", consumer_type=ConsumerType.Shared)
    graveyard = client.subscribe(dead, "graveyard")
    publish(client, topic, 1)
    counts = []
    start = time.monotonic()

    for _ in range(2):
        message = consumer.receive(TIMEOUT)
        counts.append(message.properties().get("RECONSUMETIMES"))
        later = int(time.time() * 1000) + 2100  # a tick (1 s) and a half may be cut off
        reconsume_later(client, consumer, message, retry, deliver_at=later)
    message = consumer.receive(TIMEOUT)
    waited_seconds = time.monotonic() - start
    reconsume_later(client, consumer, message, dead)

    buried = graveyard.receive(TIMEOUT)
    assert counts == [None, "1"]
    assert waited_seconds > 1.1
    assert buried.data() == b"m0"
    assert buried.properties()["RECONSUMETIMES"] == "3"
    assert_nothing_left(consumer, 500)
