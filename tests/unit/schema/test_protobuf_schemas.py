from __future__ import annotations

import json
from typing import Any

import pulsar.schema
import pytest
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.proto.MLDataFormats_pb2 import PositionInfo
from pulsar_py.schema import ProtobufNativeSchema, ProtobufSchema, SchemaType


@pytest.mark.parametrize("kind", [ProtobufSchema, ProtobufNativeSchema])
def test_messages_survive(kind: Any) -> None:
    schema = kind(StringValue)
    message = StringValue(value="ä")

    assert schema.encode(message) == message.SerializeToString()
    assert schema.decode(schema.encode(message)) == message


def test_the_broker_stores_what_the_official_client_stores() -> None:
    mine = ProtobufNativeSchema(StringValue).schema_info()
    theirs = pulsar.schema.ProtobufNativeSchema(StringValue).schema_info()

    assert mine.type is SchemaType.PROTOBUF_NATIVE
    assert json.loads(mine.data) == json.loads(theirs.schema())


def test_the_avro_form_is_another_type() -> None:
    info = ProtobufSchema(StringValue, properties={"k": "v"}).schema_info()

    assert info.type is SchemaType.PROTOBUF
    assert json.loads(info.data)["name"] == "StringValue"
    assert info.properties["k"] == "v"
    assert "__PARSING_INFO__" in info.properties


@pytest.mark.parametrize("value", [Int32Value(value=1), "text", None])
def test_other_messages_are_refused(value: Any) -> None:
    with pytest.raises(SchemaSerializationError, match="expected a StringValue"):
        ProtobufSchema(StringValue).encode(value)


def test_a_message_that_lacks_a_required_field_is_refused() -> None:
    with pytest.raises(SchemaSerializationError, match="PositionInfo"):
        ProtobufSchema(PositionInfo).encode(PositionInfo())


def test_bytes_that_are_no_message_are_refused() -> None:
    with pytest.raises(SchemaSerializationError, match="2 bytes are not a StringValue"):
        ProtobufSchema(StringValue).decode(b"\xff\xff")


@pytest.mark.parametrize("owner", [int, StringValue(), "text"])
def test_what_is_no_message_class_is_refused(owner: Any) -> None:
    with pytest.raises(InvalidConfigurationError):
        ProtobufSchema(owner)
