"""Definitions are compared with those that Apache Pulsar 4.2.4's Java client makes."""

from __future__ import annotations

import base64
import json

import pytest
from google.protobuf import descriptor_pb2, struct_pb2, timestamp_pb2, wrappers_pb2

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.proto import MLDataFormats_pb2
from pulsar_py.schema.protobuf_definition import (
    avro_definition,
    native_definition,
    parse_native_definition,
    parsing_properties,
)

STRING = '{"type":"string","avro.java.string":"String"}'
JAVA_STRUCT = (
    '{"type":"record","name":"Struct","namespace":"com.google.protobuf","fields":[{"name":"fields",'
    '"type":{"type":"array","items":{"type":"record","name":"FieldsEntry","namespace":'
    '"com.google.protobuf.Struct","fields":[{"name":"key","type":' + STRING + ',"default":""},'
    '{"name":"value","type":["null",{"type":"record","name":"Value","namespace":'
    '"com.google.protobuf","fields":[{"name":"null_value","type":{"type":"enum","name":"NullValue",'
    '"symbols":["NULL_VALUE"]},"default":"NULL_VALUE"},{"name":"number_value","type":"double",'
    '"default":0.0},{"name":"string_value","type":' + STRING + ',"default":""},'
    '{"name":"bool_value","type":"boolean","default":false},{"name":"struct_value","type":'
    '["null","Struct"],"default":null},{"name":"list_value","type":["null",{"type":"record",'
    '"name":"ListValue","fields":[{"name":"values","type":{"type":"array","items":"Value"},'
    '"default":[]}]}],"default":null}]}],"default":null}]}},"default":[]}]}'
)
JAVA_TIMESTAMP = (
    '{"type":"record","name":"Timestamp","namespace":"com.google.protobuf","fields":'
    '[{"name":"seconds","type":"long","default":0},{"name":"nanos","type":"int","default":0}]}'
)


def test_avro_definitions_are_java_s() -> None:
    assert avro_definition(struct_pb2.Struct.DESCRIPTOR).decode() == JAVA_STRUCT
    assert avro_definition(timestamp_pb2.Timestamp.DESCRIPTOR).decode() == JAVA_TIMESTAMP


def test_without_multiple_files_java_has_an_outer_class() -> None:
    text = json.loads(avro_definition(descriptor_pb2.FieldDescriptorProto.DESCRIPTOR))
    label = next(each for each in text["fields"] if each["name"] == "label")

    assert text["namespace"] == "com.google.protobuf.DescriptorProtos"
    assert label["type"]["namespace"] == (
        "com.google.protobuf.DescriptorProtos$FieldDescriptorProto"
    )
    assert label["default"] == "LABEL_OPTIONAL"


def test_the_outer_class_is_named_after_the_file() -> None:
    text = json.loads(avro_definition(MLDataFormats_pb2.PositionInfo.DESCRIPTOR))

    assert text["namespace"].endswith("MLDataFormats")


def test_required_fields_have_no_default_and_bytes_are_characters() -> None:
    text = json.loads(avro_definition(MLDataFormats_pb2.PositionInfo.DESCRIPTOR))

    assert text["fields"][0] == {"name": "ledgerId", "type": "long"}
    assert json.loads(avro_definition(wrappers_pb2.BytesValue.DESCRIPTOR))["fields"] == [
        {"name": "value", "type": "bytes", "default": ""}
    ]


def test_native_definitions_hold_the_file_and_its_imports() -> None:
    text = json.loads(native_definition(timestamp_pb2.Timestamp.DESCRIPTOR))

    assert text["rootMessageTypeName"] == "google.protobuf.Timestamp"
    assert text["rootFileDescriptorName"] == "google/protobuf/timestamp.proto"
    files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(text["fileDescriptorSet"]))
    assert [each.name for each in files.file] == ["google/protobuf/timestamp.proto"]


def test_a_message_is_decoded_by_its_definition_alone() -> None:
    message = struct_pb2.Struct()
    message.update({"a": [1, {"b": None}]})

    made = parse_native_definition(native_definition(struct_pb2.Struct.DESCRIPTOR))

    assert made is not struct_pb2.Struct
    assert made.FromString(message.SerializeToString()).fields["a"].list_value.values[0]


def test_the_properties_list_the_fields_as_java_does() -> None:
    assert parsing_properties(struct_pb2.Struct.DESCRIPTOR) == {
        "__PARSING_INFO__": '[{"number":1,"name":"fields","type":"MESSAGE",'
        '"label":"LABEL_REPEATED","definition":null}]'
    }
    assert (
        '"type":"INT64","label":"LABEL_REQUIRED"'
        in (parsing_properties(MLDataFormats_pb2.PositionInfo.DESCRIPTOR)["__PARSING_INFO__"])
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"fileDescriptorSet":"!","rootMessageTypeName":"a","rootFileDescriptorName":"b"}',
        b'{"fileDescriptorSet":"","rootMessageTypeName":"a","rootFileDescriptorName":"b"}',
        b'{"fileDescriptorSet":"/w==","rootMessageTypeName":"a","rootFileDescriptorName":"b"}',
        native_definition(timestamp_pb2.Timestamp.DESCRIPTOR).replace(b"Timestamp", b"Other"),
    ],
)
def test_native_definitions_that_make_no_sense_are_refused(data: bytes) -> None:
    with pytest.raises(SchemaSerializationError, match="PROTOBUF_NATIVE"):
        parse_native_definition(data)
