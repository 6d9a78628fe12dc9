"""`TopicTraffic`: what load reports say of a topic, without the rest of its statistics (pure).

A broker reports its load whenever topics come or go by a tenth, just when it has most to do. All
statistics of a topic cost many times what these sums do.
"""

from __future__ import annotations

from msgspec import Struct

from pulsar_py.server.topics.topic import Topic


class TopicTraffic(Struct, frozen=True, kw_only=True):
    """One topic at one moment; rates are per second over the last window, as in its statistics."""

    message_in_rate: float = 0.0
    bytes_in_rate: float = 0.0
    message_out_rate: float = 0.0
    bytes_out_rate: float = 0.0
    producers_count: int = 0
    consumers_count: int = 0


def traffic_of(topic: Topic) -> TopicTraffic:
    """The sums of its producers and consumers now; work in proportion to their number."""
    incoming = [each.in_rates for each in topic.producers.values()]
    outgoing = [
        consumer.out_rates
        for subscription in topic.subscriptions.values()
        for consumer in subscription.consumers
    ]
    return TopicTraffic(
        message_in_rate=sum(messages for messages, _ in incoming),
        bytes_in_rate=sum(size for _, size in incoming),
        message_out_rate=sum(messages for messages, _ in outgoing),
        bytes_out_rate=sum(size for _, size in outgoing),
        producers_count=len(incoming),
        consumers_count=len(outgoing),
    )
