"""Checks that a query's checkpoint belongs to its table, and to the options it began with (edge).

    checkpoint/metadata          {"id": "<query>"}            written by Spark
    checkpoint/offsets/12        the offsets of batch 12      by Spark, before the batch begins
    checkpoint/commits/12        batch 12 has ended           by Spark
    checkpoint/_pulsar_py.json   the options of the query     by this module
    {"version": 1, "query": {"--window": 60.0, ...}, "batch": {"--where": null, ...}}

A table's log has the query and its newest batch, too. If it disagrees with the checkpoint, one of
them belongs to another query or was put back to an older state, and rows would be missing without
an error. A topic has no such record, so the options of a query are noted in its checkpoint.
Checkpoints on file systems that only Hadoop can reach are not checked.

Source: StreamMetadata, OffsetSeqLog and CommitLog in Spark.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from pulsar_py.common.disks.local_disk import sync_file
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.tables.directories import sync_directory
from pulsar_py.pipeline.tables.places import local_path

NOTE: Final = "_pulsar_py.json"
VERSION: Final = 1
NONE: Final = -1

Setting = str | float | bool | None


class TableWithBatches(Protocol):
    """The part of a table's interface that the check uses."""

    @property
    def path(self) -> Path:
        """Where it is; for messages."""

    def last_batch(self, application: str) -> int | None:
        """The number of an application's newest batch in the log; None if there is none."""


@dataclass(frozen=True, slots=True)
class Batches:
    """The newest batch that a query began, and the newest that ended; `NONE` before the first."""

    query_id: str
    planned: int
    done: int

    @property
    def is_midway(self) -> bool:
        """Whether a batch was begun and has not ended."""
        return self.planned > self.done


def batches_in(checkpoint: Path) -> Batches | None:
    """The query and batches of a checkpoint; None if no query has started with it.

    Raises:
        ConfigurationError: The checkpoint can't be read.
    """
    try:
        query_id = json.loads((checkpoint / "metadata").read_text())["id"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(f"checkpoint: {checkpoint}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ConfigurationError(
            f"checkpoint: {checkpoint / 'metadata'} is damaged: it does not name its query. A new"
            " --checkpoint reads all again"
        ) from None
    return Batches(query_id, _newest(checkpoint / "offsets"), _newest(checkpoint / "commits"))


def _newest(log: Path) -> int:
    return max((int(each.name) for each in log.glob("*") if each.name.isdigit()), default=NONE)


def check_table(checkpoint: str, table: TableWithBatches) -> None:
    """Refuse a checkpoint and a table that don't belong together.

    Raises:
        ConfigurationError: The checkpoint belongs to another table, or one of the two was put back
            to an older state.
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
            f" {table.path} has {here}: the checkpoint belongs to another table, or the table was"
            " deleted or put back to an older state. Rows would be missing; a new --checkpoint"
            " reads all again"
        )
    if last > found.planned:
        come = "to none" if found.planned == NONE else f"to batch {found.planned}"
        raise ConfigurationError(
            f"checkpoint {checkpoint}: its query has come {come}, and {table.path} has {here}: the"
            " checkpoint was put back to an older state. New rows would be left out as repetitions;"
            " a new --checkpoint reads all again, and needs a new table"
        )


def check_query(
    checkpoint: str,
    settings: Mapping[str, Setting],
    of_a_batch: Mapping[str, Setting] | None = None,
) -> None:
    """Refuse to resume a query with other settings than it began with, and note the settings.

    Args:
        checkpoint: The query's checkpoint, a path or URL.
        settings: Options that must stay, with their values.
        of_a_batch: Options that may change between two batches, not within one.

    Raises:
        ConfigurationError: A setting has changed; the error names it and both values.
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
                f"checkpoint {checkpoint}: {changed}: the query holds rows that were read with the"
                " old value; other settings need another --checkpoint"
            )
        if found.is_midway and (changed := _difference(before["batch"], now["batch"])):
            raise ConfigurationError(
                f"checkpoint {checkpoint}: {changed}, and batch {found.planned} was begun before:"
                " rows of it would be left out or sent twice. Run once with the old value, or, if"
                " its rows may come twice, with --guarantee at-least-once"
            )
        if found.is_midway:
            # An attempt with at-least-once has no such settings. Those of the earlier, numbered
            # attempt are kept, because some of its rows may be stored.
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
        return {"query": {}, "batch": {}}  # a new query, or one begun before there were notes
    try:
        stored = json.loads(text)
        version = stored["version"]
        record = {name: dict(stored[name]) for name in ("query", "batch")}
    except (ValueError, KeyError, TypeError):
        raise ConfigurationError(
            f"checkpoint: {note} is damaged: it does not have the options of its query. It can be"
            " deleted if the options are those that the query began with"
        ) from None
    if version != VERSION:
        raise ConfigurationError(
            f"checkpoint: {note} has version {version!r}, and this pulsar_py reads {VERSION}: use"
            " the pulsar_py that wrote it"
        )
    return record


def _write(note: Path, record: Mapping[str, Mapping[str, Setting]]) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    temporary = note.with_name(f"{uuid.uuid4().hex}.tmp")
    temporary.write_text(json.dumps({"version": VERSION, **record}))
    sync_file(temporary)
    temporary.replace(note)
    sync_directory(note.parent)
