"""How far subscriptions and queries are behind, and how long they will be (pure).

The unit is the entry, as in the broker's backlog. A backlog drains at the rate at which entries are
sent for the first time less the one at which new ones arrive; the latter counts messages, and is
taken over with as many messages an entry as consumers see.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from pulsar_py.admin_client import InternalStats, SubscriptionStats, TopicStats
from pulsar_py.common.position import Position
from pulsar_py.pipeline.running.progress import Value

NEGLIGIBLE_RATE = 0.001
"""Entries a second below which nothing moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """One subscription, or one checkpoint, of one topic partition."""

    topic: str
    name: str
    kind: str
    """A subscription's type; `checkpoint` for a query's."""
    backlog_entries: int
    backlog_bytes: int
    """-1 if unknown."""
    age_seconds: int | None
    """Of the oldest message that is not acknowledged; None if nobody can say."""
    rate_in: float
    """Entries a second."""
    rate_out: float
    """Entries a second that are sent for the first time."""
    consumers: int

    @property
    def seconds_to_drain(self) -> float | None:
        """Until the backlog is gone if rates stay; None if it is not getting smaller."""
        if not self.backlog_entries:
            return 0.0
        rate = self.rate_out - self.rate_in
        return self.backlog_entries / rate if rate > NEGLIGIBLE_RATE else None


def subscription_lags(topic: str, stats: TopicStats, now_millis: int = 0) -> list[Lag]:
    """All subscriptions of a topic partition, by name; nothing is no backlog of any age."""
    lags = []
    for name, each in sorted(stats.subscriptions.items()):
        lags.append(
            Lag(
                topic=topic,
                name=name,
                kind=each.type,
                backlog_entries=each.backlog_entries,
                backlog_bytes=each.backlog_bytes,
                age_seconds=_age(stats, each, now_millis),
                rate_in=stats.message_rate_in / each.messages_per_entry,
                rate_out=each.entry_rate_out,
                consumers=each.consumers_count,
            )
        )
    return lags


def _age(stats: TopicStats, subscription: SubscriptionStats, now_millis: int) -> int | None:
    if not subscription.backlog_entries:
        return 0
    if subscription.oldest_publish_millis > 0:
        return age_of(subscription.oldest_publish_millis, now_millis)
    is_oldest = stats.oldest_backlog_subscription == subscription.name
    age = stats.oldest_backlog_age_seconds if is_oldest else -1
    return age if age >= 0 else None


def age_of(publish_millis: int, now_millis: int) -> int:
    """Seconds since then; clocks may differ."""
    return max(0, now_millis - publish_millis) // 1000


def checkpoint_lag(topic: str, name: str, position: Position, stats: InternalStats) -> Lag:
    """How far a query is behind the end of a topic partition."""
    left = stats.left_from(position)
    return Lag(
        topic=topic,
        name=name,
        kind="checkpoint",
        backlog_entries=left.entries_count,
        backlog_bytes=left.size_bytes,
        age_seconds=None,
        rate_in=0.0,
        rate_out=0.0,
        consumers=0,
    )


def lag_fields(lag: Lag) -> Mapping[str, Value]:
    """A lag as JSON has it."""
    return asdict(lag) | {"seconds_to_drain": lag.seconds_to_drain}


def lag_line(lag: Lag) -> str:
    """One line of JSON."""
    return json.dumps(lag_fields(lag))


NO_LAGS = (
    "there are no subscriptions, so nothing has a backlog; a query of Spark without a"
    " predefinedSubscription is seen by its --checkpoint"
)

HEADERS = (
    "topic",
    "subscription",
    "type",
    "backlog entries",
    "bytes",
    "age",
    "in/s",
    "out/s",
    "drained in",
)


def lag_cells(lag: Lag) -> Sequence[str]:
    """A lag as a row of a table."""
    return (
        lag.topic.removeprefix("persistent://"),
        lag.name,
        lag.kind,
        f"{lag.backlog_entries:,}",
        "" if lag.backlog_bytes < 0 else f"{lag.backlog_bytes:,}",
        duration_text(lag.age_seconds),
        f"{lag.rate_in:,.1f}",
        f"{lag.rate_out:,.1f}",
        "never" if lag.seconds_to_drain is None else duration_text(lag.seconds_to_drain),
    )


def lag_block(lag: Lag) -> str:
    """A lag as two lines, for where a row of a table would not fit."""
    topic, name, *rest = lag_cells(lag)
    numbers = [f"{header} {cell}" for header, cell in zip(HEADERS[2:], rest, strict=True) if cell]
    return f"{topic}  {name}\n    {', '.join(numbers)}"


def duration_text(seconds: float | None) -> str:
    """`2d 3h`, `5m 10s`, `7s`; empty for None."""
    if seconds is None:
        return ""
    left = round(seconds)
    parts = []
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"
