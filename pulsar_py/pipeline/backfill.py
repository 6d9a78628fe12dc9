"""`backfill`: a table of a lake into a topic, so that it can be repeated.

Keys, event times and properties are those of the table's columns `__key`, `__eventTime` and
`__messageProperties`; what the messages were once goes along as properties:

    original-message-id      base64 of `__messageId`
    original-topic           `__topic`
    original-publish-time    milliseconds of `__publishTime`

Repeatable means: the same table under the same name sends the same rows under the same sequence
ids, so the topic drops what it has. Therefore the cut into tasks does not depend on the machine:
with an order, rows are spread by key and sorted in each task; without one, files are cut by size
alone, and have to be the same ones. `first_run` refuses what is not the same. Another table under
the same name is another backfill.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulsar_py.common.clock import SystemClock
from pulsar_py.common.names import TopicName
from pulsar_py.pipeline.first_run import (
    CUT_SETTINGS,
    DIRECTORY,
    Run,
    check_notes,
    mark_of,
    remember_or_refuse,
)
from pulsar_py.pipeline.lake import Snapshot, read_snapshot, snapshot_of
from pulsar_py.pipeline.runner import run_job
from pulsar_py.pipeline.sessions import use_session
from pulsar_py.pipeline.settings import Guarantee, TopicTarget, quoted
from pulsar_py.pipeline.tables import Target
from pulsar_py.pipeline.topics import select, write_batch
from pulsar_py.pipeline.watch import Watch
from pulsar_py.spark.writing.sent_jobs import has_rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROPERTIES: Final = "__messageProperties"
ORIGINALS: Final = {
    "original-message-id": ("__messageId", "base64({0})"),
    "original-topic": ("__topic", "{0}"),
    "original-publish-time": ("__publishTime", "cast(unix_millis({0}) as string)"),
}
"""Properties, the column each is made of, and how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillSettings:
    """What is sent where."""

    source: Target
    target: TopicTarget
    name: str
    """The identity of the job."""
    order_by: Sequence[str] = ()
    """Columns by which rows of a key are ordered; if they put later rows last, the table may grow
    between two runs."""
    tasks: int = 8
    """Among which rows are spread; part of the job's identity."""
    rows_per_second: float | None = None
    where: str | None = None
    select: str | None = None
    notes: Path | None = None
    """Directory that remembers first runs; None for one in the table's own. A note that the table
    has counts in any case."""

    def notes_for(self, file_name: str) -> Path:
        """The directory that has, or gets, the note of that name."""
        own = self.source.path / DIRECTORY
        return own if self.notes is None or (own / file_name).exists() else self.notes


def check(settings: BackfillSettings) -> None:
    """Refuse what can't begin, without Spark.

    Raises:
        ConfigurationError: There is no table, or its note can't be written.
    """
    snapshot = snapshot_of(settings.source)
    if settings.target.guarantee is Guarantee.EXACTLY_ONCE:
        name = run_of(settings, snapshot, {}).file_name
        check_notes(settings.notes_for(name), name)


def backfill(session: SparkSession, settings: BackfillSettings, watch: Watch | None = None) -> None:
    """Send all rows; returns when they are stored.

    Raises:
        ConfigurationError: What went to the topic under this name was something else, or the
            session can't be used.
    """
    use_session(session)
    # The number of files' pieces must not depend on the number of cores.
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
    run_job(session, lambda: write_batch(rows, target), watch or Watch())


def run_of(settings: BackfillSettings, snapshot: Snapshot, cut: Mapping[str, str]) -> Run:
    """What the numbers of rows depend on: of files and their cut only if no order is given."""
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
    """SQL for the columns of messages, out of those of the table."""
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
    """Rows of a key in one task; those without one, and all if there are no keys, in the first."""
    key = "__key" if "__key" in rows.columns else None
    spread = rows.repartition(tasks, key) if key else rows.repartition(1)
    return spread.sortWithinPartitions(*order_by)


def throttled(session: SparkSession, rows: DataFrame, rows_per_second: float) -> DataFrame:
    """The same rows, no faster than that over all tasks that run at once."""
    from pyspark.sql import functions  # noqa: PLC0415 - late on purpose

    share = rows_per_second / session.sparkContext.defaultParallelism
    # Not by Arrow: that would need pandas, and rows wait here anyway.
    pace = functions.udf(pace_of(share), "boolean", useArrow=False).asNondeterministic()
    return rows.where(pace())


def pace_of(rows_per_second: float) -> Callable[[], bool]:
    """A call for each row of a task, which returns True when the row's turn has come."""
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
