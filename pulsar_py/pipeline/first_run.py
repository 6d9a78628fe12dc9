"""What a backfill was when it ran first, so that another one is not taken for it.

    table/_backfill/<digest of name and topic>.json
    {"version": 1, "name": "nightly", "topic": "persistent://...", "order": "input", "tasks": 8,
     "where": null, "select": null, "files": [3, 1200, "<digest>"], "cut": {"spark...": "..."}}

A row is told from others by its number in its task, so all that numbers depend on has to be the
same each time: how rows are chosen, ordered and spread; and where they come as the files have them,
the files and Spark's settings for cutting these. Compaction makes other files of the same rows, and
an export adds some: then numbers stand for other rows, which the topic would drop, or take twice.

`difference` decides; `remember_or_refuse` keeps the file, which is written before the first row is
sent and never changed.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.tables import TableFile

DIRECTORY: Final = "_backfill"
"""In the table's own; readers leave out what begins so."""
VERSION: Final = 1
CUT_SETTINGS: Final = (
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.maxPartitionNum",
)
"""What Spark cuts files into tasks by, beside their sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that the numbers of rows depend on."""

    name: str
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


def remember_or_refuse(directory: Path, now: Run, table: str) -> None:
    """Write down what runs, or see that it is what ran first.

    Args:
        directory: Need not be there yet.
        now: What is about to run.
        table: For the message.

    Raises:
        ConfigurationError: Something else ran under this name into this topic, or nothing can be
            written down.
    """
    path = directory / now.file_name
    try:
        first = _first(path, now)
    except OSError as error:
        raise ConfigurationError(
            f"{path}: {error.strerror}; a backfill notes there what it sends, so that it can be"
            " repeated (--guarantee at-least-once does without)"
        ) from None
    if (differs := difference(first, now)) is not None:
        raise ConfigurationError(
            f"backfill {now.name!r} of {table} to {now.topic} is not what ran first under this"
            f" name: {differs}; rows would be left out or sent twice. Another --name sends all"
            " rows, and one with --order-by, by columns that put later rows last, can be repeated"
            f" while the table grows; if nothing was sent yet, delete {path}"
        )


def _first(path: Path, now: Run) -> Run:
    """What ran first, which is `now` if nothing did."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
        temporary.write_text(json.dumps({"version": VERSION, **asdict(now)}))
        try:
            path.hardlink_to(temporary)  # whole, or not at all
        except FileExistsError:
            pass  # another was faster, and is the first
        finally:
            temporary.unlink()
    record: dict[str, Any] = json.loads(path.read_text())  # Any: JSON
    if (version := record.pop("version")) != VERSION:
        raise ConfigurationError(f"{path}: version {version!r}, this pulsar_py reads {VERSION}")
    files = record.pop("files")
    return Run(**record, files=None if files is None else tuple(files))
