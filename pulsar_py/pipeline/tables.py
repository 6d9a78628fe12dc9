"""Tables of a lake: their names, their files, and what they may become (pure).

A table is a directory of Parquet files and a log that says which of them count. Files are written
first and become part of the table by one commit, which carries the identity of the batch they hold:
application and batch number. A batch that is in the log already is left out, so that repeating it
is safe. `manifest` has a log of our own, `delta` that of Delta Lake.

Schemas are those of Spark as JSON; Delta Lake's are the same. Columns may be added and may become
wider; a column that is not written any more stays and is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from pulsar_py.common.errors import ConfigurationError, PulsarError

Schema = dict[str, Any]  # Any: a StructType's JSON

NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
STAGING: Final = "_staging"
SUFFIX: Final = ".parquet"

_WIDENINGS: Final = {
    ("byte", "short"),
    ("byte", "integer"),
    ("byte", "long"),
    ("short", "integer"),
    ("short", "long"),
    ("integer", "long"),
    ("float", "double"),
}


class TableSchemaError(ConfigurationError):
    """Rows do not fit a table; the message names the column and both types."""


class TableConflictError(PulsarError):
    """Another writer of a table was faster; the table is as that one left it."""


class TableFormat(Enum):
    """Whose log a table has."""

    PARQUET = "parquet"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class Target:
    """A table, as `parquet:path` or `delta:path`."""

    format: TableFormat
    path: Path

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read its text.

        Raises:
            ConfigurationError: The format is unknown, or the path is not one of this machine.
        """
        kind, separator, place = text.partition(":")
        try:
            table_format = TableFormat(kind)
        except ValueError:
            table_format = None
        if table_format is None or not separator or not place:
            raise ConfigurationError(f"{text!r} is neither parquet:PATH nor delta:PATH")
        url = urlsplit(place)
        if url.scheme not in {"", "file"}:
            raise ConfigurationError(
                f"{text!r}: files are put in place by renaming, so the path has to be one of a"
                " local or shared file system"
            )
        return cls(table_format, Path(unquote(url.path) if url.scheme else place).absolute())

    def __str__(self) -> str:
        return f"{self.format.value}:{self.path}"


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


def merged_schema(old: Schema | None, new: Schema) -> Schema:
    """The columns of a table after rows of `new` were added; the old order, then what is new.

    Raises:
        TableSchemaError: A column has another type, which is not wider.
    """
    if old is None:
        return {"type": "struct", "fields": [_nullable(each) for each in new["fields"]]}
    fields = {each["name"]: each for each in old["fields"]}
    for each in new["fields"]:
        name = each["name"]
        fields[name] = _merged(fields[name], each) if name in fields else _nullable(each)
    return {"type": "struct", "fields": list(fields.values())}


def _nullable(field: Mapping[str, Any]) -> Schema:  # Any: JSON
    return {**field, "nullable": True, "metadata": {}}


def _merged(old: Schema, new: Mapping[str, Any]) -> Schema:  # Any: JSON
    before, after = old["type"], new["type"]
    if _same_type(before, after) or (_both_names(before, after) and (after, before) in _WIDENINGS):
        return old
    if _both_names(before, after) and (before, after) in _WIDENINGS:
        return {**old, "type": after}
    if _is_struct(before) and _is_struct(after):
        return {**old, "type": merged_schema(before, dict(after))}
    raise TableSchemaError(
        f"column {old['name']!r} is {_name_of(before)} in the table and {_name_of(after)} in the"
        " rows"
    )


def _both_names(one: object, other: object) -> bool:
    return isinstance(one, str) and isinstance(other, str)


def _is_struct(kind: object) -> bool:
    return isinstance(kind, dict) and kind.get("type") == "struct"


def _name_of(kind: object) -> object:
    return kind.get("type") if isinstance(kind, dict) else kind


def _same_type(one: Any, other: Any) -> bool:  # Any: JSON
    """Equal but for what may be null."""
    return bool(_bare(one) == _bare(other))


def _bare(kind: Any) -> Any:  # Any: JSON
    if isinstance(kind, dict):
        kept = ("nullable", "containsNull", "valueContainsNull", "metadata")
        return {name: _bare(value) for name, value in kind.items() if name not in kept}
    return [_bare(each) for each in kind] if isinstance(kind, list) else kind


def with_metadata(schema: Schema, written: Schema | None) -> Schema:
    """The columns of a table, with what those of rows said about themselves beside their types."""
    if written is None:
        return schema
    told = {each["name"]: each["metadata"] for each in written["fields"]}
    fields = [{**each, "metadata": told.get(each["name"], {})} for each in schema["fields"]]
    return {"type": "struct", "fields": fields}


def widened_columns(old: Schema, new: Schema) -> list[str]:
    """Columns whose type in `new` is another than in `old`."""
    before = {each["name"]: each["type"] for each in old["fields"]}
    return [
        each["name"]
        for each in new["fields"]
        if each["name"] in before and not _same_type(before[each["name"]], each["type"])
    ]


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
