from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry.definition import SchemaDefinition
from pulsar_py.server.schema_registry.validation import check_definition, is_same, split_key_value

RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}


def avro(definition: object) -> SchemaDefinition:
    return SchemaDefinition(Schema.Avro, json.dumps(definition).encode())


@pytest.mark.parametrize(
    "definition",
    [
        RECORD,
        "string",
        ["null", "long"],
        {"type": "array", "items": "int"},
        {"type": "map", "values": RECORD},
        {"type": "enum", "name": "E", "symbols": ["A", "B"]},
        {"type": "fixed", "name": "F", "size": 4},
        {"type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "type": "record",
            "name": "a.b.Tree",
            "fields": [{"name": "left", "type": ["null", "Tree"]}],
        },
    ],
)
def test_valid_avro_definitions_pass(definition: object) -> None:
    check_definition(avro(definition))


@pytest.mark.parametrize(
    "definition",
    [
        {},
        "nothing",
        7,
        {"type": "record", "name": "R"},
        {"type": "record", "name": "R", "fields": [{"type": "int"}]},
        {"type": "record", "name": "R", "fields": [7]},
        {"type": "record", "name": "1R", "fields": []},
        {"type": "record", "name": "R", "fields": [RECORD["fields"][0]] * 2},
        {"type": "enum", "name": "E", "symbols": ["A", "A"]},
        {"type": "enum", "name": "E", "symbols": [["A"], {}]},
        {"type": "fixed", "name": "F"},
        {"type": "array"},
    ],
)
def test_invalid_avro_definitions_are_refused(definition: object) -> None:
    with pytest.raises(IncompatibleSchemaError, match="invalid definition of Avro schema"):
        check_definition(avro(definition))


@pytest.mark.parametrize("kind", [Schema.Json, Schema.Avro, Schema.Protobuf, Schema.ProtobufNative])
@pytest.mark.parametrize(
    "data",
    [
        b"{nonsense",
        b"",
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"type":' * 100_000,
        b'{"type": "fixed", "name": "F", "size": ' + b"9" * 5000 + b"}",
        b'{"type": "int", "default": NaN}',
        b'"\xff"',
    ],
)
def test_what_is_no_json_is_refused(kind: Schema.Type.ValueType, data: bytes) -> None:
    with pytest.raises(IncompatibleSchemaError):
        check_definition(SchemaDefinition(kind, data))
    good = avro(RECORD)
    assert not is_same(SchemaDefinition(kind, data), replace(good, type=kind))


def test_definition_nested_without_end_is_refused() -> None:
    definition: object = "int"
    for _ in range(500):
        definition = {"type": "array", "items": definition}
    with pytest.raises(IncompatibleSchemaError, match="too deeply"):
        check_definition(avro(definition))


def test_an_enums_own_default_is_one_of_its_symbols() -> None:
    enum = {"type": "enum", "name": "E", "symbols": ["A"]}
    check_definition(avro(enum | {"default": "A"}))
    with pytest.raises(IncompatibleSchemaError, match="default 'B' is none of its symbols"):
        check_definition(avro(enum | {"default": "B"}))


def test_client_side_types_are_refused() -> None:
    with pytest.raises(IncompatibleSchemaError, match="for clients only"):
        check_definition(SchemaDefinition(Schema.AutoConsume, b""))


def test_native_protobuf_needs_its_keys() -> None:
    whole = {"fileDescriptorSet": "", "rootMessageTypeName": "", "rootFileDescriptorName": ""}
    check_definition(SchemaDefinition(Schema.ProtobufNative, json.dumps(whole).encode()))
    with pytest.raises(IncompatibleSchemaError):
        check_definition(SchemaDefinition(Schema.ProtobufNative, b"{}"))
    with pytest.raises(IncompatibleSchemaError):
        check_definition(SchemaDefinition(Schema.ProtobufNative, b"[]"))


def test_key_value_is_cut_at_its_lengths() -> None:
    data = b"\x00\x00\x00\x02ab\x00\x00\x00\x01c"
    assert split_key_value(data) == (b"ab", b"c")
    for broken in (b"\x00", b"\x00\x00\x00\x09ab"):
        with pytest.raises(IncompatibleSchemaError):
            check_definition(SchemaDefinition(Schema.KeyValue, broken))


def test_primitive_types_take_anything() -> None:
    check_definition(SchemaDefinition(Schema.String, b"null"))


def test_same_schema_by_bytes_or_as_parsed() -> None:
    spaced = SchemaDefinition(Schema.Avro, json.dumps(RECORD, indent=2).encode())
    assert is_same(avro(RECORD), spaced)
    assert not is_same(avro(RECORD), avro("string"))
    assert not is_same(avro(RECORD), SchemaDefinition(Schema.Json, spaced.data))
    assert not is_same(SchemaDefinition(Schema.String, b"a"), SchemaDefinition(Schema.String, b"b"))
    assert not is_same(avro(RECORD), SchemaDefinition(Schema.Avro, b"{"))


def test_definition_of_too_many_values_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(IncompatibleSchemaError, match="about 50002 values, allowed are 50000"):
        check_definition(avro([["int"] * 50_000, 1]))
