"""Bytes as Apache Pulsar 4.2.4's Java client makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.schema import (
    AutoConsumeSchema,
    AvroSchema,
    BytesSchema,
    Int32Schema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    SchemaInfo,
    SchemaType,
    StringSchema,
)
from pulsar_py.schema.key_value_schema import key_value_encoding_of, split_key_value_info

SEPARATED = KeyValueEncodingType.SEPARATED


@dataclass
class Inner:
    text: str


@dataclass
class LaterInner:
    text: str
    added: int = 5


def pairs(encoding: Any = KeyValueEncodingType.INLINE) -> KeyValueSchema[str, int]:
    return KeyValueSchema(StringSchema(), Int32Schema(), encoding)


@pytest.mark.parametrize(
    ("pair", "data"),
    [
        (KeyValue("k", 7), "000000016b0000000400000007"),
        (KeyValue(None, 7), "ffffffff0000000400000007"),
        (KeyValue("k", None), "000000016bffffffff"),
        (KeyValue("", 7), "000000000000000400000007"),
    ],
)
def test_inline_pairs_are_java_s_bytes(pair: KeyValue[str, int], data: str) -> None:
    assert pairs().encode(pair).hex() == data
    assert pairs().decode(bytes.fromhex(data)) == pair


def test_a_separate_key_is_not_in_the_payload() -> None:
    schema = pairs(SEPARATED)
    pair = KeyValue("k", 7)

    assert schema.has_separate_key
    assert schema.encode_key(pair) == b"k"
    assert schema.encode(pair) == b"\0\0\0\7"
    assert schema.decode_with(None, b"\0\0\0\7", b"k") == pair
    assert schema.decode_with(None, None, b"k") == KeyValue("k", None)
    assert schema.decode(b"\0\0\0\7") == KeyValue(None, 7)


def test_a_null_value_deletes_a_separate_key_only() -> None:
    gone = KeyValue[str, int]("k", None)

    assert pairs(SEPARATED).is_null(gone)
    assert not pairs().is_null(gone)
    assert pairs().is_null(None)
    assert not pairs().has_separate_key
    assert pairs().decode_with(None, None) is None
    assert pairs(SEPARATED).encode_key(KeyValue(None, 1)) is None


def test_the_definition_is_java_s() -> None:
    info = KeyValueSchema(BytesSchema(), AvroSchema(Inner, properties={"a": "b"})).schema_info()
    inner = AvroSchema(Inner).schema_info().data

    assert (info.type, info.name) == (SchemaType.KEY_VALUE, "KeyValue")
    assert info.data == b"\0\0\0\0" + len(inner).to_bytes(4, "big") + inner
    assert info.properties == {
        "key.schema.name": "Bytes",
        "key.schema.type": "BYTES",
        "key.schema.properties": "{}",
        "value.schema.name": "AVRO",
        "value.schema.type": "AVRO",
        "value.schema.properties": '{"a":"b"}',
        "kv.encoding.type": "INLINE",
    }


def test_a_definition_is_taken_apart_again() -> None:
    key, value = StringSchema(), AvroSchema(Inner, properties={"a": "b"})
    info = KeyValueSchema(key, value, SEPARATED).schema_info()

    assert split_key_value_info(info) == (key.schema_info(), value.schema_info())
    assert key_value_encoding_of(info) is SEPARATED


def test_versions_of_both_parts_are_read_as_they_were_written() -> None:
    older = KeyValueSchema(StringSchema(), AvroSchema(Inner))
    newer = KeyValueSchema(StringSchema(), AvroSchema(LaterInner))

    read = newer.decoder_for(older.schema_info())

    assert newer.reads_versions
    assert not pairs().reads_versions
    assert read(older.encode(KeyValue("k", Inner("x"))), None) == KeyValue("k", LaterInner("x"))


@pytest.mark.parametrize("value", [("k", 7), None, KeyValue(5, 7), KeyValue("k", "7")])
def test_what_is_no_pair_is_refused(value: Any) -> None:
    with pytest.raises(SchemaSerializationError):
        pairs().encode(value)


@pytest.mark.parametrize(
    "data",
    ["", "000000", "00000001", "000000016b", "7fffffff6b00000000", "000000016b00000005000000"],
)
def test_lengths_beyond_the_payload_are_refused(data: str) -> None:
    with pytest.raises(SchemaSerializationError):
        pairs().decode(bytes.fromhex(data))


@pytest.mark.parametrize(
    "change",
    [
        {"type": SchemaType.STRING},
        {"data": b"\0\0"},
        {"properties": {"key.schema.type": "UNKNOWN"}},
        {"properties": {"key.schema.properties": "{"}},
        {"properties": {"key.schema.properties": "[]"}},
    ],
)
def test_definitions_that_make_no_sense_are_refused(change: dict[str, Any]) -> None:
    good = pairs().schema_info()
    fields = {"type": good.type, "data": good.data, "properties": good.properties} | change

    with pytest.raises(SchemaSerializationError):
        split_key_value_info(SchemaInfo(**fields))


def test_an_unknown_encoding_is_refused() -> None:
    info = SchemaInfo(SchemaType.KEY_VALUE, properties={"kv.encoding.type": "ELSEWHERE"})

    with pytest.raises(SchemaSerializationError, match="ELSEWHERE"):
        key_value_encoding_of(info)


def test_what_says_nothing_is_inline_bytes() -> None:
    info = SchemaInfo(SchemaType.KEY_VALUE, data=b"\xff" * 8)

    assert key_value_encoding_of(info) is KeyValueEncodingType.INLINE
    assert [each.type for each in split_key_value_info(info)] == [SchemaType.BYTES] * 2


def test_pairs_of_pairs_are_refused() -> None:
    with pytest.raises(InvalidConfigurationError):
        KeyValueSchema(StringSchema(), pairs())
    with pytest.raises(InvalidConfigurationError):
        KeyValueSchema(AutoConsumeSchema(), StringSchema())


def test_its_parts_can_be_asked_for() -> None:
    schema = pairs(SEPARATED)

    assert isinstance(schema.key_schema, StringSchema)
    assert isinstance(schema.value_schema, Int32Schema)
    assert schema.encoding is SEPARATED
