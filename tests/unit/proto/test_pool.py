"""Our descriptor pool."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from pulsar_py.proto.pool import POOL
from pulsar_py.proto.PulsarApi_pb2 import DESCRIPTOR


def test_our_pool_is_apart_from_the_process_wide_one() -> None:
    """A program may load a `PulsarApi.proto` of its own, as the official Python client does."""
    other = descriptor_pb2.FileDescriptorProto(name="PulsarApi.proto", package="pulsar.proto")
    message = other.message_type.add(name="BaseCommand")
    message.field.add(
        name="something_else",
        number=1,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
        label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
    )
    default_pool = descriptor_pool.Default()

    default_pool.AddSerializedFile(other.SerializeToString())

    theirs = message_factory.GetMessageClass(
        default_pool.FindMessageTypeByName("pulsar.proto.BaseCommand")
    )
    assert [field.name for field in theirs.DESCRIPTOR.fields] == ["something_else"]
    ours = POOL.FindMessageTypeByName("pulsar.proto.BaseCommand")
    assert ours.file.serialized_pb == DESCRIPTOR.serialized_pb
    assert "type" in ours.fields_by_name
