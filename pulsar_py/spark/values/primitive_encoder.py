"""Encodes a single column by the primitive schema of its type (pure).

    binary, string, boolean, tinyint … bigint, float, double, date, timestamp    one schema each
    columns read from TIME, INSTANT, LOCAL_TIME, LOCAL_DATE or LOCAL_DATE_TIME   by that schema
    columns read from PROTOBUF                                                   as their bytes

Columns of the second and third line have the same Arrow types as some of the first, so the topic's
schema decides. A null value is a tombstone. `ValueEncoder` is the interface of all encoders of
values: those of pairs and records are in `key_value_encoder` and `value_encoder`.

Source: the schemas' classes in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.schema import (
    BooleanSchema,
    BytesSchema,
    DateSchema,
    DoubleSchema,
    FloatSchema,
    InstantSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    Schema,
    SchemaInfo,
    SchemaType,
    StringSchema,
    TimeSchema,
    TimestampSchema,
)
from pulsar_py.spark.values.arrays import Array, is_text
from pulsar_py.spark.values.floored_times import floored, millis_of

_MICROS_PER_SECOND: Final = 1_000_000
_MICROS_PER_DAY: Final = 86_400_000_000

Pack: TypeAlias = Callable[[Any], bytes]  # Any: by type
Primitive: TypeAlias = tuple[
    Callable[[pa.DataType], bool], Schema[Any], Pack | None, Callable[[Array], Array]
]
"""A test of Arrow types, their schema, the packing of a value, and the cast before it."""


def has_primitive(kind: pa.DataType) -> bool:
    """Whether a column of that type has a primitive schema."""
    return any(is_kind(kind) for is_kind, *_ in _PRIMITIVES)


class ValueEncoder(Protocol):
    """Encodes value columns as payloads."""

    @property
    def schema_info(self) -> SchemaInfo:
        """The schema that producers register."""

    def encode(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        """The payload of each row; None for a null value.

        Args:
            batch: The value columns alone, timestamps in UTC.

        Raises:
            SchemaSerializationError: A value does not fit the schema.
        """

    def encode_keys(self, batch: pa.RecordBatch) -> Sequence[bytes | None] | None:
        """The key of each row, where it is a part of the value (SEPARATED pairs); else None.

        Args:
            batch: As for `encode`.

        Raises:
            SchemaSerializationError: A key does not fit its schema.
        """


def primitive_encoder(field: pa.Field, topic_schema: SchemaInfo | None = None) -> ValueEncoder:
    """The encoder of a single value column.

    Args:
        field: The column.
        topic_schema: The topic's schema; decides where values of several schemas have this type.

    Raises:
        ConfigurationError: The type has no primitive schema.
    """
    kind = field.type
    if topic_schema is not None and topic_schema.type in _OPAQUE and _has_bytes(kind):
        return _PrimitiveEncoder(topic_schema, None, _same)
    candidates = list(_PRIMITIVES)
    if topic_schema is not None and topic_schema.type in _BY_TOPIC:
        candidates.insert(0, _BY_TOPIC[topic_schema.type])
    for is_kind, schema, pack, convert in candidates:
        if is_kind(kind):
            return _PrimitiveEncoder(schema.schema_info(), pack, convert)
    raise ConfigurationError(f"column {field.name}: {kind} has no primitive schema")


def _has_bytes(kind: pa.DataType) -> bool:
    """Whether a column is binary."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


class _PrimitiveEncoder:
    """Encodes a column with a primitive schema. A `ValueEncoder`."""

    def __init__(
        self, info: SchemaInfo, pack: Pack | None, convert: Callable[[Array], Array]
    ) -> None:
        self.schema_info = info
        self._pack = pack
        self._convert = convert

    def encode(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        """See `ValueEncoder`."""
        pack = self._pack
        values: list[Any] = self._convert(batch.column(0)).to_pylist()
        if pack is None:
            return values
        return [None if value is None else pack(value) for value in values]

    def encode_keys(self, batch: pa.RecordBatch) -> None:
        """See `ValueEncoder`."""


def _same(array: Array) -> Array:
    return array


def _as_bytes(array: Array) -> Array:
    """The UTF-8 of strings, without a copy."""
    return array.cast(pa.binary() if pa.types.is_string(array.type) else pa.large_binary())


def _days(array: Array) -> Array:
    return array.cast(pa.int32())


def _micros(array: Array) -> Array:
    return floored(array, pa.timestamp("us", array.type.tz)).cast(pa.int64())


def _bool(value: bool) -> bytes:  # noqa: FBT001 - the value
    return b"\x01" if value else b"\x00"


_LONG: Final = Struct(">q").pack
_INSTANT: Final = Struct(">qi").pack
_DAY_AND_TIME: Final = Struct(">qq").pack


def _instant(micros: int) -> bytes:
    """An INSTANT: seconds, then nanoseconds."""
    seconds, rest = divmod(micros, _MICROS_PER_SECOND)
    return _INSTANT(seconds, rest * 1000)


def _local_date_time(micros: int) -> bytes:
    """A LOCAL_DATE_TIME: days, then nanoseconds of the day."""
    days, rest = divmod(micros, _MICROS_PER_DAY)
    return _DAY_AND_TIME(days, rest * 1000)


_PRIMITIVES: Final[Sequence[Primitive]] = (
    (pa.types.is_binary, BytesSchema(), None, _same),
    (pa.types.is_large_binary, BytesSchema(), None, _same),
    (is_text, StringSchema(), None, _as_bytes),
    (pa.types.is_boolean, BooleanSchema(), _bool, _same),
    (pa.types.is_int8, Int8Schema(), Struct(">b").pack, _same),
    (pa.types.is_int16, Int16Schema(), Struct(">h").pack, _same),
    (pa.types.is_int32, Int32Schema(), Struct(">i").pack, _same),
    (pa.types.is_int64, Int64Schema(), _LONG, _same),
    (pa.types.is_float32, FloatSchema(), Struct(">f").pack, _same),
    (pa.types.is_float64, DoubleSchema(), Struct(">d").pack, _same),
    (pa.types.is_date32, DateSchema(), _LONG, millis_of),
    (pa.types.is_timestamp, TimestampSchema(), _LONG, millis_of),
)

_BY_TOPIC: Final[Mapping[SchemaType, Primitive]] = {
    SchemaType.TIME: (pa.types.is_int32, TimeSchema(), _LONG, _same),
    SchemaType.LOCAL_TIME: (pa.types.is_int64, LocalTimeSchema(), _LONG, _same),
    SchemaType.INSTANT: (pa.types.is_timestamp, InstantSchema(), _instant, _micros),
    SchemaType.LOCAL_DATE: (pa.types.is_date32, LocalDateSchema(), _LONG, _days),
    SchemaType.LOCAL_DATE_TIME: (
        pa.types.is_timestamp,
        LocalDateTimeSchema(),
        _local_date_time,
        _micros,
    ),
}
"""Encodings by the topic's schema, for the column types as which `payload_codecs` reads it."""

_OPAQUE: Final = (SchemaType.NONE, SchemaType.PROTOBUF)
"""Schemas whose values are read as bytes, and written as the same bytes."""
