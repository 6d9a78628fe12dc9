"""Single values: which schema, and bytes that are read as they were written."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from pulsar_py import schema as schemas
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.spark.values.payload_codecs import codec_of
from pulsar_py.spark.values.primitive_encoder import has_primitive, primitive_encoder

AT = datetime(1969, 12, 31, 23, 59, 58, 123456, tzinfo=UTC)
UTC_MICROS = pa.timestamp("us", "UTC")
DAY = date(1969, 12, 30)


def batch_of(kind: pa.DataType, *values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"v": list(values)}, pa.schema({"v": kind}))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.binary(), b"\xff", SchemaType.BYTES),
        (pa.large_string(), "ä", SchemaType.STRING),
        (pa.bool_(), True, SchemaType.BOOLEAN),
        (pa.int8(), -1, SchemaType.INT8),
        (pa.int16(), -(2**15), SchemaType.INT16),
        (pa.int32(), 2**31 - 1, SchemaType.INT32),
        (pa.int64(), -(2**63), SchemaType.INT64),
        (pa.float32(), 0.5, SchemaType.FLOAT),
        (pa.float64(), -0.1, SchemaType.DOUBLE),
        (pa.date32(), DAY, SchemaType.DATE),
        (UTC_MICROS, AT.replace(microsecond=123000), SchemaType.TIMESTAMP),
    ],
)
def test_a_column_s_type_has_a_schema(
    kind: pa.DataType, value: object, expected: SchemaType
) -> None:
    assert has_primitive(kind)
    encoder = primitive_encoder(pa.field("v", kind))
    assert encoder.schema_info.type is expected
    batch = batch_of(kind, value, None)
    payloads = encoder.encode(batch)
    assert payloads[1] is None
    assert encoder.encode_keys(batch) is None
    assert codec_of(encoder.schema_info).decode(payloads, None).to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("schema", "kind", "value"),
    [
        (schemas.TimeSchema(), pa.int32(), 86_399_999),
        (schemas.LocalTimeSchema(), pa.int64(), 86_399_999_999_999),
        (schemas.InstantSchema(), UTC_MICROS, AT),
        (schemas.LocalDateSchema(), pa.date32(), DAY),
        (schemas.LocalDateTimeSchema(), pa.timestamp("us"), AT.replace(tzinfo=None)),
    ],
)
def test_the_topic_tells_types_apart_that_are_read_alike(
    schema: Any, kind: pa.DataType, value: object
) -> None:
    info = schema.schema_info()
    codec = codec_of(info)
    assert codec.arrow_type == kind
    encoder = primitive_encoder(pa.field("v", kind), info)
    assert encoder.schema_info == info
    payloads = encoder.encode(batch_of(kind, value, None))
    assert codec.decode(payloads, None).to_pylist() == [value, None]


def test_values_are_the_bytes_that_clients_write() -> None:
    encoder = primitive_encoder(pa.field("v", UTC_MICROS), schemas.InstantSchema().schema_info())
    assert encoder.encode(batch_of(UTC_MICROS, AT)) == [schemas.InstantSchema().encode(AT)]


def test_bytes_of_a_protobuf_topic_stay_what_they_are() -> None:
    info = SchemaInfo(SchemaType.PROTOBUF, "P", b"{}", {})
    encoder = primitive_encoder(pa.field("v", pa.binary()), info)
    assert encoder.schema_info is info
    assert encoder.encode(batch_of(pa.binary(), b"x")) == [b"x"]


def test_what_has_no_primitive_is_refused_by_name() -> None:
    kind = pa.list_(pa.int8())
    assert not has_primitive(kind)
    with pytest.raises(ConfigurationError, match=r"column v: list.* has no primitive schema"):
        primitive_encoder(pa.field("v", kind))
