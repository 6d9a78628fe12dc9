"""What a backfill was when it ran first, so that another one is not taken for it.

    table/_backfill/<digest of name and topic>.json
    {"version": 2, "name": "nightly", "table": "parquet:/data/t", "topic": "persistent://...",
     "order": "input", "tasks": 8, "where": null, "select": null, "files": [3, 1200, "<digest>"],
     "cut": {"spark...": "..."}}

A row is told from others by its number in its task, so all that numbers depend on has to be the
same each time: how rows are chosen, ordered and spread; and where they come as the files have them,
the files and Spark's settings for cutting these. Compaction makes other files of the same rows, and
an export adds some: then numbers stand for other rows, which the topic would drop, or take twice.

Rows of two tables under one name would have the same numbers, so producers are named by the table,
too (`Run.key`). A note in the table's own directory goes where the table goes, and the key stays
that of the place where it ran first. A directory that notes of several tables share can't tell a
table that moved from another one, so there another place is refused.

`difference` and `other_table` decide; `remember_or_refuse` keeps the file, which is written before
the first row is sent and never changed. A topic that knows rows of a backfill without a note is a
sign that the note lies elsewhere, or was deleted: then nobody knows what they were. A topic that
knows none, though the note is old, may have forgotten them: brokers keep names for some hours.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.local_disk import sync_file
from pulsar_py.pipeline.settings.topics import job_key
from pulsar_py.pipeline.tables.directories import sync_directory
from pulsar_py.pipeline.tables.table import TableFile

DIRECTORY: Final = "_backfill"
"""In the table's own; readers leave out what begins so."""
VERSION: Final = 2
CUT_SETTINGS: Final = (
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.maxPartitionNum",
)
"""What Spark cuts files into tasks by, beside their sizes."""
FORGOTTEN_SECONDS: Final = 360 * 60.0
"""`brokerDeduplicationProducerInactivityTimeoutMinutes` as it is by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that the numbers of rows depend on."""

    name: str
    table: str
    """As `Target` writes it, where it ran first."""
    topic: str
    order: str
    tasks: int
    where: str | None
    select: str | None
    # None where rows are sorted: then files may change.
    files: tuple[int, int, str] | None = None
    cut: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """Where it is remembered."""
        return sha256(f"{self.name}\0{self.topic}".encode()).hexdigest()[:32] + ".json"

    @property
    def key(self) -> str:
        """What its producers are named by: name and table."""
        return job_key(self.name, self.table)


def mark_of(files: Sequence[TableFile]) -> tuple[int, int, str]:
    """Count, bytes and a digest of names and sizes, in whatever order the files are listed."""
    lines = sorted(f"{each.size_bytes} {each.path}\n" for each in files)
    digest = sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    return len(files), sum(each.size_bytes for each in files), digest


def difference(first: Run, now: Run) -> str | None:
    """What is not as it was, with both values; None if the runs are of one backfill."""
    for name in ("order", "tasks", "where", "select"):
        before, after = getattr(first, name), getattr(now, name)
        if before != after:
            return f"{name}: {before!r} then, {after!r} now"
    if first.files is not None and now.files is not None and first.files != now.files:
        then, here = (f"{count} of {size} bytes" for count, size, _ in (first.files, now.files))
        return f"files: {then} then, {here if here != then else 'others of that size'} now"
    for name, value in now.cut.items():
        if first.cut.get(name, value) != value:
            return f"{name}: {first.cut[name]!r} then, {value!r} now"
    return None


def other_table(first: Run, now: Run, note: Path, *, is_shared: bool) -> bool:
    """Whether the table is not the one that ran first, as far as can be told.

    Args:
        first: What the note says.
        now: What is about to run.
        note: The note's file.
        is_shared: Whether the note may be of any table, because it lies in none.
    """
    if first.table == now.table:
        return False
    before, _, place = first.table.partition(":")
    if is_shared or before != now.table.partition(":")[0]:
        return True
    # In the table's own directory: it was moved, unless the old one is there with a note, too.
    left = Path(place, DIRECTORY, note.name)
    return left.exists() and not left.samefile(note)


def check_notes(directory: Path, file_name: str) -> None:
    """Whether a note is there, or can be written.

    Raises:
        ConfigurationError: Neither; the message names the path and what helps.
    """
    try:
        if not (directory / file_name).exists():
            directory.mkdir(exist_ok=True)
            trial = directory / f"{uuid.uuid4().hex}.tmp"
            trial.write_bytes(b"")
            trial.unlink()
    except OSError as error:
        raise _unwritable(directory, error) from None


def remember_or_refuse(
    directory: Path,
    now: Run,
    *,
    is_known: Callable[[str], bool],
    clock: Clock,
    is_shared: bool = False,
) -> Run:
    """Write down what runs, or see that it is what ran first; returns the latter.

    Args:
        directory: Need not be there yet.
        now: What is about to run.
        is_known: Whether the topic has rows under a key; asked if there is no note, or an old one.
        clock: Tells how old.
        is_shared: Whether `directory` may have notes of several tables.

    Raises:
        ConfigurationError: Something else ran under this name into this topic, or nothing can be
            written down, or what was sent can't be told any more.
    """
    path = directory / now.file_name
    what = f"backfill {now.name!r} of {now.table} to {now.topic}"
    try:
        if not path.exists():
            if is_known(now.key):
                raise ConfigurationError(
                    f"{what}: the topic has rows of it, and there is no note of its first run,"
                    f" {path}: what they were can't be told. Give the --notes of the first run, or"
                    " another --name, which sends all rows"
                )
            _write(path, now)
        first = _read(path)
        age_seconds = clock.wall_time_millis() / 1000 - path.stat().st_mtime
    except OSError as error:
        raise _unwritable(path, error) from None
    if other_table(first, now, path, is_shared=is_shared):
        raise ConfigurationError(
            f"backfill {now.name!r} to {now.topic} is of {first.table}, by the note {path}, and"
            f" this is {now.table}: rows of one table would be taken for those of the other."
            " Another table needs another --name; if it is the same one at another place, and"
            " nothing was sent yet, delete the note"
        )
    if (differs := difference(first, now)) is not None:
        raise ConfigurationError(
            f"{what} is not what ran first under this"
            f" name: {differs}; rows would be left out or sent twice. Another --name sends all"
            " rows, and one with --order-by, by columns that put later rows last, can be repeated"
            f" while the table grows; if nothing was sent yet, delete {path}"
        )
    if age_seconds > FORGOTTEN_SECONDS and not is_known(first.key):
        raise ConfigurationError(
            f"{what} ran first {age_seconds / 3600:.0f} hours ago, and the topic knows no rows of"
            " it: brokers forget producers that are away for longer than"
            " brokerDeduplicationProducerInactivityTimeoutMinutes, and what was sent would come"
            f" twice. Another --name sends all rows; if nothing was sent yet, delete {path}"
        )
    return first


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"{path}: {error.strerror}; a backfill notes there what it sends, so that it can be"
        " repeated (--notes DIR keeps notes elsewhere, --guarantee at-least-once does without)"
    )


def _write(path: Path, now: Run) -> None:
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
    temporary.write_text(json.dumps({"version": VERSION, **asdict(now)}))
    sync_file(temporary)
    try:
        path.hardlink_to(temporary)  # whole, or not at all
    except FileExistsError:
        pass  # another was faster, and is the first
    finally:
        temporary.unlink()
    sync_directory(path.parent)


def _read(path: Path) -> Run:
    record: dict[str, Any] = json.loads(path.read_text())  # Any: JSON
    if (version := record.pop("version")) != VERSION:
        raise ConfigurationError(f"{path}: version {version!r}, this pulsar_py reads {VERSION}")
    files = record.pop("files")
    return Run(**record, files=None if files is None else tuple(files))
