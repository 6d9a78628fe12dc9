"""The `report` pipeline: an HTML page about a topic's traffic, which Spark counts (edge).

Spark reads the metadata of the messages once, and keeps them while it counts. Backlogs are counted
from the mark-delete positions of the subscriptions, which only the admin API has. Without an admin
URL the page has no backlogs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.admin_client import AdminClient, AdminSettings
from pulsar_py.common.errors import ConfigurationError, ServiceError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.pipeline.measuring.traffic import (
    LATENESS_EDGES,
    Backlog,
    Bucket,
    Traffic,
    bucket_seconds,
    page,
)
from pulsar_py.pipeline.running.runner import run_job
from pulsar_py.pipeline.running.sessions import use_session
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.topics import TopicRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = Mapping[str, Any]  # Any: one of Spark's rows

TOP_KEYS: Final = 20
_SCHEMA: Final = (
    "`__key` binary, `__topic` string, `__publishTime` timestamp_ltz, `__eventTime` timestamp_ltz,"
    " `__ledgerId` bigint, `__entryId` bigint, `__size` int"
)
_COLUMNS: Final = "__key,__topic,__publishTime,__eventTime,__ledgerId,__entryId,__size"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSettings:
    """The range that is reported, and the file of the page."""

    source: TopicRange
    page: Path
    admin: AdminSettings | None = None
    """The admin API; None for a page without backlogs."""


def check(settings: ReportSettings) -> None:
    """Refuse a page that can't be written, before its topic is read.

    Raises:
        ConfigurationError: The page's directory is missing, or can't be written to.
    """
    directory = settings.page.absolute().parent
    if not directory.is_dir() or not os.access(directory, os.W_OK):
        raise ConfigurationError(
            f"--to: {settings.page}: {directory} is not a directory that can be written to"
        )


def report(session: SparkSession, settings: ReportSettings, watch: Watch | None = None) -> Traffic:
    """Write the page; returns its numbers.

    Raises:
        ConfigurationError: The session was stopped, or belongs to Spark Connect.
        OSError: The page can't be written; the error has its path.
    """
    use_session(session)
    traffic = run_job(session, lambda: measure_traffic(session, settings), watch or Watch())
    temporary = settings.page.with_name(f"{settings.page.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(page(traffic), encoding="utf-8")
        temporary.replace(settings.page)
    except OSError as error:  # an error for a full disk has no path
        raise OSError(error.errno, error.strerror, str(settings.page)) from error
    finally:
        temporary.unlink(missing_ok=True)
    return traffic


def measure_traffic(session: SparkSession, settings: ReportSettings) -> Traffic:
    """Count the messages of the range by time, size, key, lateness and partition."""
    options = settings.source.connector_options(is_streaming=False) | {"columns": _COLUMNS}
    rows = session.read.format("pulsar").schema(_SCHEMA).options(**options).load()
    rows = rows.selectExpr("*", "unix_millis(`__publishTime`) as millis").persist()
    try:
        return _count(rows, settings)
    finally:
        rows.unpersist()


def _count(rows: DataFrame, settings: ReportSettings) -> Traffic:
    total = _first(
        rows,
        "count(1) as messages",
        "coalesce(sum(`__size`), 0) as size",
        "coalesce(min(millis), 0) as first",
        "coalesce(max(millis), 0) as last",
        "approx_count_distinct(`__key`) as keys",
        "count_if(`__key` is null) as without_key",
    )
    seconds = bucket_seconds(total["first"], total["last"])
    buckets = _grouped(
        rows.where("millis is not null"),  # null if the producer's clock is beyond the year 9999
        f"floor(millis / 1000 / {seconds}) * {seconds} as start",
        "count(1) as messages",
        "sum(`__size`) as size",
    )
    sizes = _grouped(
        rows, "if(`__size` > 0, floor(log2(`__size`)), -1) as power", "count(1) as messages"
    )
    keys = (
        rows.where("`__key` is not null")
        .groupBy("__key")
        .count()
        .orderBy("count", ascending=False)
        .limit(TOP_KEYS)
        .collect()
    )
    late = _grouped(
        rows.where("`__eventTime` is not null"), f"{lateness_sql()} as edge", "count(1) as messages"
    )
    parts = _grouped(rows, "`__topic` as topic", "count(1) as messages")
    return Traffic(
        topic=settings.source.topic,
        made_millis=SystemClock().wall_time_millis(),
        messages=total["messages"],
        size_bytes=total["size"],
        first_millis=total["first"],
        last_millis=total["last"],
        bucket_seconds=seconds,
        buckets=[Bucket(int(each["start"]), each["messages"], each["size"]) for each in buckets],
        sizes={int(each["power"]): each["messages"] for each in sizes},
        keys_count=total["keys"],
        top_keys=[(bytes(each["__key"]).decode(errors="replace"), each["count"]) for each in keys],
        without_key=total["without_key"],
        lateness={int(each["edge"]): each["messages"] for each in late},
        partitions=sorted(
            (TopicName.parse(each["topic"]).local_name, each["messages"]) for each in parts
        ),
        backlogs=[] if settings.admin is None else _backlogs(rows, parts, settings.admin),
    )


def _first(rows: DataFrame, *expressions: str) -> Row:
    found: Row = rows.selectExpr(*expressions).collect()[0].asDict()
    return found


def _grouped(rows: DataFrame, key: str, *expressions: str) -> list[Row]:
    from pyspark.sql import functions  # noqa: PLC0415 - loads pyspark

    sql, _, name = key.rpartition(" as ")
    grouped = rows.groupBy(functions.expr(sql).alias(name))
    return [
        each.asDict()
        for each in grouped.agg(*(functions.expr(text) for text in expressions)).collect()
    ]


def lateness_sql() -> str:
    """SQL for the class of a row's lateness: its lower bound in seconds, or -1.

    -1 means that the event time is after the publish time.
    """
    late = "(unix_millis(`__publishTime`) - unix_millis(`__eventTime`))"
    cases = " ".join(f"when {late} >= {edge * 1000} then {edge}" for edge in LATENESS_EDGES[::-1])
    return f"case {cases} else -1 end"


def _backlogs(rows: DataFrame, parts: list[Row], settings: AdminSettings) -> list[Backlog]:
    """The backlogs of durable subscriptions: messages behind mark-delete, over all partitions."""
    positions: dict[str, dict[str, Position]] = {}
    entries: dict[str, int] = {}
    with AdminClient(settings) as admin:
        for part in parts:
            topic = part["topic"]
            try:
                marks = admin.internal_stats(topic).mark_delete_positions
                subscriptions = admin.stats(topic).subscriptions
            except ServiceError:
                continue  # deleted, or forbidden: the rest of the page is right without it
            for name, stats in subscriptions.items():
                if name in marks and stats.is_durable:
                    positions.setdefault(name, {})[topic] = marks[name]
                    entries[name] = entries.get(name, 0) + stats.backlog_entries
    backlogs = []
    for name, marks_by_topic in sorted(positions.items()):
        found = _first(
            rows.where(behind_sql(marks_by_topic)), "count(1) as messages", "min(millis) as oldest"
        )
        backlogs.append(Backlog(name, entries[name], found["messages"], found["oldest"]))
    return backlogs


def behind_sql(marks: Mapping[str, Position]) -> str:
    """SQL for rows that are behind the mark-delete position of their topic partition."""
    conditions = []
    for topic, mark in marks.items():
        name = topic.replace("\\", "\\\\").replace("'", "\\'")
        conditions.append(
            f"(`__topic` = '{name}' and (`__ledgerId` > {mark.ledger_id} or"
            f" (`__ledgerId` = {mark.ledger_id} and `__entryId` > {mark.entry_id})))"
        )
    return " or ".join(conditions)
