"""What a checkpoint is of: a query, its batches, and the table or topic they went to (edge).

    checkpoint/metadata          {"id": "<query>"}            Spark's
    checkpoint/offsets/12        what batch 12 reads          Spark's, before the batch begins
    checkpoint/commits/12        batch 12 is through          Spark's
    checkpoint/_pulsar_py.json   what the query does          ours
    {"version": 1, "query": {"--window": 60.0, ...}, "batch": {"--where": null, ...}}

A table's log has the query and its newest batch, too. Where the two do not agree, one of them is
another one, or was put back to an older state: rows would be missing that are thought to be there.
A topic can't be asked, so what a query does is noted here. Checkpoints on other file systems than
this machine's are Hadoop's, and are not looked at.

Source: StreamMetadata, OffsetSeqLog and CommitLog in Spark.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.local_disk import sync_file
from pulsar_py.pipeline.tables.directories import sync_directory
from pulsar_py.pipeline.tables.places import local_path

NOTE: Final = "_pulsar_py.json"
VERSION: Final = 1
NONE: Final = -1

Setting = str | float | bool | None


class TableWithBatches(Protocol):
    """What is asked of a table here."""

    path: Path

    def last_batch(self, application: str) -> int | None:
        """The newest batch of an application that is in the log."""


@dataclass(frozen=True, slots=True)
class Batches:
    """How far a query has come; `NONE` before the first batch."""

    query_id: str
    planned: int
    done: int

    @property
    def is_midway(self) -> bool:
        """Whether a batch was begun, and has not come to its end."""
        return self.planned > self.done


def batches_in(checkpoint: Path) -> Batches | None:
    """What a checkpoint tells; None if no query has been started with it.

    Raises:
        ConfigurationError: It can't be read.
    """
    try:
        query_id = json.loads((checkpoint / "metadata").read_text())["id"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(f"checkpoint: {checkpoint}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ConfigurationError(
            f"checkpoint: {checkpoint / 'metadata'} does not name its query: it is damaged"
        ) from None
    return Batches(query_id, _newest(checkpoint / "offsets"), _newest(checkpoint / "commits"))


def _newest(log: Path) -> int:
    return max((int(each.name) for each in log.glob("*") if each.name.isdigit()), default=NONE)


def check_table(checkpoint: str, table: TableWithBatches) -> None:
    """Refuse a checkpoint and a table that do not go together.

    Raises:
        ConfigurationError: It is of another table, or one of the two is older than the other.
    """
    directory = local_path(checkpoint)
    found = None if directory is None else batches_in(directory)
    if found is None:
        return
    last = table.last_batch(found.query_id)
    last = NONE if last is None else last
    here = "none of its batches" if last == NONE else f"its batches up to {last}"
    if last < found.done:
        raise ConfigurationError(
            f"checkpoint {checkpoint}: its query has written batches up to {found.done}, and"
            f" {table.path} has {here}: it is of another table, or the table was deleted or put"
            " back to an older state. Rows would be missing; a new --checkpoint reads all again"
        )
    if last > found.planned:
        come = "to none" if found.planned == NONE else f"to batch {found.planned}"
        raise ConfigurationError(
            f"checkpoint {checkpoint}: its query has come {come}, and {table.path} has {here}: the"
            " checkpoint was put back to an older state. Rows would be left out as if they were"
            " there; a new --checkpoint reads all again, into a new table"
        )


def check_query(
    checkpoint: str,
    settings: Mapping[str, Setting],
    of_a_batch: Mapping[str, Setting] | None = None,
) -> None:
    """Refuse to go on with other settings than a query began with, and note what they are.

    Args:
        checkpoint: Of the query.
        settings: What may not change, by option.
        of_a_batch: What may change between two batches only.

    Raises:
        ConfigurationError: It names the option, and what it was.
    """
    directory = local_path(checkpoint)
    if directory is None:
        return
    now = {"query": dict(settings), "batch": dict(of_a_batch or {})}
    found = batches_in(directory)
    before = _read(directory / NOTE)
    if found is not None and found.planned != NONE:
        if changed := _difference(before["query"], now["query"]):
            raise ConfigurationError(
                f"checkpoint {checkpoint}: {changed}: what was read so far would be taken for what"
                " these settings make of it; they need another --checkpoint"
            )
        if found.is_midway and (changed := _difference(before["batch"], now["batch"])):
            raise ConfigurationError(
                f"checkpoint {checkpoint}: {changed}, and batch {found.planned} was begun: rows of"
                " it would be left out or sent twice. Let it end as it was begun, or, if its rows"
                " may come twice, with --guarantee at-least-once"
            )
        if found.is_midway:
            # Rows that were sent under numbers are there, also if this attempt goes without.
            now["batch"] = before["batch"] | now["batch"]
    if now != before:
        _write(directory / NOTE, now)


def _difference(before: Mapping[str, Setting], now: Mapping[str, Setting]) -> str | None:
    for name, value in now.items():
        if name in before and before[name] != value:
            return f"{name} was {before[name]!r}, and is {value!r}"
    return None


def _read(note: Path) -> dict[str, dict[str, Any]]:  # Any: JSON
    try:
        text = note.read_text()
    except FileNotFoundError:
        return {"query": {}, "batch": {}}  # the query is new, or was begun by an older version
    try:
        stored = json.loads(text)
        version = stored["version"]
        record = {name: dict(stored[name]) for name in ("query", "batch")}
    except (ValueError, KeyError, TypeError):
        raise ConfigurationError(
            f"checkpoint: {note} does not tell what its query does: it is damaged. It can be"
            " deleted if the options are those that the query began with"
        ) from None
    if version != VERSION:
        raise ConfigurationError(
            f"checkpoint: {note}: version {version!r}, this pulsar_py reads {VERSION}"
        )
    return record


def _write(note: Path, record: Mapping[str, Mapping[str, Setting]]) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    temporary = note.with_name(f"{uuid.uuid4().hex}.tmp")
    temporary.write_text(json.dumps({"version": VERSION, **record}))
    sync_file(temporary)
    temporary.replace(note)
    sync_directory(note.parent)
