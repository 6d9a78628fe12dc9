"""Columns of keys and values become pairs as clients have them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pulsar_py import schema as schemas
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.schema import KeyValue, KeyValueEncodingType, SchemaInfo, SchemaType
from pulsar_py.spark.values.key_value_encoder import pair_encoding
from pulsar_py.spark.values.pair_columns import pair_comment
from pulsar_py.spark.values.primitive_encoder import ValueEncoder
from pulsar_py.spark.values.value_encoder import value_encoder

INLINE, SEPARATED = KeyValueEncodingType.INLINE, KeyValueEncodingType.SEPARATED
PLAIN = pa.schema({"key": pa.string(), "value": pa.int64()})
RECORD = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": ""}],
}


def encoder_of(
    schema: pa.Schema,
    topic: SchemaInfo | None = None,
    pairs: KeyValueEncodingType | None = None,
) -> ValueEncoder:
    return value_encoder(schema, schema.names, topic, pairs)


def plain(encoding: KeyValueEncodingType) -> Any:
    return schemas.KeyValueSchema(schemas.StringSchema(), schemas.Int64Schema(), encoding)


ROWS: Any = [("k", 1), ("k", None), (None, 1), (None, None)]


@pytest.mark.parametrize("encoding", list(KeyValueEncodingType))
def test_pairs_are_the_bytes_that_clients_write(encoding: KeyValueEncodingType) -> None:
    schema = plain(encoding)
    encoder = encoder_of(PLAIN, None, encoding)
    assert encoder.schema_info == schema.schema_info()
    rows = [{"key": key, "value": value} for key, value in ROWS]
    batch = pa.RecordBatch.from_pylist(rows, PLAIN)
    expected = [KeyValue(*each) for each in ROWS]
    payloads, keys = encoder.encode(batch), encoder.encode_keys(batch)
    if encoding is SEPARATED:
        assert keys == [b"k", b"k", None, None]
        nulls = [schema.is_null(each) for each in expected]
        assert [each is None for each in payloads] == nulls
    else:
        assert keys is None
        assert payloads == [*map(schema.encode, expected[:3]), None]
    decode = schema.decoder_for(None)
    found = map(decode, payloads, keys or [None] * 4)
    assert list(found) == expected[:3] + ([expected[3]] if encoding is SEPARATED else [None])


def test_columns_of_parts_are_records() -> None:
    kind = pa.int32()
    schema = pa.schema({"key.a": kind, "value.a": kind, "value.c": pa.string()})
    encoder = encoder_of(schema, None, INLINE)
    row = {"key.a": 1, "value.a": 2, "value.c": "x"}
    (payload,) = encoder.encode(pa.RecordBatch.from_pylist([row], schema))
    structs = pa.schema(
        {"key": pa.struct({"a": kind}), "value": pa.struct({"a": kind, "c": pa.string()})}
    )
    same = encoder_of(structs, None, INLINE)
    assert same.schema_info == encoder.schema_info
    rows = [{"key": {"a": 1}, "value": {"a": 2, "c": "x"}}]
    assert same.encode(pa.RecordBatch.from_pylist(rows, structs)) == [payload]


def test_the_topic_s_definitions_are_taken_where_columns_fit() -> None:
    topic = schemas.KeyValueSchema(
        schemas.Int8Schema(), schemas.AvroSchema[Any](schema_definition=RECORD), SEPARATED
    ).schema_info()
    schema = pa.schema({"key": pa.int8(), "value": pa.struct({"a": pa.int32()})})
    encoder = encoder_of(schema, topic)
    assert encoder.schema_info is topic
    batch = pa.RecordBatch.from_pylist([{"key": 7, "value": {"a": 1}}], schema)
    assert encoder.encode(batch) == [b"\x02\x00"]
    assert encoder.encode_keys(batch) == [b"\x07"]


def test_a_definition_that_does_not_fit_makes_another_pair() -> None:
    record = schemas.AvroSchema[Any](schema_definition=RECORD)
    topic = schemas.KeyValueSchema(schemas.Int8Schema(), record).schema_info()
    value = pa.struct({"a": pa.int32(), "new": pa.int8()})
    info = encoder_of(pa.schema({"key": pa.int8(), "value": value}), topic).schema_info
    assert info.type is SchemaType.KEY_VALUE
    assert b"topLevelRecord" in info.data


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"value": pa.int64()}, "needs the column key, or columns key.<field>, and found neither"),
        ({"key": pa.int64(), "key.a": pa.int8(), "value": pa.int64()}, "found both"),
        (
            {"key": pa.int64(), "value": pa.int64()},
            "column key is int64, and .* of schema type STRING",
        ),
        ({"key": pa.string(), "value.a": pa.int64()}, "column value is a record, and .* INT64"),
        ({"key": pa.string(), "value": pa.int64(), "x": pa.int8()}, "column x is neither"),
    ],
)
def test_columns_that_are_no_pairs_of_the_topic_are_refused(
    columns: dict[str, pa.DataType], text: str
) -> None:
    with pytest.raises(ConfigurationError, match=text):
        encoder_of(pa.schema(columns), plain(INLINE).schema_info())


def test_what_decides_whether_rows_are_pairs() -> None:
    fields = list(PLAIN)
    metadata = {"SPARK::metadata::json": f'{{"comment": "{pair_comment(SEPARATED)}"}}'}
    read = [fields[0].with_metadata(metadata), fields[1]]
    text = schemas.StringSchema().schema_info()
    nothing = SchemaInfo(SchemaType.BYTES)
    assert pair_encoding(fields, None, None) is None
    assert pair_encoding(fields, None, INLINE) is INLINE
    assert pair_encoding(fields, plain(INLINE).schema_info(), None) is INLINE
    assert pair_encoding(read, None, None) is SEPARATED
    assert pair_encoding(read, nothing, None) is SEPARATED
    assert pair_encoding(read, plain(INLINE).schema_info(), None) is INLINE
    assert pair_encoding(read, text, None) is None
    with pytest.raises(ConfigurationError, match="'separated': the topic's schema has inline keys"):
        pair_encoding(fields, plain(INLINE).schema_info(), SEPARATED)
    with pytest.raises(ConfigurationError, match="of type STRING, not KEY_VALUE"):
        pair_encoding(fields, text, SEPARATED)


def test_a_schema_of_pairs_that_makes_no_sense_is_refused() -> None:
    broken = SchemaInfo(SchemaType.KEY_VALUE, "", b"", {"kv.encoding.type": "SIDEWAYS"})
    with pytest.raises(ConfigurationError, match=r"the topic's schema: .*SIDEWAYS"):
        encoder_of(PLAIN, broken)
    short = SchemaInfo(SchemaType.KEY_VALUE, "", b"\0", {})
    with pytest.raises(ConfigurationError, match="the topic's schema: "):
        encoder_of(PLAIN, short)
