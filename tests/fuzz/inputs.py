"""Good inputs of each target, and chance changes to them (pure, by a `random.Random`).

An input of commands begins with a byte of flags: whether CONNECT comes first, and a producer and a
consumer. What follows is what a client sends. Those of REST are made in `requests`.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from tests.integration.client_commands import client_frames

CONNECTED: Final = 1
OPENED: Final = 2

Mutator = Callable[[random.Random, bytes], bytes]

EXTREME_NUMBERS: Final = (0, 1, -1, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 2**64 - 1)
ODD_TEXTS: Final = (
    "", "/", "..", "../../etc/passwd", "persistent://", "persistent://a/b/c/d", "%00", "\x00", "\n",
    "persistent://public/default/" + "x" * 5000, "a-partition-2147483647", "a-partition--1",
    "\U0001d54f", ".*",
    "(a+)+$", "__change_events", "persistent://public/default/..", "persistent://../default/t",
    ".", "non-persistent://public/default/t", "${x}", "*",
)  # fmt: skip


def command_seeds() -> list[bytes]:
    """Each command as short as it may be and with all its fields, once and after opening."""
    frames = list(client_frames())
    return [bytes([flags]) + each for each in frames for flags in (CONNECTED, CONNECTED | OPENED)]


def mutate_commands(chance: random.Random, data: bytes) -> bytes:
    """Change fields of the command, its bytes with right sizes, or the bytes of the stream."""
    flags, frame = data[:1], data[1:]
    if chance.random() < 0.05:
        flags = bytes([chance.randrange(4)])
    kind = chance.randrange(4)
    if kind < 2 and len(frame) > 8:
        (size,) = struct.unpack_from(">I", frame, 4)
        command, rest = frame[8 : 8 + size], frame[8 + size :]
        command = _other_fields(chance, command) if kind else mutate_bytes(chance, command)
        if rest and chance.random() < 0.3:
            rest = mutate_bytes(chance, rest)
        sizes = struct.pack(">II", 4 + len(command) + len(rest), len(command))
        return flags + sizes + command + rest
    if kind == 2:
        return flags + frame + frame
    return flags + mutate_bytes(chance, frame)


def _other_fields(chance: random.Random, command: bytes) -> bytes:
    try:
        parsed = BaseCommand.FromString(command)
    except (DecodeError, UnicodeDecodeError):  # the second by protobuf's own Python
        return mutate_bytes(chance, command)
    part: Message = parsed
    for _ in range(3):
        present = [field for field, _ in part.ListFields()]
        fields = list(part.DESCRIPTOR.fields)
        if not fields:
            break
        field = chance.choice(present if present and chance.random() < 0.7 else fields)
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            _change_field(chance, part, field)
            break
        inner = getattr(part, field.name)
        if field.is_repeated:
            inner = inner.add()
        else:
            inner.SetInParent()
        part = inner
    return parsed.SerializePartialToString()


def _change_field(chance: random.Random, part: Message, field: FieldDescriptor) -> None:
    value = _other_value(chance, field)
    try:
        if field.is_repeated:
            getattr(part, field.name).extend([value] * chance.choice((1, 3, 200)))
        else:
            setattr(part, field.name, value)
    except ValueError:  # out of the field's range
        part.ClearField(field.name)


def _other_value(chance: random.Random, field: FieldDescriptor) -> Any:  # Any: by the field's type
    if field.type == FieldDescriptor.TYPE_STRING:
        return chance.choice(ODD_TEXTS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.randbytes(chance.choice((0, 1, 40, 3000)))
    if field.type == FieldDescriptor.TYPE_ENUM:
        return chance.choice(field.enum_type.values).number
    if field.type == FieldDescriptor.TYPE_BOOL:
        return chance.random() < 0.5
    if field.cpp_type in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
        return chance.choice((0.0, -1.0, float("nan"), float("inf")))
    return chance.choice(EXTREME_NUMBERS)


def mutate_bytes(chance: random.Random, data: bytes) -> bytes:
    """Flip, cut out, put in, repeat or replace a few bytes."""
    changed = bytearray(data or b"\x00")
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(changed))
        kind = chance.randrange(6)
        if kind == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and len(changed) > 10:
            del changed[at : at + chance.randrange(1, 9)]
        elif kind == 2:
            changed[at:at] = chance.randbytes(chance.randrange(1, 9))
        elif kind == 3:
            changed[at:at] = changed[at : at + chance.randrange(1, 50)]
        elif kind == 4:
            changed[at : at + 4] = struct.pack(">I", chance.choice(EXTREME_NUMBERS) & 0xFFFFFFFF)
        else:
            changed[at] = chance.randrange(256)
    return bytes(changed)
