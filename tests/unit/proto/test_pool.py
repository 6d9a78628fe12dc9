"""Our descriptor pool."""

from __future__ import annotations

import os
import subprocess
import sys

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


def test_protobuf_s_parsers_in_python_are_not_loaded() -> None:
    """Where it is compiled: they are 20 modules, which each start would pay for."""
    program = (
        "import sys, pulsar_py.wire.command_codec\n"
        "from google.protobuf.internal import api_implementation\n"
        "unused = {'google.protobuf.internal.python_message', 'google.protobuf.descriptor_pool'}\n"
        "print(api_implementation.Type(), *sorted(unused & sys.modules.keys()))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    kind, *loaded = ran.stdout.split()
    assert not loaded or kind != "upb"


def test_messages_are_read_by_protobuf_s_python_where_nothing_is_compiled() -> None:
    program = (
        "from google.protobuf.internal import api_implementation as a\n"
        "from pulsar_py.proto.PulsarApi_pb2 import BaseCommand\n"
        "command = BaseCommand(type=BaseCommand.SEND)\n"
        "command.send.producer_id = 1\n"
        "command.send.message_id.ledgerId = 3\n"
        "command.send.sequence_id = command.send.message_id.entryId = 2\n"
        "again = BaseCommand.FromString(command.SerializeToString())\n"
        "print(a.Type(), again.send.message_id.ledgerId, again == command)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"},
    )
    assert ran.stdout.split() == ["python", "3", "True"]
