"""Good inputs of each target, and chance changes to them (pure, by a `random.Random`).

An input of commands begins with a byte of flags: whether CONNECT comes first, and a producer and a
consumer. What follows is what a client sends. One of REST is a request as it stands on the wire.
"""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from pulsar_py.admin.router import Route
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from tests.integration.client_commands import client_frames

CONNECTED: Final = 1
OPENED: Final = 2

Mutator = Callable[[random.Random, bytes], bytes]

_EXTREME_NUMBERS: Final = (0, 1, -1, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 2**64 - 1)
_ODD_TEXTS: Final = (
    "", "/", "..", "../../etc/passwd", "persistent://", "persistent://a/b/c/d", "%00", "\x00", "\n",
    "persistent://public/default/" + "x" * 5000, "a-partition-2147483647", "a-partition--1",
    "\U0001d54f", ".*",
    "(a+)+$", "__change_events", "persistent://public/default/..", "persistent://../default/t",
    ".", "non-persistent://public/default/t", "${x}", "*",
)  # fmt: skip
_ODD_JSON: Final = (
    "null", "[]", "{}", "0", "-1", '""', "true", "1e999", "NaN", "[" * 300 + "]" * 300, "9" * 400,
    '{"a":' * 150 + "1" + "}" * 150, '"\\ud800"', "{", '{"numBundles":2147483647}',
    '{"schema":"{","type":"AVRO","properties":{}}', '{"ledgerId":-1,"entryId":9223372036854775808}',
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
    except DecodeError:
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
        return chance.choice(_ODD_TEXTS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.randbytes(chance.choice((0, 1, 40, 3000)))
    if field.type == FieldDescriptor.TYPE_ENUM:
        return chance.choice(field.enum_type.values).number
    if field.type == FieldDescriptor.TYPE_BOOL:
        return chance.random() < 0.5
    if field.cpp_type in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
        return chance.choice((0.0, -1.0, float("nan"), float("inf")))
    return chance.choice(_EXTREME_NUMBERS)


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
            changed[at : at + 4] = struct.pack(">I", chance.choice(_EXTREME_NUMBERS) & 0xFFFFFFFF)
        else:
            changed[at] = chance.randrange(256)
    return bytes(changed)


# Those that would end the run, or change what it watches by.
_LEFT_OUT: Final = re.compile(r"shutdown|/brokers/logging|/brokers/configuration|health")
_NAMES: Final = {"tenant": "public", "namespace": "default", "cluster": "standalone", "domain": "persistent"}  # fmt: skip


def rest_seeds(routes: Sequence[Route]) -> list[bytes]:
    """A request for each route, with a body where it reads one."""
    return [
        _request(route.method, _path_of(route.template), b"{}" if route.consumes else b"")
        for route in routes
        if not _LEFT_OUT.search(route.template)
    ]


def _path_of(template: str) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1].rstrip("*").partition(":")[0]
        return _NAMES.get(name, "t" if "opic" in name else "1")

    path = re.sub(r"\{([^}]+)\}", value, template)
    return re.sub(r"\(([^|)]*)[^)]*\)", r"\1", path)


def _request(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def mutate_requests(chance: random.Random, data: bytes) -> bytes:
    """Another body, query or part of the path; or any bytes changed."""
    head, _, body = data.partition(b"\r\n\r\n")
    parts = head.split(b"\r\n")[0].split(b" ")
    if len(parts) != 3 or chance.random() < 0.15:
        return mutate_bytes(chance, data)
    method, target = (part.decode("latin-1") for part in parts[:2])
    kind = chance.randrange(5)
    if kind == 0:
        body = chance.choice(_ODD_JSON).encode("utf-8", "surrogatepass")
    elif kind == 1:
        body = mutate_bytes(chance, body)
    elif kind == 2:
        segments = target.split("/")
        odd = chance.choice(_ODD_TEXTS).encode("utf-8", "replace")
        segments[chance.randrange(len(segments))] = "".join(f"%{each:02X}" for each in odd)
        target = "/".join(segments)
    elif kind == 3:
        name = chance.choice(
            ("authoritative", "force", "messagePosition", "timestamp", "limit", "x")
        )
        target += f"?{name}={chance.choice((*map(str, _EXTREME_NUMBERS), 'true', '%zz', ''))}"
    else:
        value = chance.choice((*_EXTREME_NUMBERS, *_ODD_TEXTS, None, True, [], {}))
        body = json.dumps(value).encode("utf-8", "replace")
    if chance.random() < 0.1:
        method = chance.choice(("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"))
    return _request(method, target, body)
