"""The interface of tables, and the values in it: files, transactions, commits (pure).

A table is a directory of Parquet files, and a log that says which of them count. Files are written
first. One commit then makes them part of the table; it carries the identity of their batch, which
is an application and a batch number. A batch that the log has already is not added again, so a
batch can be repeated safely. `manifest` implements a log of our own, `delta` uses Delta Lake's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote

from pulsar_py.common.errors import PulsarError
from pulsar_py.pipeline.tables.schemas import Schema

NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
STAGING: Final = "_staging"
SUFFIX: Final = ".parquet"


class TableConflictError(PulsarError):
    """Another writer has changed the table meanwhile; this writer's change was not made."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """One Parquet file of a table."""

    path: str
    """Relative to the table's directory, with slashes."""
    size_bytes: int
    rows_count: int

    @property
    def partition(self) -> str:
        """The directory of the file; empty in a table without partitions."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Transaction:
    """The identity of a batch: the writing application, and a number that ascends."""

    application: str
    batch_id: int

    @property
    def file_prefix(self) -> str:
        """The prefix of the names of the batch's files."""
        return f"{self.application}-{self.batch_id:08}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A change of a table that is made as a whole or not at all."""

    added: Sequence[TableFile]
    schema: Schema
    partition_by: Sequence[str] = ()
    transaction: Transaction | None = None
    is_overwrite: bool = False


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The numbers of files that were merged, and that they became."""

    files_before: int
    files_after: int


class LakeTable(Protocol):
    """A directory of files with a log; each format implements it."""

    path: Path

    def schema(self) -> Schema | None:
        """The schema; None if there is no table yet."""

    def last_batch(self, application: str) -> int | None:
        """The number of an application's newest batch in the log; None if there is none."""

    def files(self) -> Sequence[TableFile]:
        """The files that count, in no particular order."""

    def unlogged(self, paths: Sequence[str]) -> Sequence[str]:
        """Those of the given files that no reader of the log can reach: they may be deleted."""

    def commit(self, commit: Commit) -> bool:
        """Make files part of the table.

        Returns:
            False if the log has the batch already; the table is unchanged then.

        Raises:
            TableSchemaError: The rows don't fit the table's columns.
            TableConflictError: Other writers kept changing the table meanwhile.
        """

    def compact(self, target_bytes: int) -> CompactionResult:
        """Merge small files into fewer ones of about that size; the rows stay the same."""


def partition_values(path: str) -> dict[str, str | None]:
    """The values of the partition columns that a file's directories stand for."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, separator, value = part.partition("=")
        if separator:
            values[unquote(name)] = None if value == NULL_PARTITION else unquote(value)
    return values


def small_file_groups(files: Sequence[TableFile], target_bytes: int) -> list[list[TableFile]]:
    """Groups of small files to merge; each group has files of one partition.

    A file is small below three quarters of the target size. A group has at least two files, which
    together have about the target size.
    """
    by_partition: dict[str, list[TableFile]] = {}
    for each in sorted(files, key=lambda file: file.path):
        if each.size_bytes * 4 < target_bytes * 3:
            by_partition.setdefault(each.partition, []).append(each)
    groups: list[list[TableFile]] = []
    for small in by_partition.values():
        group: list[TableFile] = []
        size = 0
        for each in small:
            if group and size + each.size_bytes > target_bytes:
                groups.append(group)
                group, size = [], 0
            group.append(each)
            size += each.size_bytes
        groups.append(group)
    return [group for group in groups if len(group) > 1]
