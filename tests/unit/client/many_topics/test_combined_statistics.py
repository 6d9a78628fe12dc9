"""Statistics of parts, added up."""

from __future__ import annotations

from pulsar_py.client.many_topics.combined_statistics import combine
from pulsar_py.client.shared.statistics import ConsumerCounters


def test_counts_add_up_and_the_interval_is_the_longest() -> None:
    first, second = ConsumerCounters(0.0), ConsumerCounters(2.0)
    first.messages_received, second.messages_received = 3, 4
    first.bytes_received = 100
    combined = combine(
        [first.peek(4.0, receiver_queue_size=5), second.peek(4.0, receiver_queue_size=6)]
    )
    assert combined.interval_seconds == 4.0
    assert combined.messages_received == combined.total_messages_received == 7
    assert combined.bytes_received == 100
    assert combined.messages_rate == 3 / 4 + 4 / 2
    assert combined.receiver_queue_size == 11


def test_no_parts_make_zeros() -> None:
    assert combine([]).interval_seconds == 0
