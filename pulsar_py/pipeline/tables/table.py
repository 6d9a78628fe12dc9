"""Tables of a lake: their names, their files, and what they may become (pure).

A table is a directory of Parquet files and a log that says which of them count. Files are written
first and become part of the table by one commit, which carries the identity of the batch they hold:
application and batch number. A batch that is in the log already is left out, so that repeating it
is safe. `manifest` has a log of our own, `delta` that of Delta Lake.

Schemas are those of Spark as JSON; Delta Lake's are the same. Columns may be added and may become
wider, also those of records in records, arrays and maps; a column that is not written any more
stays and is null. Names of SQL have no case, so a table with both `id` and `Id` could not be read.
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
    """Another writer of a table was faster; the table is as that one left it."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """One Parquet file of a table."""

    path: str
    """Below the table, with slashes."""
    size_bytes: int
    rows_count: int

    @property
    def partition(self) -> str:
        """The directory it is in; empty for a table without partitions."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Transaction:
    """The identity of a batch: who writes, and its number, ascending."""

    application: str
    batch_id: int

    @property
    def file_prefix(self) -> str:
        """What the names of its files begin with."""
        return f"{self.application}-{self.batch_id:08}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What becomes of a table in one go."""

    added: Sequence[TableFile]
    schema: Schema
    partition_by: Sequence[str] = ()
    transaction: Transaction | None = None
    is_overwrite: bool = False


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """How many small files became how many."""

    files_before: int
    files_after: int


class LakeTable(Protocol):
    """A directory of files with a log; one implementation for each format."""

    path: Path

    def schema(self) -> Schema | None:
        """The columns; None if there is no table yet."""

    def last_batch(self, application: str) -> int | None:
        """The newest batch of an application that is in the log."""

    def files(self) -> Sequence[TableFile]:
        """The files that count."""

    def unlogged(self, paths: Sequence[str]) -> Sequence[str]:
        """Those of some files that no reader of the log knows, so that they may be deleted."""

    def commit(self, commit: Commit) -> bool:
        """Make files part of the table.

        Returns:
            False if the log has that batch already: then nothing has changed.

        Raises:
            TableSchemaError: The rows do not fit.
            TableConflictError: Another writer changed the table meanwhile.
        """

    def compact(self, target_bytes: int) -> CompactionResult:
        """Make small files into few of about that size; rows stay what they are."""


def partition_values(path: str) -> dict[str, str | None]:
    """The values that a file's directories stand for, by column."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, separator, value = part.partition("=")
        if separator:
            values[unquote(name)] = None if value == NULL_PARTITION else unquote(value)
    return values


def small_file_groups(files: Sequence[TableFile], target_bytes: int) -> list[list[TableFile]]:
    """Files of one partition each that together make one of about the target's size.

    A file is small below three quarters of the target; a group has at least two.
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
