"""Any value survives its schema; any bytes give a value or a SchemaSerializationError."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pulsar.schema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pulsar_py.schema
from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema import (
    AutoConsumeSchema,
    AvroSchema,
    BooleanSchema,
    DateSchema,
    DoubleSchema,
    FloatSchema,
    InstantSchema,
    Int8Schema,
    Int16Schema,
    Int32,
    Int32Schema,
    Int64Schema,
    JsonSchema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    Schema,
    StringSchema,
    TimeSchema,
    TimestampMillis,
    TimestampSchema,
    decimal_of,
)
from pulsar_py.schema.auto_schemas import schema_of
from pulsar_py.schema.schema_info import SchemaInfo, SchemaType

TEXT = st.text(st.characters(codec="utf-8"))
POINTS = st.datetimes(timezones=st.just(UTC))
MILLIS = POINTS.map(lambda p: p.replace(microsecond=p.microsecond // 1000 * 1000))
TIMES = st.times()
TIMES_MILLIS = TIMES.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))

PRIMITIVES: list[tuple[Schema[Any], st.SearchStrategy[Any]]] = [
    (StringSchema(), TEXT),
    (BooleanSchema(), st.booleans()),
    (Int8Schema(), st.integers(-(2**7), 2**7 - 1)),
    (Int16Schema(), st.integers(-(2**15), 2**15 - 1)),
    (Int32Schema(), st.integers(-(2**31), 2**31 - 1)),
    (Int64Schema(), st.integers(-(2**63), 2**63 - 1)),
    (FloatSchema(), st.floats(width=32, allow_nan=False)),
    (DoubleSchema(), st.floats(allow_nan=False)),
    (DateSchema(), MILLIS),
    (TimestampSchema(), MILLIS),
    (InstantSchema(), POINTS),
    (TimeSchema(), TIMES_MILLIS),
    (LocalTimeSchema(), TIMES),
    (LocalDateSchema(), st.dates()),
    (LocalDateTimeSchema(), st.datetimes()),
]


@pytest.mark.parametrize(("schema", "values"), PRIMITIVES, ids=lambda each: type(each).__name__)
@given(data=st.data())
def test_primitive_values_survive(
    schema: Schema[Any], values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(values)

    assert schema.decode(schema.encode(value)) == value


class Colour(Enum):
    RED = 1
    GREEN = 2


@dataclass
class Inner:
    text: str
    number: Int32 | None


@dataclass
class Everything:
    flag: bool
    number: int
    ratio: float
    text: str
    data: bytes
    point: datetime
    millis: TimestampMillis
    day: date
    clock: time
    unit: UUID
    price: Annotated[Decimal, decimal_of(18, 6)]
    colour: Colour
    either: int | str | Inner | list[int] | None
    inner: Inner | None
    inners: list[Inner]
    by_name: dict[str, Inner]
    pair: tuple[int, ...] = ()
    tree: Everything | None = None
    words: set[str] = field(default_factory=set)


INT64 = st.integers(-(2**63), 2**63 - 1)
INNERS = st.builds(Inner, TEXT, st.none() | st.integers(-(2**31), 2**31 - 1))
EVERYTHING = st.deferred(
    lambda: st.builds(
        Everything,
        flag=st.booleans(),
        number=INT64,
        ratio=st.floats(allow_nan=False),
        text=TEXT,
        data=st.binary(),
        point=POINTS,
        millis=MILLIS,
        day=st.dates(),
        clock=TIMES,
        unit=st.uuids(),
        price=st.decimals(-(10**11), 10**11, places=6),
        colour=st.sampled_from(Colour),
        either=st.none() | INT64 | TEXT | INNERS | st.lists(INT64, max_size=3),
        inner=st.none() | INNERS,
        inners=st.lists(INNERS, max_size=3),
        by_name=st.dictionaries(TEXT, INNERS, max_size=3),
        pair=st.lists(INT64, max_size=3).map(tuple),
        tree=st.none() | EVERYTHING,
        words=st.sets(TEXT, max_size=3),
    )
)
AVRO, JSON = AvroSchema(Everything), JsonSchema(Everything)


@given(EVERYTHING)
def test_dataclasses_survive_avro(value: Everything) -> None:
    assert AVRO.decode(AVRO.encode(value)) == value


@given(EVERYTHING)
def test_dataclasses_survive_json(value: Everything) -> None:
    assert JSON.decode(JSON.encode(value)) == value


@given(EVERYTHING)
def test_what_auto_consume_reads_is_written_the_same_again(value: Everything) -> None:
    """By the definition alone: AVRO and JSON hold nothing that it doesn't say."""
    for schema in (AVRO, JSON):
        generic = schema_of(schema.schema_info())
        data = schema.encode(value)

        assert generic.encode(generic.decode(data)) == data


@given(st.none() | TEXT, st.none() | INNERS, st.sampled_from(KeyValueEncodingType))
def test_pairs_survive(key: str | None, value: Inner | None, encoding: Any) -> None:
    schema = KeyValueSchema(StringSchema(), AvroSchema(Inner), encoding)
    pair = KeyValue(key, value)

    payload = None if schema.is_null(pair) else schema.encode(pair)
    message_key = schema.encode_key(pair) if schema.has_separate_key else None

    assert schema.decode_with(None, payload, message_key) == pair


HOSTILE: list[Schema[Any]] = [
    *(schema for schema, _ in PRIMITIVES),
    AVRO,
    JSON,
    KeyValueSchema(StringSchema(), AVRO),
    schema_of(AVRO.schema_info()),
]


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_our_error(data: bytes) -> None:
    for schema in HOSTILE:
        with contextlib.suppress(SchemaSerializationError):
            schema.decode(data)


@given(st.data(), EVERYTHING)
def test_damaged_payloads_give_a_value_or_our_error(data: st.DataObject, value: Any) -> None:
    for schema in (AVRO, JSON):
        payload = bytearray(schema.encode(value))
        index = data.draw(st.integers(0, len(payload) - 1))
        payload[index] = data.draw(st.integers(0, 255))
        with contextlib.suppress(SchemaSerializationError):
            schema.decode(bytes(payload))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "fields", "items", "symbols", "logicalType"]),
            inner | st.sampled_from(["record", "enum", "array", "int", "string"]),
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON_VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=50))
def test_any_definition_is_read_or_refused(definition: bytes) -> None:
    for kind in SchemaType:
        with contextlib.suppress(SchemaSerializationError):
            AutoConsumeSchema().decoder_for(SchemaInfo(kind, data=definition))


def record_class(schemas: Any) -> Any:
    class Example(schemas.Record):
        number = schemas.Integer()
        text = schemas.String()
        ratio = schemas.Double()
        flag = schemas.Boolean()
        numbers = schemas.Array(schemas.Long())
        counts = schemas.Map(schemas.Integer())

    return Example


OURS, THEIRS = record_class(pulsar_py.schema), record_class(pulsar.schema)
OUR_AVRO, THEIR_AVRO = AvroSchema(OURS), pulsar.schema.AvroSchema(THEIRS)
OUR_JSON, THEIR_JSON = JsonSchema(OURS), pulsar.schema.JsonSchema(THEIRS)


@given(
    st.fixed_dictionaries(
        {
            "number": st.none() | st.integers(-(2**31), 2**31 - 1),
            "text": st.none() | TEXT,
            "ratio": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "flag": st.booleans(),
            "numbers": st.none() | st.lists(INT64, max_size=3),
            "counts": st.none() | st.dictionaries(TEXT, st.integers(0, 9), max_size=2),
        }
    )
)
def test_records_are_coded_as_by_the_official_client(values: dict[str, Any]) -> None:
    ours, theirs = OURS(**values), THEIRS(**values)

    assert OUR_AVRO.encode(ours) == THEIR_AVRO.encode(theirs)
    assert OUR_JSON.decode(THEIR_JSON.encode(theirs)) == ours
    assert json.loads(OUR_JSON.encode(ours)) == json.loads(THEIR_JSON.encode(theirs))
