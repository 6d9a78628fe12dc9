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
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from pulsar_py.common.errors import ConfigurationError, PulsarError

Schema = dict[str, Any]  # Any: a StructType's JSON

ColumnPath = tuple[str, ...]
"""Names down to a column; `element` in an array, `value` in a map."""

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
        kind, _, place = text.partition(":")
        is_known = kind in {each.value for each in TableFormat}
        try:
            url = urlsplit(place if is_known else text)
        except ValueError as error:
            raise ConfigurationError(f"{text!r}: {error}") from None
        if url.scheme not in {"", "file"} and (is_known or url.netloc):
            raise ConfigurationError(
                f"{text!r}: what is needed is parquet:PATH or delta:PATH on a local or shared file"
                " system: files are put in place by renaming, which object stores can't"
            )
        if not is_known or not place:
            raise ConfigurationError(f"{text!r} is neither parquet:PATH nor delta:PATH")
        path = local_path(place)
        assert path is not None, "its scheme was looked at"
        return cls(TableFormat(kind), path.absolute())

    def __str__(self) -> str:
        return f"{self.format.value}:{self.path}"


def local_path(place: str) -> Path | None:
    """A path, given as such or as a `file:` URL; None for URLs of what is no file system here."""
    url = urlsplit(place)
    if url.scheme not in {"", "file"}:
        return None
    return Path(unquote(url.path) if url.scheme else place)


def spark_place(place: str) -> str:
    """A path or URL as Spark takes it: that of a file has nothing in it encoded."""
    path = local_path(place) if urlsplit(place).scheme == "file" else None
    return place if path is None else f"file://{path.absolute()}"


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

    Records grow wherever they are: in records, arrays and values of maps.

    Raises:
        TableSchemaError: A column has another type, which is not wider, or a name that only case
            tells from another one.
    """
    return _merged_struct((), {"fields": []} if old is None else old, new)


def _merged_struct(path: ColumnPath, old: Schema, new: Schema) -> Schema:
    fields = {each["name"]: each for each in old["fields"]}
    alike = {name.lower(): name for name in fields}
    for each in new["fields"]:
        name = each["name"]
        if name in fields:
            kind = _merged_type((*path, name), fields[name]["type"], each["type"])
            fields[name] = {**fields[name], "type": kind}
            continue
        if (other := alike.setdefault(name.lower(), name)) != name:
            raise TableSchemaError(
                f"column {'.'.join((*path, name))!r}: there is {other!r}, and names of SQL have no"
                " case; select it under that name"
            )
        fields[name] = {**each, "nullable": True, "metadata": {}}
    return {"type": "struct", "fields": list(fields.values())}


def _merged_type(path: ColumnPath, before: Any, after: Any) -> Any:  # Any: JSON
    if _same_type(before, after) or _is_widening(after, before):
        return before
    if _is_widening(before, after):
        return after
    if _is_kind("struct", before, after):
        return _merged_struct(path, before, after)
    if _is_kind("array", before, after):
        element = _merged_type((*path, "element"), before["elementType"], after["elementType"])
        return {**before, "elementType": element}
    if _is_kind("map", before, after) and _same_type(before["keyType"], after["keyType"]):
        value = _merged_type((*path, "value"), before["valueType"], after["valueType"])
        return {**before, "valueType": value}
    raise TableSchemaError(
        f"column {'.'.join(path)!r} is {_text_of(before)} in the table and {_text_of(after)} in the"
        " rows"
    )


def _is_widening(before: object, after: object) -> bool:
    return isinstance(before, str) and isinstance(after, str) and (before, after) in _WIDENINGS


def _is_kind(name: str, *kinds: object) -> bool:
    return all(isinstance(each, dict) and each.get("type") == name for each in kinds)


def _text_of(kind: Any) -> str:  # Any: JSON
    """A type as SQL writes it; of a record its kind alone."""
    if _is_kind("array", kind):
        return f"array<{_text_of(kind['elementType'])}>"
    if _is_kind("map", kind):
        return f"map<{_text_of(kind['keyType'])},{_text_of(kind['valueType'])}>"
    return str(kind.get("type") if isinstance(kind, dict) else kind)


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


def grown_columns(old: Schema, new: Schema) -> list[Schema]:
    """The columns of `new` that `old` lacks, or has with another type."""
    before = {each["name"]: each["type"] for each in old["fields"]}
    return [
        each
        for each in new["fields"]
        if each["name"] not in before or not _same_type(before[each["name"]], each["type"])
    ]


def widened_columns(old: Any, new: Any, path: ColumnPath = ()) -> list[str]:  # Any: JSON
    """Where a type in `new` is wider than in `old`; what has only grown is left out."""
    if _is_kind("struct", old, new):
        before = {each["name"]: each["type"] for each in old["fields"]}
        inner = [
            (each["name"], before[each["name"]], each["type"])
            for each in new["fields"]
            if each["name"] in before
        ]
    elif _is_kind("array", old, new):
        inner = [("element", old["elementType"], new["elementType"])]
    elif _is_kind("map", old, new):
        inner = [("value", old["valueType"], new["valueType"])]
    else:
        return [] if _same_type(old, new) else [".".join(path)]
    return [
        found for name, one, other in inner for found in widened_columns(one, other, (*path, name))
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
