"""The numbers of a topic's traffic, and the HTML page that shows them (pure).

`Traffic` has what Spark counted. `page` makes a self-contained HTML page of it, which loads no
scripts, fonts or other files. Times are in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Final

from pulsar_py.pipeline.measuring.lags import duration_text
from pulsar_py.pipeline.measuring.svg import Bar, bytes_text, columns, count_text, rows

BUCKET_SECONDS: Final = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 86_400, 7 * 86_400)
MAX_BUCKETS: Final = 120
LATENESS_EDGES: Final = (0, 1, 10, 60, 600, 3600, 86_400)
"""Lower bounds of the classes of lateness, in seconds."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The messages that were published in one interval."""

    start_seconds: int
    messages: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """The messages that a subscription has not acknowledged."""

    subscription: str
    entries: int
    messages: int
    """Among those that were read for the report."""
    oldest_millis: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The numbers of a report."""

    topic: str
    made_millis: int
    messages: int
    size_bytes: int
    first_millis: int
    last_millis: int
    bucket_seconds: int
    buckets: Sequence[Bucket]
    sizes: Mapping[int, int]
    """Messages by the largest power of two that is not above their size; -1 for empty ones."""
    keys_count: int
    top_keys: Sequence[tuple[str, int]]
    without_key: int
    lateness: Mapping[int, int]
    """Messages with an event time by their class in `LATENESS_EDGES`; -1 if it is after the publish
    time."""
    partitions: Sequence[tuple[str, int]]
    backlogs: Sequence[Backlog]


def bucket_seconds(first_millis: int, last_millis: int) -> int:
    """The shortest interval, in seconds, that divides the time into at most `MAX_BUCKETS`."""
    span = (last_millis - first_millis) / 1000
    for each in BUCKET_SECONDS:
        if span / each < MAX_BUCKETS - 1:
            return each
    return int(span / MAX_BUCKETS / 86_400 + 1) * 86_400


def filled(buckets: Sequence[Bucket], length_seconds: int) -> list[Bucket]:
    """The buckets, with empty ones added for intervals in which nothing was published."""
    found = {each.start_seconds: each for each in buckets}
    if not found:
        return []
    starts = range(min(found), max(found) + 1, length_seconds)
    return [found.get(start, Bucket(start, 0, 0)) for start in starts]


def page(traffic: Traffic) -> str:
    """The HTML page of a topic's traffic."""
    sections = "".join(
        f"<section><h2>{escape(title)}</h2><p>{escape(note)}</p>{plot}</section>"
        for title, note, plot in _sections(traffic)
    )
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in _facts(traffic)
    )
    title = escape(f"Traffic of {traffic.topic}")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main><h1>{title}</h1>"
        f"<dl>{facts}</dl>{sections}</main></body></html>\n"
    )


def _facts(traffic: Traffic) -> Iterator[tuple[str, str]]:
    span = max(1.0, (traffic.last_millis - traffic.first_millis) / 1000)
    yield "messages", count_text(traffic.messages)
    yield "bytes", bytes_text(traffic.size_bytes)
    yield "average size", bytes_text(traffic.size_bytes / max(1, traffic.messages))
    yield "average rate", f"{count_text(traffic.messages / span)}/s"
    yield "keys", count_text(traffic.keys_count)
    if traffic.messages:
        yield "first", time_text(traffic.first_millis)
        yield "last", time_text(traffic.last_millis)
    yield "made", time_text(traffic.made_millis)


def _sections(traffic: Traffic) -> Iterator[tuple[str, str, str]]:
    if not traffic.messages:
        yield "Nothing", "There are no messages in this range.", ""
    buckets = filled(traffic.buckets, traffic.bucket_seconds)
    if buckets:
        seconds = traffic.bucket_seconds
        labels = [time_text(each.start_seconds * 1000) for each in buckets]
        counts = [each.messages / seconds for each in buckets]
        sizes = [each.size_bytes / seconds for each in buckets]
        note = f"by publish time, {duration_text(seconds)} each"
        bars = [Bar(*each) for each in zip(labels, counts, strict=True)]
        yield "Messages a second", note, columns(bars, text_of=count_text)
        bars = [Bar(*each) for each in zip(labels, sizes, strict=True)]
        yield "Bytes a second", note, columns(bars, text_of=bytes_text)
    if traffic.sizes:
        bars = [Bar(_size_label(power), count) for power, count in sorted(traffic.sizes.items())]
        yield "Sizes", "messages by the size of their payload", columns(bars, text_of=count_text)
    if traffic.top_keys:
        note = f"the most frequent of about {traffic.keys_count:,}; {traffic.without_key:,} without"
        bars = [Bar(*each) for each in traffic.top_keys]
        yield "Keys", note, rows(bars, text_of=count_text)
    if traffic.lateness:
        bars = [Bar(_late_label(edge), count) for edge, count in sorted(traffic.lateness.items())]
        yield "Lateness", "publish time after event time", rows(bars, text_of=count_text)
    if len(traffic.partitions) > 1:
        bars = [Bar(*each) for each in traffic.partitions]
        yield "Partitions", "messages of each", rows(bars, text_of=count_text)
    if traffic.backlogs:
        bars = [Bar(_backlog_label(each, traffic), each.messages) for each in traffic.backlogs]
        note = "messages of this range that each subscription has not acknowledged"
        yield "Backlog by subscription", note, rows(bars, text_of=count_text)


def _size_label(power: int) -> str:
    return "0 B" if power < 0 else f"{bytes_text(2**power)}+"


def _late_label(edge: int) -> str:
    if edge < 0:
        return "event in the future"
    after = next((each for each in LATENESS_EDGES if each > edge), None)
    if after is None:
        return f"{duration_text(edge)} and more"
    return f"{duration_text(edge)} to {duration_text(after)}"


def _backlog_label(backlog: Backlog, traffic: Traffic) -> str:
    if backlog.oldest_millis is None:
        return backlog.subscription
    age = (traffic.made_millis - backlog.oldest_millis) / 1000
    return f"{backlog.subscription} ({duration_text(age)} old)"


def time_text(millis: int) -> str:
    """A time as `2026-01-31 10:15:30 UTC`."""
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #667085; --paper: #fff;
  --line: #e4e7ec; --mark: #3466c2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --soft: #98a2b3; --paper: #14171c; --line: #2c323c; --mark: #7aa5f5; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 760px; margin: 0 auto; padding: 32px 20px; }
h1 { font-size: 20px; overflow-wrap: anywhere; } h2 { font-size: 16px; margin: 32px 0 0; }
p { margin: 0 0 8px; color: var(--soft); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(160px, 1fr)); gap: 12px; }
dt { color: var(--soft); font-size: 13px; } dd { margin: 0; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--line); } .mark { fill: var(--mark); }
"""
