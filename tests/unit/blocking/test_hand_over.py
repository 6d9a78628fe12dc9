"""Messages go to the loop in bursts, and threads wait where there is no room."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from pulsar_py import blocking
from pulsar_py.blocking.hand_over import HandOver


def test_a_burst_is_few_wake_ups(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = client.create_producer(topic, batching_enabled=True, max_pending_messages=0)
    producer.send(b"x")
    taken = Counter()
    on_due = HandOver._on_due
    monkeypatch.setattr(HandOver, "_on_due", lambda self: (taken.update(["due"]), on_due(self)))
    for _ in range(5000):
        producer.send_nowait(b"x")
    producer.flush()
    assert 0 < taken["due"] < 500  # and not one for each message


def test_a_full_producer_refuses_or_waits(client: blocking.Client, topic: str) -> None:
    options = {"batching_enabled": True, "batching_max_publish_delay_ms": 60_000}
    refusing = client.create_producer(topic, max_pending_messages=10, **options)
    for _ in range(10):
        refusing.send_nowait(b"x")
    with pytest.raises(blocking.ProducerQueueFullError, match="10 messages have no receipt"):
        refusing.send_nowait(b"x")
    refusing.flush()
    refusing.send_nowait(b"x")

    waiting = client.create_producer(
        topic, max_pending_messages=10, block_if_queue_full=True, **options
    )
    for _ in range(10):
        waiting.send_nowait(b"x")
    with pytest.raises(TimeoutError), blocking.timeout(0.02):
        waiting.send_nowait(b"x")
    threading.Timer(0.02, waiting.flush).start()
    with blocking.timeout(30):
        assert waiting.send_nowait(b"x") is not None


def test_messages_of_all_kinds_keep_their_order(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, max_pending_messages=16, block_if_queue_full=True)
    results = []
    for number in range(400):
        properties = {"a": "b"} if number % 50 == 49 else None
        results.append(producer.send_nowait(b"%d" % number, properties))
    producer.flush()
    assert [int(consumer.receive(30_000).data()) for _ in results] == list(range(400))
    ids = [each.result() for each in results]
    assert ids == sorted(ids)
    assert len(set(ids)) == 400


def test_what_the_memory_has_no_room_for_goes_later(
    session_pulsar_broker: object, topic: str
) -> None:
    url = session_pulsar_broker.service_url
    with blocking.Client(url, memory_limit_bytes=100_000) as client:
        consumer = client.subscribe(topic, "s")
        producer = client.create_producer(topic, block_if_queue_full=True)
        results = [producer.send_nowait(b"%5d" % number + bytes(9_995)) for number in range(300)]
        producer.flush()
        assert all(each.done() for each in results)
        assert [int(consumer.receive(30_000).data()[:5]) for _ in range(300)] == list(range(300))
        holding = client.create_producer(
            topic, batching_enabled=True, batching_max_publish_delay_ms=60_000
        )
        holding.send_nowait(bytes(90_000))
        holding.send_nowait(bytes(20_000))  # one message may exceed the limit
        with pytest.raises(blocking.MemoryBufferFullError):
            client.create_producer(topic).send(bytes(50_000))


def test_closing_sends_what_was_handed_over(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for number in range(100):
        producer.send_nowait(b"%d" % number)
    producer.close()
    assert [int(consumer.receive(30_000).data()) for _ in range(100)] == list(range(100))


def test_closing_the_client_sends_it_too(session_pulsar_broker: object, topic: str) -> None:
    url = session_pulsar_broker.service_url
    with blocking.Client(url) as client:
        client.subscribe(topic, "s")
        producer = client.create_producer(topic)
        results = [producer.send_nowait(b"x") for _ in range(100)]
    assert all(each.exception() is None for each in results)
    with pytest.raises(blocking.AlreadyClosedError):
        producer.send_nowait(b"x")
