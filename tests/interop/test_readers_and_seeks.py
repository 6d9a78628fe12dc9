"""Readers, seeks and the table view of the official client."""

from __future__ import annotations

import time

import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition, MessageId

from tests.interop.test_produce_consume import TIMEOUT, assert_nothing_left, publish, receive_all


def read_all(reader: pulsar.Reader) -> list[bytes]:
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(TIMEOUT).data())
    return found


def test_reader_from_the_earliest_message(client: pulsar.Client, topic: str) -> None:
    publish(client, topic, 20)

    reader = client.create_reader(topic, MessageId.earliest)

    assert read_all(reader) == [f"m{i}".encode() for i in range(20)]


def test_reader_from_the_latest_message(client: pulsar.Client, topic: str) -> None:
    publish(client, topic, 5)
    reader = client.create_reader(topic, MessageId.latest)
    assert not reader.has_message_available()

    publish(client, topic, 2)

    assert reader.read_next(TIMEOUT).data() == b"m0"


@pytest.mark.parametrize("inclusive", [False, True])
def test_reader_from_a_message(client: pulsar.Client, topic: str, inclusive: bool) -> None:
    producer = client.create_producer(topic)
    ids = [producer.send(f"m{i}".encode()) for i in range(10)]

    reader = client.create_reader(topic, ids[4], start_message_id_inclusive=inclusive)

    assert read_all(reader)[0] == (b"m4" if inclusive else b"m5")


def test_reader_inside_a_batch(client: pulsar.Client, topic: str) -> None:
    publish(client, topic, 10, batching_enabled=True, batching_max_publish_delay_ms=1000)
    first = client.create_reader(topic, MessageId.earliest)
    third = [first.read_next(TIMEOUT).message_id() for _ in range(3)][-1]

    reader = client.create_reader(topic, third)

    assert read_all(reader)[0] == b"m3"


def test_seek_to_a_message(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub", start_message_id_inclusive=True)
    producer = client.create_producer(topic)
    ids = [producer.send(f"m{i}".encode()) for i in range(10)]
    receive_all(consumer, 10)

    consumer.seek(ids[3])

    assert [m.data() for m in receive_all(consumer, 7)] == [f"m{i}".encode() for i in range(3, 10)]


def test_seek_to_earliest_and_latest(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub")
    publish(client, topic, 5)
    receive_all(consumer, 5)

    consumer.seek(MessageId.earliest)
    assert len(receive_all(consumer, 5)) == 5

    consumer.seek(MessageId.earliest)
    consumer.seek(MessageId.latest)
    assert_nothing_left(consumer)


def test_seek_to_a_time(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub")
    publish(client, topic, 5)
    time.sleep(0.05)
    middle = int(time.time() * 1000)
    time.sleep(0.05)
    producer = client.create_producer(topic)
    producer.send(b"later")
    receive_all(consumer, 6)

    consumer.seek(middle)

    assert consumer.receive(TIMEOUT).data() == b"later"


def test_seek_of_a_shared_subscription(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub", consumer_type=ConsumerType.Shared)
    publish(client, topic, 5)
    receive_all(consumer, 5)

    consumer.seek(MessageId.earliest)

    assert len(receive_all(consumer, 5)) == 5


def test_reader_seek(client: pulsar.Client, topic: str) -> None:
    publish(client, topic, 5)
    reader = client.create_reader(topic, MessageId.earliest)
    assert len(read_all(reader)) == 5

    reader.seek(MessageId.earliest)

    assert len(read_all(reader)) == 5


def test_table_view_holds_the_latest_value_of_each_key(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    for index in range(10):
        producer.send(f"v{index}".encode(), partition_key=f"k{index % 3}")

    view = client.create_table_view(topic)

    assert len(view) == 3
    assert view.get("k0") == b"v9"
    producer.send(b"new", partition_key="k0")
    deadline = time.monotonic() + 60
    while view.get("k0") != b"new" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert view.get("k0") == b"new"
    view.close()


def test_a_seek_that_nobody_waits_for_keeps_no_subscribe_out(
    client: pulsar.Client, topic: str
) -> None:
    producer = client.create_producer(topic)
    ids = [producer.send(f"m{i}".encode()) for i in range(10)]

    for message_id in ids:
        consumer = client.subscribe(topic, "sub", start_message_id_inclusive=True)
        # Its blocking `seek` would never return: the client forgets it when the consumer closes.
        consumer._consumer.seek_async(message_id, lambda _: None)
        consumer.close()
        again = client.subscribe(topic, "sub")
        again.close()


def test_a_closed_exclusive_consumer_makes_room_at_once(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    producer.send(b"m")

    for _ in range(50):
        consumer = client.subscribe(topic, "sub", initial_position=InitialPosition.Earliest)
        assert consumer.receive(TIMEOUT).data() == b"m"
        consumer.close()


def test_a_consumer_closed_right_after_its_seek_makes_room_at_once(
    client: pulsar.Client, topic: str
) -> None:
    for _ in range(20):
        consumer = client.subscribe(topic, "sub")
        consumer.seek(MessageId.earliest)
        consumer.close()
