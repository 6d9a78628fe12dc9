"""Rows of `pulsar-py top`: rates between two answers of a broker (pure).

A broker's own rates are means of a minute. These here are differences of its counters, so they tell
the last seconds; a counter that went back belongs to a topic that was loaded anew, and counts from
0. Producers have no counter of their own: for what a connection publishes, the broker's rate is
taken.

Source: `broker-stats/topics` of Pulsar's admin API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

__all__ = ["Order", "Row", "TopSnapshot", "TopView", "rows_between"]

Json = Mapping[str, Any]  # Any: JSON


class TopView(StrEnum):
    """What rows are about."""

    TOPICS = "topics"
    SUBSCRIPTIONS = "subscriptions"
    CONNECTIONS = "connections"


class Order(StrEnum):
    """The column that rows are sorted by, the largest first; names from A on."""

    RATE = "rate"
    BYTES = "bytes"
    BACKLOG = "backlog"
    NAME = "name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One topic, subscription or connection."""

    name: str
    messages_in: float = 0.0
    """A second; for subscriptions nothing comes in."""
    bytes_in: float = 0.0
    messages_out: float = 0.0
    bytes_out: float = 0.0
    backlog: int = 0
    """Entries that are not acknowledged; of a topic those of its subscriptions together."""
    unacked: int = 0
    """Messages that were sent and not acknowledged."""
    producers: int = 0
    consumers: int = 0
    state: str = ""
    """Of a subscription why it does not move, in codes; of a connection its client's version."""


@dataclass(frozen=True, slots=True)
class TopSnapshot:
    """An answer of a broker, and when it came."""

    seconds: float
    """By a clock that only goes forward."""
    topics: Mapping[str, Json]

    @classmethod
    def of(cls, seconds: float, answer: Json, namespace: str | None = None) -> TopSnapshot:
        """Read a snapshot from JSON, perhaps of one namespace alone."""
        found: dict[str, Json] = {}
        for name, bundles in (answer or {}).items():
            if namespace is not None and name != namespace:
                continue
            for kinds in bundles.values():
                for topics in kinds.values():
                    found |= topics
        return cls(seconds, found)


_KEYS: Final[Mapping[Order, Callable[[Row], Any]]] = {  # Any: what sorts
    Order.RATE: lambda row: -(row.messages_in + row.messages_out),
    Order.BYTES: lambda row: -(row.bytes_in + row.bytes_out),
    Order.BACKLOG: lambda row: -row.backlog,
    Order.NAME: lambda row: row.name,
}


def rows_between(before: TopSnapshot, after: TopSnapshot, view: TopView, order: Order) -> list[Row]:
    """All rows of the later snapshot, sorted; rates are since the earlier one."""
    seconds = max(after.seconds - before.seconds, 0.001)
    make = {
        TopView.TOPICS: _topics,
        TopView.SUBSCRIPTIONS: _subscriptions,
        TopView.CONNECTIONS: _connections,
    }[view]
    return sorted(make(before, after, seconds), key=lambda row: (_KEYS[order](row), row.name))


def _rate(before: Json, after: Json, counter: str, seconds: float) -> float:
    now, then = after.get(counter, 0), before.get(counter, 0)
    return float(now - then if now >= then else now) / seconds


def _topics(before: TopSnapshot, after: TopSnapshot, seconds: float) -> Iterator[Row]:
    for name, topic in after.topics.items():
        old = before.topics.get(name, topic)
        subscriptions = topic.get("subscriptions", {}).values()
        yield Row(
            name=name,
            messages_in=_rate(old, topic, "msgInCounter", seconds),
            bytes_in=_rate(old, topic, "bytesInCounter", seconds),
            messages_out=_rate(old, topic, "msgOutCounter", seconds),
            bytes_out=_rate(old, topic, "bytesOutCounter", seconds),
            backlog=sum(each.get("msgBacklog", 0) for each in subscriptions),
            unacked=sum(each.get("unackedMessages", 0) for each in subscriptions),
            producers=len(topic.get("publishers", ())),
            consumers=sum(len(each.get("consumers", ())) for each in subscriptions),
        )


def _subscriptions(before: TopSnapshot, after: TopSnapshot, seconds: float) -> Iterator[Row]:
    for topic_name, topic in after.topics.items():
        olds = before.topics.get(topic_name, topic).get("subscriptions", {})
        for name, subscription in topic.get("subscriptions", {}).items():
            old = olds.get(name, subscription)
            yield Row(
                name=f"{topic_name} {name}",
                messages_out=_rate(old, subscription, "msgOutCounter", seconds),
                bytes_out=_rate(old, subscription, "bytesOutCounter", seconds),
                backlog=subscription.get("msgBacklog", 0),
                unacked=subscription.get("unackedMessages", 0),
                consumers=len(subscription.get("consumers", ())),
                state=" ".join(subscription.get("standstill", ())),
            )


def _connections(before: TopSnapshot, after: TopSnapshot, seconds: float) -> Iterator[Row]:
    found: dict[str, Row] = {}
    for topic_name, topic in after.topics.items():
        for producer in topic.get("publishers", ()):
            row = _row_of(found, producer)
            found[row.name] = replace(
                row,
                messages_in=row.messages_in + producer.get("msgRateIn", 0.0),
                bytes_in=row.bytes_in + producer.get("msgThroughputIn", 0.0),
                producers=row.producers + 1,
            )
        olds = before.topics.get(topic_name, {}).get("subscriptions", {})
        for name, subscription in topic.get("subscriptions", {}).items():
            known = {_place(each): each for each in olds.get(name, {}).get("consumers", ())}
            for consumer in subscription.get("consumers", ()):
                row = _row_of(found, consumer)
                old = known.get(_place(consumer), consumer)
                found[row.name] = replace(
                    row,
                    messages_out=row.messages_out + _rate(old, consumer, "msgOutCounter", seconds),
                    bytes_out=row.bytes_out + _rate(old, consumer, "bytesOutCounter", seconds),
                    unacked=row.unacked + consumer.get("unackedMessages", 0),
                    consumers=row.consumers + 1,
                )
    return iter(found.values())


def _place(client: Json) -> tuple[str, str]:
    return str(client.get("address")), str(client.get("consumerName"))


def _row_of(found: Mapping[str, Row], client: Json) -> Row:
    address = str(client.get("address", "?")).removeprefix("/")
    return found.get(address) or Row(name=address, state=str(client.get("clientVersion", "")))
