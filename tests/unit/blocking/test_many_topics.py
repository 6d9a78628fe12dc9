"""Consumers of lists and patterns."""

from __future__ import annotations

import re

import pytest

from pulsar_py import blocking
from tests.unit.blocking.test_prefetch import fill


def test_a_list_of_topics(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe([f"{topic}-a", f"{topic}-b"], "s")
    assert isinstance(consumer, blocking.MultiTopicsConsumer)
    assert len(consumer.topics()) == 2
    for name in ("a", "b"):
        fill(client, f"{topic}-{name}", 50)
    messages = [consumer.receive(30_000) for _ in range(100)]
    consumer.acknowledge_cumulative(messages[-1])
    for message in messages:
        consumer.acknowledge(message)
    assert len(consumer.get_last_message_ids()) == 2
    assert isinstance(consumer.get_last_message_id(), blocking.MultiMessageId)
    assert not consumer.has_message_available()
    consumer.seek(blocking.MessageId.earliest)
    assert sorted(int(consumer.receive(30_000).data()) for _ in range(100)) == sorted(
        [*range(50), *range(50)]
    )
    consumer.redeliver_unacknowledged_messages()
    with pytest.raises(blocking.OperationNotSupportedError):
        consumer.pause_message_listener()


def test_a_pattern(client: blocking.Client, topic: str) -> None:
    fill(client, f"{topic}-x", 3)
    pattern = re.compile(f"persistent://public/default/{topic}-.*")
    consumer = client.subscribe(pattern, "s", initial_position=blocking.InitialPosition.Earliest)
    assert isinstance(consumer, blocking.PatternConsumer)
    assert [int(consumer.receive(30_000).data()) for _ in range(3)] == [0, 1, 2]
