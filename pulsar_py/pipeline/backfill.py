"""The `backfill` pipeline: writes a table into a topic, and can be repeated.

Keys, event times and properties come from the table's columns `__key`, `__eventTime` and
`__messageProperties`. The origin of rows that were messages is kept in properties:

    original-message-id      base64 of `__messageId`
    original-topic           `__topic`
    original-publish-time    milliseconds of `__publishTime`

Each run of the same table under the same name sends the same rows with the same sequence ids, so
the broker drops those that it has. For that, the division into tasks does not depend on the
machine: with an order, rows are distributed by key and sorted in each task; without one, files are
split by size alone, and have to stay the same. `resuming.first_run` refuses a run that differs.
Another table under the same name is another backfill.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.names import TopicName
from pulsar_py.pipeline.lake import Snapshot, read_snapshot, snapshot_of
from pulsar_py.pipeline.resuming.first_run import (
    CUT_SETTINGS,
    DIRECTORY,
    Run,
    check_notes,
    mark_of,
    remember_or_refuse,
)
from pulsar_py.pipeline.running.sessions import use_session
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.columns import quoted
from pulsar_py.pipeline.settings.topics import Guarantee, TopicTarget
from pulsar_py.pipeline.tables.places import Target
from pulsar_py.pipeline.topics import select, send, write_batch
from pulsar_py.spark.writing.sent_jobs import has_rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROPERTIES: Final = "__messageProperties"
ORIGINALS: Final = {
    "original-message-id": ("__messageId", "base64({0})"),
    "original-topic": ("__topic", "{0}"),
    "original-publish-time": ("__publishTime", "cast(unix_millis({0}) as string)"),
}
"""Properties of the origin, each with its column and the SQL that converts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillSettings:
    """The table, the topic, and the rows and their order."""

    source: Target
    target: TopicTarget
    name: str
    """The identity of the job: the same name, table and topic repeat it."""
    order_by: Sequence[str] = ()
    """Columns by which rows of a key are ordered; if they put later rows last, the table may grow
    between two runs."""
    tasks: int = 8
    """The number of tasks among which rows are distributed; a repetition needs the same."""
    rows_per_second: float | None = None
    where: str | None = None
    select: str | None = None
    notes: Path | None = None
    """The directory of notes of first runs; None for one in the table's directory. A note that is
    in the table's directory is used in any case."""

    def notes_for(self, file_name: str) -> Path:
        """The directory that has the note of this name, or gets it."""
        own = self.source.path / DIRECTORY
        return own if self.notes is None or (own / file_name).exists() else self.notes


def check(settings: BackfillSettings) -> None:
    """Refuse a backfill that can't begin; needs no Spark.

    Raises:
        ConfigurationError: The table is missing or empty, or its note can't be written.
    """
    snapshot = snapshot_of(settings.source)
    if settings.target.guarantee is Guarantee.EXACTLY_ONCE:
        name = run_of(settings, snapshot, {}).file_name
        check_notes(settings.notes_for(name), name)


def backfill(session: SparkSession, settings: BackfillSettings, watch: Watch | None = None) -> None:
    """Send all rows; returns when the broker has stored them.

    Raises:
        ConfigurationError: The first run under this name differed, or the session can't be used.
        StoppedError: The watch requested a stop.
    """
    use_session(session)
    # By default Spark splits files by the number of cores, which may differ in the next run.
    session.conf.set("spark.sql.files.minPartitionNum", str(settings.tasks))
    snapshot = snapshot_of(settings.source)
    rows = read_snapshot(session, snapshot)
    rows = rows.selectExpr(*message_columns(rows.columns))
    rows = select(rows, where=settings.where, select=settings.select)
    if settings.order_by:
        rows = ordered_by_key(rows, settings.order_by, settings.tasks)
    if settings.rows_per_second is not None:
        rows = throttled(session, rows, settings.rows_per_second)
    target = settings.target
    if target.guarantee is Guarantee.EXACTLY_ONCE:
        cut = {name: session.conf.get(name, None) or "" for name in CUT_SETTINGS}
        now = run_of(settings, snapshot, cut)
        notes = settings.notes_for(now.file_name)
        options = target.connector_options()
        first = remember_or_refuse(
            notes,
            now,
            is_known=lambda key: has_rows_of(options, key, settings.tasks),
            clock=SystemClock(),
            is_shared=notes == settings.notes,
        )
        target = replace(target, idempotency_key=first.key, sequence_order=first.order)
    send(session, lambda: write_batch(rows, target), target, watch or Watch())


def run_of(settings: BackfillSettings, snapshot: Snapshot, cut: Mapping[str, str]) -> Run:
    """The settings on which the numbers of rows depend.

    Files and the settings for splitting them are among these only if no order is given.
    """
    is_sorted = bool(settings.order_by)
    return Run(
        name=settings.name,
        table=str(settings.source),
        topic=str(TopicName.parse(settings.target.topic)),
        order="columns:" + ",".join(settings.order_by) if is_sorted else "input",
        tasks=settings.tasks,
        where=settings.where,
        select=settings.select,
        files=None if is_sorted else mark_of(snapshot.files),
        cut={} if is_sorted else cut,
    )


def message_columns(columns: Sequence[str]) -> list[str]:
    """SQL expressions for the columns of messages, made of the table's columns."""
    made = [quoted(each) for each in columns if each not in (PROPERTIES, "__topic")]
    entries = [
        f"'{name}', {form.format(quoted(column))}"
        for name, (column, form) in ORIGINALS.items()
        if column in columns
    ]
    names = ", ".join(f"'{name}'" for name in ORIGINALS)
    old = "map()"
    if PROPERTIES in columns:
        kept = f"map_filter({quoted(PROPERTIES)}, (k, v) -> k not in ({names}))"
        old = f"coalesce({kept}, map())"
    if entries:
        new = f"map_filter(map({', '.join(entries)}), (k, v) -> v is not null)"
        made.append(
            f"map_concat(cast({old} as map<string, string>), {new}) as {quoted(PROPERTIES)}"
        )
    elif PROPERTIES in columns:
        made.append(quoted(PROPERTIES))
    return made


def ordered_by_key(rows: DataFrame, order_by: Sequence[str], tasks: int) -> DataFrame:
    """The rows sorted within tasks, with all rows of a key in one task.

    Rows without a key are in one task, too; so are all rows of a table without keys.
    """
    key = "__key" if "__key" in rows.columns else None
    spread = rows.repartition(tasks, key) if key else rows.repartition(1)
    return spread.sortWithinPartitions(*order_by)


def throttled(session: SparkSession, rows: DataFrame, rows_per_second: float) -> DataFrame:
    """The same rows, delayed so that all tasks that run at one time together keep to the rate."""
    from pyspark.sql import functions  # noqa: PLC0415 - loads pyspark

    share = rows_per_second / session.sparkContext.defaultParallelism
    # Without Arrow: it would need pandas, and only to be fast, while this function is to delay.
    pace = functions.udf(pace_of(share), "boolean", useArrow=False).asNondeterministic()
    return rows.where(pace())


def pace_of(rows_per_second: float) -> Callable[[], bool]:
    """A function that is called for each row of a task, and returns True when the row is due."""
    began: list[float] = []
    passed = 0

    def wait() -> bool:
        nonlocal passed
        clock = SystemClock()
        if not began:
            began.append(clock.monotonic_seconds())
        due = began[0] + passed / rows_per_second
        passed += 1
        left = due - clock.monotonic_seconds()
        if left > 0:
            threading.Event().wait(left)
        return True

    return wait
