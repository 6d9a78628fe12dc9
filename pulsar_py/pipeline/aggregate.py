"""`aggregate`: counts, sums and so on by key and window of time, with a watermark.

A window is written once it is over and the watermark has passed its end, so each comes once; what
is later than the watermark is dropped. With a checkpoint it goes on where it stopped; the windows
that are open then are kept in it, so all but the watermark has to be as it was. Without one it is a
batch over all that is there.

To a table go the columns `window_start`, `window_end`, those of the keys and of the aggregates. To
a topic goes the same as JSON, with the keys, joined by `|`, as the message's key, and the end of
the window as its event time.
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
    """What is added up, and where it goes: a table or a topic."""

    source: TopicRange
    keys: Sequence[str]
    """SQL; `name` or `expression as name`."""
    aggregates: str
    """SQL separated by commas: `count`, `sum(amount)`, `max(x) as top`."""
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
    """Run until all that is there was taken in, or until stopped.

    Raises:
        ConfigurationError: There is no target, or there are two, or an expression makes no sense,
            or the checkpoint is of other windows.
        TableConflictError: Another aggregation has replaced the table meanwhile.
    """
    watch = watch or Watch()
    if (settings.lake is None) == (settings.topic is None):
        raise ConfigurationError("aggregate: a table or a topic is needed, one of them")
    check(settings)
    if settings.streaming is not None:
        check_query(settings.streaming.checkpoint, kept_settings(settings))
    if settings.lake is not None:
        _into_table(session, settings, LakeWriter(settings.lake, watch), watch)
        return
    assert settings.topic is not None, "checked above"
    windows = windows_of(_rows(session, settings), settings)
    messages = windows.selectExpr(*json_message([alias for _, alias in aliased(settings.keys)]))
    # After a shuffle rows come in any order; window and key say which is which.
    target = replace(settings.topic, sequence_order=f"columns:__eventTime,{JSON_KEY},value")
    if settings.streaming is None:
        run_job(session, lambda: write_batch(messages, target), watch)
    else:
        run_query(start_stream(messages, target, settings.streaming), watch)


def check(settings: AggregateSettings) -> None:
    """Refuse windows that are none, and columns of one name.

    Raises:
        ConfigurationError: It names the option.
    """
    aliased(settings.keys)
    window, slide = round(settings.window_seconds * 1000), settings.slide_seconds
    if window < 1:
        raise ConfigurationError(f"--window: {settings.window_seconds:g} s is no length of windows")
    if slide is not None and not 1 <= round(slide * 1000) <= window:
        raise ConfigurationError(
            f"--slide: {slide:g} s: windows of {settings.window_seconds:g} s begin at least one"
            " millisecond, and at most their length, after one another"
        )


def kept_settings(settings: AggregateSettings) -> dict[str, Setting]:
    """What a query can't change while windows are open; a watermark can be another one."""
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
    """A row for each window and key."""
    from pyspark.sql import functions  # noqa: PLC0415 - late on purpose

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
        # Quoted: `end` is a reserved word of ANSI SQL, which sessions may enforce.
        "window.`start` as window_start",
        "window.`end` as window_end",
        *(quoted(name) for _, name in (*keys, *made)),
    )


def counted(expression: str) -> str:
    """`count` alone counts rows."""
    return "count(1) as count" if expression.lower() == "count" else expression


def aliased(expressions: Sequence[str]) -> list[tuple[str, str]]:
    """SQL and the name of its column: the one given, or its words: `sum(x)` is `sum_x`.

    Raises:
        ConfigurationError: Two columns have one name.
    """
    found = []
    for text in expressions:
        named = _ALIAS.fullmatch(text.strip())
        words = "_".join(_WORD.findall(text)).strip("_")
        found.append((named[1], named[2]) if named else (text.strip(), words or "value"))
    names = [name for _, name in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigurationError(f"columns {sorted(twice)} are there twice; name them with `as`")
    return found


def json_message(keys: Sequence[str]) -> list[str]:
    """SQL for a message out of a window's row."""
    texts = ", ".join(f"cast({quoted(each)} as string)" for each in keys)
    return [
        "to_json(struct(*)) as value",
        f"concat_ws('|', {texts}) as {JSON_KEY}",
        "window_end as `__eventTime`",
    ]


def interval(seconds: float) -> str:
    """A length of time as Spark takes it."""
    return f"{round(seconds * 1000)} milliseconds"
