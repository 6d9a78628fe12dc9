"""The `aggregate` pipeline: counts, sums and other aggregates by key and time window.

With a checkpoint it is a streaming query that resumes where it stopped. It writes a window once,
when the watermark has passed its end, and drops rows behind the watermark. Open windows are kept in
the checkpoint, so all settings but the watermark have to stay. Without a checkpoint it is a batch
over all messages that exist.

A table gets the columns `window_start` and `window_end`, the keys and the aggregates. A topic gets
the same as JSON; the keys, joined by `|`, are the message's key, and the window's end is its event
time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.names import TopicName
from pulsar_py.pipeline.lake import LakeSettings, LakeWriter, start_table_stream
from pulsar_py.pipeline.resuming.checkpoints import Setting, check_query
from pulsar_py.pipeline.running.runner import run_job, run_query
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.columns import quoted
from pulsar_py.pipeline.settings.topics import TopicRange, TopicTarget
from pulsar_py.pipeline.topics import (
    Streaming,
    read_batch,
    read_stream,
    send,
    split_expressions,
    start_stream,
    write_batch,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_ALIAS: Final = re.compile(r"(.+?)\s+as\s+([A-Za-z_]\w*)", re.IGNORECASE | re.DOTALL)
JSON_KEY: Final = "__key"
APPLICATION: Final = "aggregate"


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSettings:
    """The aggregates, and the table or the topic that they are written to."""

    source: TopicRange
    keys: Sequence[str]
    """SQL expressions: `name` or `expression as name`."""
    aggregates: str
    """SQL expressions, separated by commas: `count`, `sum(amount)`, `max(x) as top`."""
    window_seconds: float
    slide_seconds: float | None = None
    time_column: str = "__publishTime"
    watermark_seconds: float = 60.0
    where: str | None = None
    lake: LakeSettings | None = None
    topic: TopicTarget | None = None
    streaming: Streaming | None = None


def aggregate(
    session: SparkSession, settings: AggregateSettings, watch: Watch | None = None
) -> None:
    """Aggregate the messages that exist now, or go on until stopped.

    Raises:
        ConfigurationError: There is no target or there are two, the windows or columns are invalid,
            or the checkpoint began with other settings.
        TableConflictError: Another aggregation has replaced the table meanwhile.
        StoppedError: The watch requested a stop.
    """
    watch = watch or Watch()
    if (settings.lake is None) == (settings.topic is None):
        raise ConfigurationError("aggregate: give either a table or a topic to write to")
    check(settings)
    if settings.streaming is not None:
        check_query(settings.streaming.checkpoint, kept_settings(settings))
    if settings.lake is not None:
        _into_table(session, settings, LakeWriter(settings.lake, watch), watch)
        return
    assert settings.topic is not None, "one of the two is set, checked above"
    windows = windows_of(_rows(session, settings), settings)
    messages = windows.selectExpr(*json_message([alias for _, alias in aliased(settings.keys)]))
    # After a shuffle rows come in another order at each attempt, but window and key identify a
    # row: so the writer can sort by them.
    target = replace(settings.topic, sequence_order=f"columns:__eventTime,{JSON_KEY},value")
    if settings.streaming is None:
        send(session, lambda: write_batch(messages, target), target, watch)
    else:
        run_query(start_stream(messages, target, settings.streaming), watch)


def check(settings: AggregateSettings) -> None:
    """Refuse windows without a length, slides that skip time, and two columns of one name.

    Raises:
        ConfigurationError: One of these is so; the message names the option.
    """
    aliased(settings.keys)
    window, slide = round(settings.window_seconds * 1000), settings.slide_seconds
    if window < 1:
        raise ConfigurationError(
            f"--window: {settings.window_seconds:g} s is too short, a window has at least 1 ms"
        )
    if slide is not None and not 1 <= round(slide * 1000) <= window:
        raise ConfigurationError(
            f"--slide: {slide:g} s is not between 1 ms and the length of the windows,"
            f" {settings.window_seconds:g} s"
        )


def kept_settings(settings: AggregateSettings) -> dict[str, Setting]:
    """The settings that a query can't change while windows are open; the watermark can change."""
    topic = settings.topic
    has_slide = settings.slide_seconds not in (None, settings.window_seconds)
    return {
        "--to": None if topic is None else str(TopicName.parse(topic.topic)),
        "--key": ", ".join(settings.keys),
        "--agg": settings.aggregates,
        "--window": settings.window_seconds,
        "--slide": settings.slide_seconds if has_slide else None,
        "--time": settings.time_column,
        "--where": settings.where,
    }


def _rows(session: SparkSession, settings: AggregateSettings) -> DataFrame:
    return (read_batch if settings.streaming is None else read_stream)(session, settings.source)


def _into_table(
    session: SparkSession, settings: AggregateSettings, writer: LakeWriter, watch: Watch
) -> None:
    if settings.streaming is not None:
        windows = windows_of(_rows(session, settings), settings)
        run_query(start_table_stream(windows, writer, settings.streaming), watch)
        return
    transaction = writer.next_transaction(APPLICATION)
    windows = windows_of(_rows(session, settings), settings)
    run_job(session, lambda: writer.replace(windows, transaction), watch)


def windows_of(rows: DataFrame, settings: AggregateSettings) -> DataFrame:
    """A data frame with a row for each window and key."""
    from pyspark.sql import functions  # noqa: PLC0415 - loads pyspark

    if settings.where is not None:
        rows = rows.where(settings.where)
    keys = aliased(settings.keys)
    made = aliased([counted(each) for each in split_expressions(settings.aggregates)])
    slide = settings.window_seconds if settings.slide_seconds is None else settings.slide_seconds
    window = functions.window(
        settings.time_column, interval(settings.window_seconds), interval(slide)
    )
    grouped = rows.withWatermark(
        settings.time_column, interval(settings.watermark_seconds)
    ).groupBy(window.alias("window"), *(functions.expr(sql).alias(name) for sql, name in keys))
    return grouped.agg(*(functions.expr(sql).alias(name) for sql, name in made)).selectExpr(
        # Quoted, because with ANSI SQL's reserved words enforced, `end` could not be a name.
        "window.`start` as window_start",
        "window.`end` as window_end",
        *(quoted(name) for _, name in (*keys, *made)),
    )


def counted(expression: str) -> str:
    """The expression; `count` without parentheses becomes SQL that counts rows."""
    return "count(1) as count" if expression.lower() == "count" else expression


def aliased(expressions: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of an SQL expression and the name of its column.

    The name is the one after `as`, otherwise the words of the expression: `sum_x` for `sum(x)`.

    Raises:
        ConfigurationError: Two columns have the same name.
    """
    found = []
    for text in expressions:
        named = _ALIAS.fullmatch(text.strip())
        words = "_".join(_WORD.findall(text)).strip("_")
        found.append((named[1], named[2]) if named else (text.strip(), words or "value"))
    names = [name for _, name in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigurationError(f"two columns are called {sorted(twice)}; rename one with `as`")
    return found


def json_message(keys: Sequence[str]) -> list[str]:
    """SQL expressions that make a message of a window's row: value, key and event time."""
    texts = ", ".join(f"cast({quoted(each)} as string)" for each in keys)
    return [
        "to_json(struct(*)) as value",
        f"concat_ws('|', {texts}) as {JSON_KEY}",
        "window_end as `__eventTime`",
    ]


def interval(seconds: float) -> str:
    """A duration in the form of Spark's SQL."""
    return f"{round(seconds * 1000)} milliseconds"
