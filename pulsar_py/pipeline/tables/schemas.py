"""Schemas of tables, and how they may grow (pure).

A schema is Spark's, as JSON; Delta Lake's has the same form. Columns may be added and may become
wider, also those of records in records, arrays and maps. A column that is not written any more
stays, and is null. SQL ignores the case of names, so no table gets both `id` and `Id`.
"""

from __future__ import annotations

from typing import Any, Final

from pulsar_py.common.errors import ConfigurationError

Schema = dict[str, Any]  # Any: a StructType's JSON
ColumnPath = tuple[str, ...]
"""The names on the way to a column; `element` within an array, `value` within a map."""

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
    """Rows don't fit a table's columns; the message names the column and both types."""


def merged_schema(old: Schema | None, new: Schema) -> Schema:
    """The schema of a table after rows with the schema `new` were added to it.

    The old columns come first, in their order. Records grow wherever they are: in records, arrays
    and values of maps.

    Raises:
        TableSchemaError: A column has a type that neither fits nor is wider, or a name that differs
            from another one's in case alone.
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
                f"column {'.'.join((*path, name))!r}: there is {other!r}, and SQL ignores the case"
                " of names; select it under that name"
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
        " rows; cast it, or write to a new table"
    )


def _is_widening(before: object, after: object) -> bool:
    return isinstance(before, str) and isinstance(after, str) and (before, after) in _WIDENINGS


def _is_kind(name: str, *kinds: object) -> bool:
    return all(isinstance(each, dict) and each.get("type") == name for each in kinds)


def _text_of(kind: Any) -> str:  # Any: JSON
    """A type as SQL writes it; a record is `struct`, without its fields."""
    if _is_kind("array", kind):
        return f"array<{_text_of(kind['elementType'])}>"
    if _is_kind("map", kind):
        return f"map<{_text_of(kind['keyType'])},{_text_of(kind['valueType'])}>"
    return str(kind.get("type") if isinstance(kind, dict) else kind)


def _same_type(one: Any, other: Any) -> bool:  # Any: JSON
    """Whether two types are equal apart from nullability and metadata."""
    return bool(_bare(one) == _bare(other))


def _bare(kind: Any) -> Any:  # Any: JSON
    if isinstance(kind, dict):
        kept = ("nullable", "containsNull", "valueContainsNull", "metadata")
        return {name: _bare(value) for name, value in kind.items() if name not in kept}
    return [_bare(each) for each in kind] if isinstance(kind, list) else kind


def with_metadata(schema: Schema, written: Schema | None) -> Schema:
    """A table's schema with the metadata of the columns as they were written.

    The connector keeps there, for instance, whether a key-value column had its key in the message.
    """
    if written is None:
        return schema
    metadata = {each["name"]: each["metadata"] for each in written["fields"]}
    fields = [{**each, "metadata": metadata.get(each["name"], {})} for each in schema["fields"]]
    return {"type": "struct", "fields": fields}


def grown_columns(old: Schema, new: Schema) -> list[Schema]:
    """The top-level columns of `new` that `old` lacks, or has with another type."""
    before = {each["name"]: each["type"] for each in old["fields"]}
    return [
        each
        for each in new["fields"]
        if each["name"] not in before or not _same_type(before[each["name"]], each["type"])
    ]


def widened_columns(old: Any, new: Any, path: ColumnPath = ()) -> list[str]:  # Any: JSON
    """Dotted names of the columns that are wider in `new` than in `old`.

    Records that only have more fields are not among them.
    """
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
