"""Messages that a topic's policies forbid, sent by the official client."""

from __future__ import annotations

import json
import threading
import time

import pulsar
import pytest

from tests.interop.conftest import Address


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_message_that_is_too_large_ends_and_the_others_go_on(
    address: Address, client: pulsar.Client, topic: str, domain: str
) -> None:
    """Apache Pulsar 4.2.4 leaves this client's producer in a circle, and stores messages twice.

    The client closes its connection at the refusal and sends all messages without an answer anew:
    97 small ones became 4,463 entries in five seconds, and none was confirmed.
    """
    topic = f"{domain}://{topic.partition('://')[2]}"
    path = f"/admin/v2/{topic.replace('://', '/')}"
    producer = client.create_producer(topic, batching_enabled=False)
    producer.send(b"first")
    address.rest("POST", path + "/maxMessageSize", b"1000")
    taken_count = 1 + _send_until_refused(producer, b"x" * 1000)
    producer.send(b"second")
    outcomes: list[tuple[int, pulsar.Result]] = []
    is_over = threading.Event()

    def note(number: int, result: pulsar.Result) -> None:
        outcomes.append((number, result))
        if len(outcomes) == 100:
            is_over.set()

    large = (50, 51, 70)
    for number in range(100):
        producer.send_async(
            b"x" * (1000 if number in large else 10),
            lambda result, _, number=number: note(number, result),
        )
    assert is_over.wait(20)
    assert [number for number, _ in outcomes] == list(range(100))
    assert tuple(number for number, result in outcomes if result != pulsar.Result.Ok) == large
    if domain == "persistent":
        stats = json.loads(address.rest("GET", path + "/internalStats"))
        assert stats["entriesAddedCounter"] == taken_count + 1 + 97


def _send_until_refused(producer: pulsar.Producer, data: bytes) -> int:
    """Send a message until the policy is in force; returns how often it was taken."""
    deadline = time.monotonic() + 60
    taken_count = 0
    while time.monotonic() < deadline:
        try:
            producer.send(data)
        except pulsar.ChecksumError:
            return taken_count
        taken_count += 1
    raise AssertionError(f"not refused, {taken_count} times")
