"""Protobuf messages become Arrow structs."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP_FILE

from pulsar_py.common.errors import ConfigurationError, SchemaSerializationError
from pulsar_py.schema import ProtobufNativeSchema, SchemaInfo, SchemaType
from pulsar_py.spark.values.protobuf_types import ProtobufPayloads

# FieldDescriptorProto's TYPE_... and LABEL_...
DOUBLE, INT64, UINT64, INT32, BOOL, STRING, MESSAGE, BYTES, UINT32, ENUM = (
    1, 3, 4, 5, 8, 9, 11, 12, 13, 14,
)  # fmt: skip
OPTIONAL, REPEATED = 1, 3


def message_class() -> Any:
    file = FileDescriptorProto(name="m.proto", package="p", syntax="proto2")
    file.dependency.append("google/protobuf/timestamp.proto")
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="ZERO", number=0)
    kind.value.add(name="ONE", number=1)
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="x", number=1, type=INT32, label=OPTIONAL)
    outer = file.message_type.add(name="Outer")
    for number, (name, kind_number, label, type_name) in enumerate(
        [
            ("i", INT32, OPTIONAL, None),
            ("u", UINT32, OPTIONAL, None),
            ("uu", UINT64, OPTIONAL, None),
            ("d", DOUBLE, OPTIONAL, None),
            ("s", STRING, OPTIONAL, None),
            ("b", BYTES, OPTIONAL, None),
            ("kind", ENUM, OPTIONAL, ".p.Kind"),
            ("inner", MESSAGE, OPTIONAL, ".p.Inner"),
            ("inners", MESSAGE, REPEATED, ".p.Inner"),
            ("numbers", INT64, REPEATED, None),
            ("at", MESSAGE, OPTIONAL, ".google.protobuf.Timestamp"),
            ("counts", MESSAGE, REPEATED, ".p.Outer.CountsEntry"),
        ],
        start=1,
    ):
        outer.field.add(
            name=name, number=number, type=kind_number, label=label, type_name=type_name
        )
    outer.field.add(name="z", number=20, type=INT32, label=OPTIONAL, default_value="7")
    entry = outer.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=STRING, label=OPTIONAL)
    entry.field.add(name="value", number=2, type=MESSAGE, label=OPTIONAL, type_name=".p.Inner")
    pool = DescriptorPool()
    pool.AddSerializedFile(TIMESTAMP_FILE.serialized_pb)
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("p.Outer"))


def test_messages_become_structs() -> None:
    made = message_class()
    message = made(i=-1, u=2**32 - 1, uu=2**64 - 1, d=0.5, s="ä", b=b"\xff", kind=1, numbers=[1, 2])
    message.inner.x = 3
    message.inners.add(x=4)
    message.at.seconds, message.at.nanos = 1, 5000
    message.counts["k"].x = 6
    codec = ProtobufPayloads(ProtobufNativeSchema(made).schema_info())
    array = codec.decode([message.SerializeToString(), None, b""], None)
    assert array.type == codec.arrow_type
    assert codec.arrow_type.field("uu").type == pa.decimal128(20, 0)
    full, null, empty = array.to_pylist()
    assert full == {
        "i": -1,
        "u": 2**32 - 1,
        "uu": Decimal(2**64 - 1),
        "d": 0.5,
        "s": "ä",
        "b": b"\xff",
        "kind": "ONE",
        "inner": {"x": 3},
        "inners": [{"x": 4}],
        "numbers": [1, 2],
        "at": datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC),
        "counts": [("k", {"x": 6})],
        "z": 7,
    }
    assert null is None
    unset = {name for name, value in empty.items() if value is None}
    assert unset == set(full) - {"inners", "numbers", "counts", "z"}


def test_bytes_that_are_no_message() -> None:
    codec = ProtobufPayloads(ProtobufNativeSchema(message_class()).schema_info())
    with pytest.raises(SchemaSerializationError):
        codec.decode([b"\xff"], None)


def test_a_message_that_contains_itself_is_refused() -> None:
    file = FileDescriptorProto(name="r.proto", package="p")
    node = file.message_type.add(name="Node")
    node.field.add(name="next", number=1, type=MESSAGE, label=OPTIONAL, type_name=".p.Node")
    pool = DescriptorPool()
    pool.Add(file)
    made = GetMessageClass(pool.FindMessageTypeByName("p.Node"))
    with pytest.raises(ConfigurationError, match=r"p\.Node contains itself"):
        ProtobufPayloads(ProtobufNativeSchema(made).schema_info())


def test_a_definition_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="PROTOBUF_NATIVE"):
        ProtobufPayloads(SchemaInfo(SchemaType.PROTOBUF_NATIVE, data=b"{}"))
