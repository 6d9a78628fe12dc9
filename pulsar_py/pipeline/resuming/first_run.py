"""Notes of a backfill's first run, by which a repetition is allowed or refused (edge).

    table/_backfill/<digest of name and topic>.json
    {"version": 2, "name": "nightly", "table": "parquet:/data/t", "topic": "persistent://...",
     "order": "input", "tasks": 8, "where": null, "select": null, "files": [3, 1200, "<digest>"],
     "cut": {"spark...": "..."}}

The broker recognizes a repeated row by its number within its task. So everything that the numbers
depend on has to be the same in each run: how rows are selected, ordered and distributed among
tasks; and, if no order is given, the files and Spark's settings for splitting these. A merge of
small files makes other files of the same rows, and an export adds some. After these, numbers stand
for other rows, and the topic would drop some and take others twice.

Rows of two tables under one name would have the same numbers, so the producers' names contain the
table, too (`Run.key`). A note in the table's own directory moves with the table, and the key keeps
the place of the first run. In a directory that notes of several tables share, a table that was
moved can't be told from another one, so there another place is refused.

`difference` and `other_table` decide. `remember_or_refuse` keeps the file, which is written before
the first row is sent, and never changed. If the topic has rows of a backfill that has no note, the
note lies elsewhere or was deleted, and which rows they were can't be known. If the note is old and
the topic has no rows, the broker may have forgotten them: it keeps producers' names for hours.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pulsar_py.common.disks.local_disk import sync_file
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.pipeline.settings.topics import job_key
from pulsar_py.pipeline.tables.directories import sync_directory
from pulsar_py.pipeline.tables.table import TableFile

DIRECTORY: Final = "_backfill"
"""The directory of notes in a table; readers of tables leave out names that begin with `_`."""
VERSION: Final = 2
CUT_SETTINGS: Final = (
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.maxPartitionNum",
)
"""Spark's settings that decide, with the sizes of files, how these are split into tasks."""
FORGOTTEN_SECONDS: Final = 360 * 60.0
"""The default of the broker's `brokerDeduplicationProducerInactivityTimeoutMinutes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that the numbers of a backfill's rows depend on."""

    name: str
    table: str
    """The table of the first run, as `str(Target)`."""
    topic: str
    order: str
    tasks: int
    where: str | None
    select: str | None
    # None if rows are sorted: then files may change between two runs.
    files: tuple[int, int, str] | None = None
    cut: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """The name of its note."""
        return sha256(f"{self.name}\0{self.topic}".encode()).hexdigest()[:32] + ".json"

    @property
    def key(self) -> str:
        """The idempotency key of its producers: the name and a digest of the table."""
        return job_key(self.name, self.table)


def mark_of(files: Sequence[TableFile]) -> tuple[int, int, str]:
    """The number of files, their bytes, and a digest of their names and sizes in sorted order."""
    lines = sorted(f"{each.size_bytes} {each.path}\n" for each in files)
    digest = sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    return len(files), sum(each.size_bytes for each in files), digest


def difference(first: Run, now: Run) -> str | None:
    """The first setting that differs, with both values; None if `now` repeats the first run."""
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
    """Whether the table is another one than that of the first run, as far as can be known.

    Args:
        first: The first run, from the note.
        now: The run that is about to begin.
        note: The note's file.
        is_shared: Whether the note lies in a directory of notes, not in a table's.
    """
    if first.table == now.table:
        return False
    before, _, place = first.table.partition(":")
    if is_shared or before != now.table.partition(":")[0]:
        return True
    # The note lies in the table's own directory. So the table was moved; if the old place still has
    # the note, it was copied.
    left = Path(place, DIRECTORY, note.name)
    return left.exists() and not left.samefile(note)


def check_notes(directory: Path, file_name: str) -> None:
    """Check that a note exists or can be written.

    Raises:
        ConfigurationError: Neither is so; the message names the path and the options that help.
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
    """Write the note of a first run, or check a run against its note; returns the first run.

    Args:
        directory: The directory of the note; it may be missing yet.
        now: The run that is about to begin.
        is_known: Whether the topic has rows under a key; called if there is no note, or an old one.
        clock: Gives the age of a note.
        is_shared: Whether `directory` may have notes of several tables.

    Raises:
        ConfigurationError: The run differs from the first one of its name and topic, the note can't
            be written, or the rows that were sent can't be known any more.
    """
    path = directory / now.file_name
    what = f"backfill {now.name!r} of {now.table} to {now.topic}"
    try:
        if not path.exists():
            if is_known(now.key):
                raise ConfigurationError(
                    f"{what}: the topic has rows of it, but the note of its first run is missing,"
                    f" {path}: which rows they were can't be known. Give the --notes of the first"
                    " run, or another --name, which sends all rows"
                )
            _write(path, now)
        first = _read(path)
        age_seconds = clock.wall_time_millis() / 1000 - path.stat().st_mtime
    except OSError as error:
        raise _unwritable(path, error) from None
    if other_table(first, now, path, is_shared=is_shared):
        raise ConfigurationError(
            f"backfill {now.name!r} to {now.topic}: by the note {path} its table is {first.table},"
            f" not {now.table}: the broker would take rows of one for those of the other. Another"
            " table needs another --name; if it is the same one at another place, and nothing was"
            " sent yet, delete the note"
        )
    if (differs := difference(first, now)) is not None:
        raise ConfigurationError(
            f"{what} differs from its first run under this name: {differs}; rows would be left out"
            " or sent twice. Another --name sends all rows; with --order-by, by columns that put"
            " later rows last, a backfill can be repeated while the table grows. If nothing was"
            f" sent yet, delete {path}"
        )
    if age_seconds > FORGOTTEN_SECONDS and not is_known(first.key):
        raise ConfigurationError(
            f"{what} ran first {age_seconds / 3600:.0f} hours ago, and the broker knows no rows of"
            " it: it forgets producers that are away for longer than"
            " brokerDeduplicationProducerInactivityTimeoutMinutes, and rows that were sent would"
            f" come twice. Another --name sends all rows; if nothing was sent yet, delete {path}"
        )
    return first


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"{path}: {error.strerror}; a backfill keeps a note there, so that it can be repeated"
        " (--notes DIR keeps notes elsewhere, --guarantee at-least-once needs none)"
    )


def _write(path: Path, now: Run) -> None:
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
    temporary.write_text(json.dumps({"version": VERSION, **asdict(now)}))
    sync_file(temporary)
    try:
        path.hardlink_to(temporary)  # the note appears whole, and never replaces another
    except FileExistsError:
        pass  # another run has just written its note, and is the first
    finally:
        temporary.unlink()
    sync_directory(path.parent)


def _read(path: Path) -> Run:
    record: dict[str, Any] = json.loads(path.read_text())  # Any: JSON
    if (version := record.pop("version")) != VERSION:
        raise ConfigurationError(
            f"{path} has version {version!r}, and this pulsar_py reads {VERSION}: use another"
            " --name"
        )
    files = record.pop("files")
    return Run(**record, files=None if files is None else tuple(files))
