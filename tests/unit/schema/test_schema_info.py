from __future__ import annotations

import pytest

from pulsar_py.proto.PulsarApi_pb2 import Schema as WireSchema
from pulsar_py.schema import SchemaInfo, SchemaType


@pytest.mark.parametrize("schema_type", [each for each in SchemaType if each > 0])
def test_a_definition_survives_the_wire(schema_type: SchemaType) -> None:
    info = SchemaInfo(schema_type, "name", b"data", {"b": "2", "a": "1"})

    wire = info.to_wire()

    assert wire is not None
    assert SchemaInfo.from_wire(wire) == info
    assert [each.key for each in wire.properties] == ["a", "b"]


@pytest.mark.parametrize("schema_type", [each for each in SchemaType if each <= 0])
def test_client_side_types_are_no_schema_on_the_wire(schema_type: SchemaType) -> None:
    assert SchemaInfo(schema_type).to_wire() is None


@pytest.mark.parametrize(
    ("schema_type", "number"),
    [
        (SchemaType.STRING, WireSchema.String),
        (SchemaType.BOOLEAN, WireSchema.Bool),
        (SchemaType.KEY_VALUE, WireSchema.KeyValue),
        (SchemaType.PROTOBUF_NATIVE, WireSchema.ProtobufNative),
        (SchemaType.EXTERNAL, WireSchema.External),
    ],
)
def test_types_have_the_wire_s_numbers(schema_type: SchemaType, number: int) -> None:
    wire = SchemaInfo(schema_type).to_wire()

    assert wire is not None
    assert wire.type == number


def test_auto_consume_has_another_number_on_the_wire() -> None:
    assert SchemaType.from_wire(WireSchema.AutoConsume) is SchemaType.AUTO_CONSUME


def test_only_records_are_structs() -> None:
    structs = {each for each in SchemaType if each.is_struct}

    assert structs == {
        SchemaType.AVRO,
        SchemaType.JSON,
        SchemaType.PROTOBUF,
        SchemaType.PROTOBUF_NATIVE,
    }
