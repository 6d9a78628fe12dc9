"""Good inputs in which one number is another one, and the memory that each takes.

A number stands in each whole field of the commands and of a message's metadata, and in each path,
query and body of the REST routes that takes one. Requests also go to a topic and a namespace that
are not there, which they make.
"""

from __future__ import annotations

import json
import re
import struct
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from pulsar_py.admin.declared import Body, Number, PathNumber
from pulsar_py.admin.router import Route
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, MessageMetadata
from pulsar_py.server.handlers.command_table import HANDLERS
from tests.fuzz.inputs import CONNECTED, OPENED
from tests.fuzz.requests import LEFT_OUT, request_of, whole
from tests.fuzz.run import Target
from tests.integration.client_commands import PRODUCER_ID, command_of
from tests.wire_client import encode

_WHOLE_NUMBERS: Final = frozenset((FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64))  # fmt: skip


def commands_with(number: int) -> Iterator[tuple[str, bytes]]:
    """Each whole number of each command, and of a message's metadata, in turn; it, and its input."""
    for kind in HANDLERS:
        for place in range(_numbers_count(command_of(kind, with_optional=True))):
            command = command_of(kind, with_optional=True)
            name = _change(command, place, number)
            yield name, bytes([CONNECTED | OPENED]) + encode(command)
    for place in range(_numbers_count(_metadata())):
        metadata = _metadata()
        name = _change(metadata, place, number)
        command = BaseCommand(type=BaseCommand.SEND)
        command.send.producer_id = PRODUCER_ID
        command.send.sequence_id = 1
        head = metadata.SerializePartialToString()
        rest = struct.pack(">I", len(head)) + head + b"body"
        yield name, bytes([CONNECTED | OPENED]) + encode(command, rest)


def _metadata() -> MessageMetadata:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    for field in metadata.DESCRIPTOR.fields:
        if field.cpp_type in _WHOLE_NUMBERS and not field.is_repeated:
            setattr(metadata, field.name, 1)
    return metadata


def _numbers_of(part: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    for field, value in part.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in value if field.is_repeated else [value]:
                yield from _numbers_of(inner)
        elif field.cpp_type in _WHOLE_NUMBERS:
            yield part, field


def _numbers_count(message: Message) -> int:
    return sum(1 for _ in _numbers_of(message))


def _change(message: Message, place: int, number: int) -> str:
    part, field = list(_numbers_of(message))[place]
    bits = 32 if field.cpp_type in {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32} else 64  # fmt: skip
    value = min(number, (1 << bits - 1) - 1)
    if field.is_repeated:
        getattr(part, field.name)[0] = value
    else:
        setattr(part, field.name, value)
    return f"{part.DESCRIPTOR.name}.{field.name}"


def requests_with(routes: Sequence[Route], number: int) -> Iterator[tuple[str, bytes]]:
    """Each whole number of each route's path, query and body in turn; it, and its input."""
    for route in routes:
        if LEFT_OUT.search(route.template):
            continue
        for parameter in route.parameters:
            if isinstance(parameter, Number):
                query = f"?{parameter.name}={number}"
                yield f"{route.method} {route.template}{query}", request_of(route, query)
            elif isinstance(parameter, PathNumber):
                template = route.template.replace(f"{{{parameter.name}}}", str(number))
                yield f"{route.method} {template}", request_of(route, template=template)
        if isinstance(route.body, Body):
            for name, changed in _bodies_with(whole(route.body.kind), number):
                body = json.dumps(changed).encode()
                request = request_of(route, body=body)
                new = request.replace(b"/default/t", b"/default/new", 1)
                new = new.replace(b"/namespaces/public/default", b"/namespaces/public/new", 1)
                for each in sorted({request, new}):
                    yield f"{route.method} {route.template} {name}", each


def _bodies_with(body: Any, number: int) -> Iterator[tuple[str, Any]]:  # Any: JSON
    text = json.dumps(body)
    for found in re.finditer(r"(?<![\w\"])1(?![\w\"])", text):
        yield text[: found.start()][-30:], json.loads(f"{text[: found.start()]}{number}{text[found.end() :]}")  # fmt: skip


async def peaks(target: Target, inputs: Iterable[tuple[str, bytes]]) -> list[tuple[int, str]]:
    """The most memory that Python's objects took while each input was served, in bytes."""
    found = []
    tracemalloc.start()
    try:
        for name, data in inputs:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            await target.feed(data)
            _, peak = tracemalloc.get_traced_memory()
            found.append((peak - before, name))
        await target.check()
    finally:
        tracemalloc.stop()
    return found
