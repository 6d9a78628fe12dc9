"""Lags of subscriptions and queries: backlog, age, rates, time to drain, and their texts (pure).

The unit is the entry, as in the broker's backlog. A backlog drains at the rate of entries that are
sent for the first time, minus the rate of new ones. Brokers count new ones in messages; these are
converted by the messages in an entry that the subscription's consumers see on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from pulsar_py.admin_client import InternalStats, SubscriptionStats, TopicStats
from pulsar_py.common.position import Position
from pulsar_py.pipeline.running.progress import Value

NEGLIGIBLE_RATE = 0.001
"""Entries a second; a backlog that shrinks no faster counts as not shrinking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """The lag of one subscription, or of one query by its checkpoint, in one topic partition."""

    topic: str
    name: str
    kind: str
    """The subscription's type, or `checkpoint` for a query."""
    backlog_entries: int
    backlog_bytes: int
    """-1 if unknown."""
    age_seconds: int | None
    """Of the oldest message that is not acknowledged; None if it is unknown."""
    rate_in: float | None
    """Entries a second; None if it is unknown."""
    rate_out: float | None
    """Entries a second that are sent for the first time; None if it is unknown."""
    consumers: int

    @property
    def seconds_to_drain(self) -> float | None:
        """The time until the backlog is empty at these rates.

        None if it does not shrink, or a rate is unknown.
        """
        if not self.backlog_entries:
            return 0.0
        if self.rate_in is None or self.rate_out is None:
            return None
        rate = self.rate_out - self.rate_in
        return self.backlog_entries / rate if rate > NEGLIGIBLE_RATE else None


def subscription_lags(topic: str, stats: TopicStats, now_millis: int = 0) -> list[Lag]:
    """The lags of a topic partition's subscriptions, sorted by name.

    An empty backlog has the age 0. Without the current time ages are right for those alone.
    """
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
    """Whole seconds since a publish time; 0 if the producer's clock is ahead."""
    return max(0, now_millis - publish_millis) // 1000


def checkpoint_lag(topic: str, name: str, position: Position, stats: InternalStats) -> Lag:
    """The lag of a query: the entries from its next position to the topic partition's end."""
    left = stats.left_from(position)
    return Lag(
        topic=topic,
        name=name,
        kind="checkpoint",
        backlog_entries=left.entries_count,
        backlog_bytes=left.size_bytes,
        age_seconds=None,
        rate_in=None,
        rate_out=None,
        consumers=0,
    )


def lag_fields(lag: Lag) -> Mapping[str, Value]:
    """A lag for programs."""
    return asdict(lag) | {"seconds_to_drain": lag.seconds_to_drain}


NO_LAGS = (
    "there are no subscriptions, so nothing has a backlog; --checkpoint shows the lag of a Spark"
    " query that has no predefinedSubscription"
)

UNKNOWN = "-"
"""What a cell shows that nobody knows."""

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


def _drained_in(lag: Lag) -> str:
    seconds = lag.seconds_to_drain
    if seconds is not None:
        return duration_text(seconds)
    return UNKNOWN if lag.rate_out is None else "never"


def lag_cells(lag: Lag) -> Sequence[str]:
    """The cells of a lag's row in a table, in the order of `HEADERS`."""
    return (
        lag.topic.removeprefix("persistent://"),
        lag.name,
        lag.kind,
        f"{lag.backlog_entries:,}",
        UNKNOWN if lag.backlog_bytes < 0 else f"{lag.backlog_bytes:,}",
        duration_text(lag.age_seconds) or UNKNOWN,
        UNKNOWN if lag.rate_in is None else f"{lag.rate_in:,.1f}",
        UNKNOWN if lag.rate_out is None else f"{lag.rate_out:,.1f}",
        _drained_in(lag),
    )


def lag_block(lag: Lag) -> str:
    """A lag as two lines, for terminals that are too narrow for the table."""
    topic, name, *rest = lag_cells(lag)
    numbers = [f"{header} {cell}" for header, cell in zip(HEADERS[2:], rest, strict=True)]
    return f"{topic}  {name}\n    {', '.join(numbers)}"


def duration_text(seconds: float | None) -> str:
    """A duration in its two largest units: `2d 3h`, `5m 10s`, `7s`; empty for None."""
    if seconds is None:
        return ""
    left = round(seconds)
    parts = []
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"
