"""Chooses the schema that value columns are written with, and encodes them (pure).

    one column with a primitive type     a primitive schema; null is a tombstone
    one struct                           a record of its fields; null is a tombstone
    another single type, or several      a record of the columns
    `key` and `value`, where asked for   a pair of two of these, see `key_value_encoder`

Records are AVRO, named `topLevelRecord`, unless the topic has a schema already. Then they are of
its type (AVRO or JSON), and are written by its very definition if the columns fit that: each column
is a field of the same type, and each field without a column may be null or has a default. If they
do not fit, the broker decides whether our definition is compatible.

A nullable column is a union with null, with null as its default, so that columns can be added and
removed later. Nested records are named after their fields, as in Spark's own Avro.

Source: SchemaConverters of Spark.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from functools import partial
from math import isfinite
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_py.common.errors import (
    ConfigurationError,
    SchemaSerializationError,
)
from pulsar_py.schema import KeyValueEncodingType, SchemaInfo, SchemaType
from pulsar_py.schema.avro.avro_codec import AvroWriter
from pulsar_py.schema.avro.avro_definition import parse_definition, value_types
from pulsar_py.schema.avro.avro_nodes import AvroNode, avro_node
from pulsar_py.schema.json_schema import json_payload
from pulsar_py.spark.avro.conversions import MISFITS
from pulsar_py.spark.avro.fixed_decimals import fixed_decimals, with_decimals_of_bytes
from pulsar_py.spark.avro.flat_records import flat_encoder
from pulsar_py.spark.avro.shapes import Shape, definition_node, shape_of
from pulsar_py.spark.values.arrays import Array
from pulsar_py.spark.values.floored_times import floored, with_numbers
from pulsar_py.spark.values.key_value_encoder import KeyValueEncoder, pair_encoding
from pulsar_py.spark.values.pair_columns import KEY, VALUE
from pulsar_py.spark.values.primitive_encoder import ValueEncoder, has_primitive, primitive_encoder

__all__ = ["RECORD_NAME", "definition_of", "value_encoder"]

AvroJson: TypeAlias = Any
"""A definition, as the JSON of it."""

RECORD_NAME: Final = "topLevelRecord"
_WITH_FIELDS: Final = frozenset(
    {SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.PROTOBUF_NATIVE}
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def value_encoder(
    schema: pa.Schema,
    names: Sequence[str],
    topic_schema: SchemaInfo | None = None,
    pairs: KeyValueEncodingType | None = None,
) -> ValueEncoder:
    """The encoder of the value columns of rows with that schema.

    Args:
        schema: The schema of the rows, timestamps in UTC.
        names: The columns that are the value.
        topic_schema: The topic's schema; None where it has none, or is not known.
        pairs: The option `keyValueEncoding`.

    Raises:
        ConfigurationError: The columns have no Pulsar schema, or never fit the topic's.
    """
    fields = [schema.field(name) for name in names]
    encoding = pair_encoding(fields, topic_schema, pairs)
    if encoding is not None:
        return KeyValueEncoder(fields, encoding, topic_schema, _encoder_of)
    _refuse_unclear_keys(names, topic_schema)
    return _encoder_of(fields, topic_schema)


def _refuse_unclear_keys(names: Sequence[str], topic_schema: SchemaInfo | None) -> None:
    """Columns `key` and `value`, as Kafka's connector has them, are hardly ever meant as a record.

    Where the topic's schema is a record, they are its fields.
    """
    has_records = topic_schema is not None and topic_schema.type in _WITH_FIELDS
    if has_records or not {KEY, VALUE} <= {name.lower() for name in names}:
        return
    raise ConfigurationError(
        "columns key, value: it is not clear what key is meant to be. The message's key, as Kafka's"
        " connector has it: keyColumn=key. A part of the value: keyValueEncoding=inline or"
        " separated. A field of a record: a single column, struct(key, value)"
    )


def _encoder_of(fields: Sequence[pa.Field], topic_schema: SchemaInfo | None) -> ValueEncoder:
    is_single = len(fields) == 1
    if is_single and has_primitive(fields[0].type):
        return primitive_encoder(fields[0], topic_schema)
    is_struct = is_single and pa.types.is_struct(fields[0].type)
    record = list(fields[0].type) if is_struct else fields
    info = _record_info(record, topic_schema)
    return _Records(info, [field.name for field in record], is_struct=is_struct)


def _record_info(fields: Sequence[pa.Field], topic_schema: SchemaInfo | None) -> SchemaInfo:
    """The schema of the records."""
    definition = definition_of(fields)
    kind = SchemaType.AVRO
    if topic_schema is not None and topic_schema.type in {SchemaType.AVRO, SchemaType.JSON}:
        kind = topic_schema.type
        if _fits(shape_of(avro_node(definition)), topic_schema):
            return topic_schema
    return SchemaInfo(kind, RECORD_NAME, json.dumps(definition).encode(), {})


def _fits(columns: Shape, topic_schema: SchemaInfo) -> bool:
    """Whether columns can be written with the topic's own definition.

    Raises:
        ConfigurationError: No definition of these columns could be compatible with it.
    """
    try:
        node = definition_node(topic_schema.data)
        shape = shape_of(node)
    except ConfigurationError:
        return False
    if not pa.types.is_struct(shape.arrow_type) or not shape.children:
        return False
    known = {field.name: field.type for field in shape.arrow_type}
    written = {field.name: field.type for field in columns.arrow_type}
    for name, kind in written.items():
        if name in known and not _may_be_read_as(kind, known[name]):
            raise ConfigurationError(
                f"column {name} is {kind}, and the topic's schema has {known[name]} there; cast the"
                " column"
            )
    required = [
        text["name"]
        for text, child in zip(node.fields, shape.children, strict=True)
        if not child.is_nullable and "default" not in text
    ]
    _refuse_unreadable(columns, known, required)
    if any(known.get(name) != kind for name, kind in written.items()):
        return False
    return not any(_has_members(each) for each in known.values())


def _refuse_unreadable(
    columns: Shape, known: Mapping[str, pa.DataType], required: Sequence[str]
) -> None:
    """Refuse columns that readers of the topic could not read, whatever the broker allows."""
    written = [field.name for field in columns.arrow_type]
    new = [
        name
        for name, child in zip(written, columns.children, strict=True)
        if name not in known and not child.is_nullable
    ]
    missing = [name for name in required if name not in written]
    if new:
        why = (
            f"{', '.join(new)} is not in the topic's schema, and must be nullable, since older"
            " messages lack it"
        )
    elif missing:
        why = f"{', '.join(missing)} is required by the topic's schema, and has no column"
    else:
        return
    raise ConfigurationError(
        f"columns {', '.join(written)} don't fit the topic's fields {', '.join(known)}: {why}"
    )


def _may_be_read_as(kind: pa.DataType, other: pa.DataType) -> bool:
    """Whether Avro might read one type as the other; if so, the broker's check decides."""
    families = [_family(each) for each in (kind, other)]
    return families[0] == families[1] or any(map(_has_members, (kind, other)))


def _family(kind: pa.DataType) -> str:
    families = (
        ("number", (pa.types.is_integer, pa.types.is_floating, pa.types.is_temporal)),
        ("bytes", (pa.types.is_string, pa.types.is_binary, pa.types.is_decimal)),
        ("list", (pa.types.is_list,)),
    )
    found = (name for name, kinds in families if any(is_kind(kind) for is_kind in kinds))
    return next(found, str(kind.id))


def _has_members(kind: pa.DataType) -> bool:
    """Whether a type has a struct that a union became; these are not written as unions again."""
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        is_union = names == [f"member{index}" for index in range(len(names))]
        return is_union or any(_has_members(field.type) for field in kind)
    if pa.types.is_map(kind):
        return _has_members(kind.item_type)
    return bool(pa.types.is_list(kind)) and _has_members(kind.value_type)


# --- definitions ---------------------------------------------------------------------------------


def definition_of(fields: Sequence[pa.Field]) -> AvroJson:
    """The definition of the record that columns make.

    Raises:
        ConfigurationError: Avro has no such name or type; the text names the column.
    """
    return _record(fields, RECORD_NAME, "", "")


def _record(fields: Sequence[pa.Field], name: str, namespace: str, path: str) -> AvroJson:
    inner = f"{namespace}.{name}" if namespace else name
    definition: dict[str, AvroJson] = {"type": "record", "name": name}
    if namespace:
        definition["namespace"] = namespace
    definition["fields"] = [_field(each, inner, f"{path}{each.name}") for each in fields]
    return definition


def _field(field: pa.Field, namespace: str, path: str) -> AvroJson:
    if not _NAME.fullmatch(field.name):
        raise ConfigurationError(
            f"column {path}: names in Avro have letters, digits and _ only, and no digit first;"
            " give the column an alias"
        )
    text = {"name": field.name, "type": _type(field, field.name, namespace, path)}
    return text | {"default": None} if field.nullable else text


def _type(field: pa.Field, name: str, namespace: str, path: str) -> AvroJson:
    """The type of a field, or of an array's items or a map's values, which have no name."""
    kind = field.type
    text: AvroJson
    if pa.types.is_struct(kind):
        text = _record(list(kind), name, namespace, f"{path}.")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        text = {"type": "array", "items": _type(kind.value_field, name, namespace, path)}
    elif pa.types.is_map(kind):
        if not pa.types.is_string(kind.key_type):
            raise ConfigurationError(
                f"column {path}: its keys are {kind.key_type}, and keys of maps in Avro are"
                " strings; cast them"
            )
        text = {"type": "map", "values": _type(kind.item_field, name, namespace, path)}
    else:
        text = _simple(kind, path)
    return ["null", text] if field.nullable else text


def _simple(kind: pa.DataType, path: str) -> AvroJson:
    if pa.types.is_decimal(kind):
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_timestamp(kind):
        name = "timestamp-micros" if kind.tz else "local-timestamp-micros"
        return {"type": "long", "logicalType": name}
    for is_kind, text in _SIMPLE:
        if is_kind(kind):
            return text
    raise ConfigurationError(f"column {path}: Avro has no type for {kind}; cast the column")


_SIMPLE: Final[Sequence[tuple[Callable[[pa.DataType], bool], AvroJson]]] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "int"),
    (pa.types.is_int16, "int"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "long"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_date32, {"type": "int", "logicalType": "date"}),
)


# --- records -------------------------------------------------------------------------------------


class _Records:
    """Encodes records with one definition. A `ValueEncoder`."""

    def __init__(self, info: SchemaInfo, names: Sequence[str], *, is_struct: bool) -> None:
        """Take the definition; `is_struct`: one column has the records, else one each field."""
        self.schema_info = info
        self._names = tuple(names)
        self._is_struct = is_struct
        node = definition_node(info.data)
        shape = shape_of(node)
        self._write: Callable[[dict[str, Any]], bytes]
        if info.type is SchemaType.JSON:
            node = with_decimals_of_bytes(node)
            self._write = partial(json_payload, value_types(node))
        else:
            self._write = _AvroRecords(info, node, shape, names).write
        types = {field.name: field.type for field in shape.plain_type}
        # The casts of each column: times to the unit of the definition, then to numbers.
        self._steps = [
            [types[name]]
            if info.type is SchemaType.JSON
            else [types[name], with_numbers(types[name])]
            for name in names
        ]
        # Encodes all columns at once; None where records are not flat, or have another order.
        self._flat: Callable[[list[list[Any]]], list[bytes]] | None = None
        self._list: Callable[[Array, Sequence[pa.DataType]], list[Any]] = _listed
        flat = flat_encoder(node) if list(types) == list(names) else None
        if flat is not None and info.type is SchemaType.AVRO:
            self._flat, self._list = flat.encode, _listed_for_avro
        elif flat is not None:
            self._flat, self._list = self._json_texts, _listed_for_json
        self._is_nullable = [child.is_nullable for child in shape.children]

    def encode_keys(self, batch: pa.RecordBatch) -> None:
        """See `ValueEncoder`."""

    def encode(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        """See `ValueEncoder`."""
        # Hot path: batch write in `make bench-spark`, with several columns.
        columns: Sequence[Array] = batch.columns
        nulls: list[bool] | None = None
        if self._is_struct:
            (array,) = columns
            nulls = array.is_null().to_pylist() if array.null_count else None
            columns = array.flatten()
        if self._flat is not None:
            return self._encode_flat(columns, nulls)
        write, names = self._write, self._names
        rows = zip(*map(_listed, columns, self._steps), strict=True)
        records = (dict(zip(names, row, strict=True)) for row in rows)
        if nulls is None:
            return [write(record) for record in records]
        return [
            None if is_null else write(record)
            for record, is_null in zip(records, nulls, strict=True)
        ]

    def _encode_flat(
        self, columns: Sequence[Array], nulls: Sequence[bool] | None
    ) -> Sequence[bytes | None]:
        assert self._flat is not None, "asked before"
        if nulls is not None:
            # The fields of a null record are null, even those that may not be: skip its row.
            rows = pa.array([row for row, is_null in enumerate(nulls) if not is_null], pa.int64())
            columns = [column.take(rows) for column in columns]
        for name, column, is_nullable in zip(self._names, columns, self._is_nullable, strict=True):
            if column.null_count and not is_nullable:
                raise SchemaSerializationError(
                    f"{name}: the column has a null, and the topic's schema has none there"
                )
        try:
            listed = list(map(self._list, columns, self._steps))
        except (ValueError, ArithmeticError, NotImplementedError) as error:
            raise SchemaSerializationError(f"{error!s:.300}") from error
        payloads = self._flat(listed)
        if nulls is None:
            return payloads
        following = iter(payloads)
        return [None if is_null else next(following) for is_null in nulls]

    def _json_texts(self, columns: list[list[Any]]) -> list[bytes]:
        names = self._names
        write = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
        rows = zip(*columns, strict=True)
        return [write(dict(zip(names, row, strict=True))).encode() for row in rows]


class _AvroRecords:
    """Encodes single records in AVRO, flat or not."""

    def __init__(
        self, info: SchemaInfo, node: AvroNode, shape: Shape, names: Sequence[str]
    ) -> None:
        """Take the definition; fields that are not among `names` get their defaults."""
        self._write = AvroWriter(_with_numbers(parse_definition(info.data))).write
        self._convert = fixed_decimals(node, shape)
        self._defaults = {
            field.name: shape.defaults.get(field.name)
            for field in shape.plain_type
            if field.name not in names
        }

    def write(self, record: dict[str, Any]) -> bytes:
        """The bytes of a record.

        Raises:
            SchemaSerializationError: A value does not fit.
        """
        if self._defaults:
            record = {**record, **self._defaults}
        if self._convert is None:
            return self._write(record)
        try:
            return self._write(self._convert(record))
        except MISFITS as error:
            raise SchemaSerializationError(f"{error!s:.300}") from error


def _listed_for_avro(column: Array, steps: Sequence[pa.DataType]) -> list[Any]:
    """The values that `flat_encoder` takes: text as UTF-8, decimals as unscaled bytes."""
    kind = steps[-1]
    if pa.types.is_decimal(kind):
        return [None if each is None else _digits(each, kind) for each in _listed(column, steps)]
    return _listed(column, [*steps, pa.binary()] if kind == pa.string() else steps)


def _digits(value: Decimal, kind: pa.DataType) -> bytes:
    number = int(value.scaleb(kind.scale, _DECIMALS))
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _listed_for_json(column: Array, steps: Sequence[pa.DataType]) -> list[Any]:
    """The values that a JSON encoder takes: times and decimals as text, as `JsonSchema` has it."""
    (kind,) = steps
    if pa.types.is_timestamp(kind):
        text = "%Y-%m-%dT%H:%M:%SZ" if kind.tz else "%Y-%m-%dT%H:%M:%S"
        column = pc.strftime(floored(column, kind), format=text)
    elif pa.types.is_date32(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    elif pa.types.is_binary(kind):
        values = _listed(column, steps)
        return [None if each is None else b64encode(each).decode() for each in values]
    elif pa.types.is_floating(kind):
        return [
            each if each is None or isfinite(each) else _NOT_FINITE[str(each)]
            for each in _listed(column, steps)
        ]
    texts: list[Any] = column.to_pylist()
    return texts


_DECIMALS: Final = Context(prec=100)
_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _listed(column: Array, steps: Sequence[pa.DataType]) -> list[Any]:
    """The values of a column, times rounded down to the unit of the field."""
    try:
        for kind in steps:
            if column.type != kind:
                column = floored(column, kind)
        values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    except (ValueError, KeyError, NotImplementedError) as error:
        raise SchemaSerializationError(f"{error!s:.300}") from error
    return values


def _with_numbers(definition: AvroJson) -> AvroJson:
    """The definition without logical types but decimal: days and times are written as numbers."""
    if isinstance(definition, list):
        return [_with_numbers(each) for each in definition]
    if not isinstance(definition, Mapping):
        return definition
    return {
        key: value if key == "default" else _with_numbers(value)
        for key, value in definition.items()
        if key != "logicalType" or value == "decimal"
    }
