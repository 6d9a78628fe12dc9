from __future__ import annotations

import pytest

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.proto.SchemaRegistryFormat_pb2 import SchemaInfo
from pulsar_py.server.schema_registry.definition import (
    SchemaDefinition,
    StoredSchema,
    decode_stored,
    decode_version,
    encode_stored,
    encode_version,
)


def test_versions_travel_as_eight_bytes_big_endian() -> None:
    assert encode_version(1) == bytes(7) + b"\x01"
    assert decode_version(encode_version(-1)) == -1


def test_version_of_another_length_is_refused() -> None:
    with pytest.raises(IncompatibleSchemaError, match="schema version of 1 bytes, expected 8"):
        decode_version(b"\x00")


@pytest.mark.parametrize(
    ("wire", "stored"),
    [
        (Schema.String, SchemaInfo.STRING),
        (Schema.Avro, SchemaInfo.AVRO),
        (Schema.KeyValue, SchemaInfo.KEYVALUE),
        (Schema.ProtobufNative, SchemaInfo.PROTOBUFNATIVE),
        (Schema.External, SchemaInfo.EXTERNAL),
    ],
)
def test_stored_types_are_numbered_differently(wire: int, stored: int) -> None:
    schema = StoredSchema(SchemaDefinition(wire, b"x", {"k": "v"}), 3, 1000, "me")
    data = encode_stored("t/n/x", schema)
    assert SchemaInfo.FromString(data).type == stored
    back = decode_stored(data, 3, "t/n/x")
    assert back == StoredSchema(SchemaDefinition(wire, b"x", {"k": "v"}, "t/n/x"), 3, 1000, "me")


def test_wire_form_keeps_everything() -> None:
    schema = Schema(name="n", schema_data=b"d", type=Schema.Json)
    schema.properties.add(key="a", value="1")
    assert SchemaDefinition.from_wire(schema).to_wire() == schema


def test_type_none_is_no_schema() -> None:
    assert SchemaDefinition(Schema.Type.Value("None"), b"").is_empty
    assert not SchemaDefinition(Schema.String, b"").is_empty
