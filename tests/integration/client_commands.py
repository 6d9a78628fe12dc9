"""Frames of every command that a client can send, made from the protocol's own description.

Which commands these are is read from the broker's command table, so that a new handler is covered
without anybody thinking of it. Fields are filled by name where a name means something to the
broker, by type otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.handlers.command_table import HANDLERS
from tests.wire_client import encode, send_frame

TOPIC = "persistent://public/default/mutated"
PRODUCER_ID, CONSUMER_ID = 1, 1

_BY_NAME: dict[str, Any] = {
    "topic": TOPIC,
    "topics": TOPIC,
    "topic_name": TOPIC,
    "namespace": "public/default",
    "subscription": "mutants",
    "topics_pattern": "persistent://public/default/mut.*",
    "producer_id": PRODUCER_ID,
    "consumer_id": CONSUMER_ID,
    "protocol_version": 21,
    "ledgerId": 1,
    "entryId": 0,
    # A client may ask for as many as it likes; what it does with them is no matter here.
    "messagePermits": 10,
}


def part_of(command: BaseCommand) -> Message:
    """The message that goes with the command's type."""
    name = BaseCommand.DESCRIPTOR.fields_by_number[command.type].name
    part: Message = getattr(command, name)
    part.SetInParent()
    return part


def fill(message: Message, *, with_optional: bool, depth: int = 0) -> None:
    """Give the required fields, or all, a plausible value."""
    for field in message.DESCRIPTOR.fields:
        if not (field.is_required or (with_optional and depth < 3)):
            continue
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            value = getattr(message, field.name)
            inner = value.add() if field.is_repeated else value
            inner.SetInParent()
            fill(inner, with_optional=with_optional, depth=depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).append(_value(field))
        else:
            setattr(message, field.name, _value(field))


def _value(field: FieldDescriptor) -> Any:
    if field.name in _BY_NAME:
        return _BY_NAME[field.name]
    if field.type == FieldDescriptor.TYPE_ENUM:
        return field.enum_type.values[0].number
    if field.type == FieldDescriptor.TYPE_STRING:
        return field.name
    if field.type == FieldDescriptor.TYPE_BYTES:
        return field.name.encode()
    return field.type == FieldDescriptor.TYPE_BOOL or 1


def command_of(number: int, *, with_optional: bool) -> BaseCommand:
    """A command of that type."""
    command = BaseCommand(type=number)  # type: ignore[arg-type]
    fill(part_of(command), with_optional=with_optional)
    return command


def client_frames() -> Iterator[bytes]:
    """SEND, and each command with a handler: as short as allowed, and with all its fields."""
    yield send_frame(PRODUCER_ID, 1, b"body" * 20)
    for number in HANDLERS:
        yield encode(command_of(number, with_optional=False))
        yield encode(command_of(number, with_optional=True))


def opening_frames() -> bytes:
    """What gives a connection the producer and the consumer that the other frames name."""
    lookup = command_of(BaseCommand.LOOKUP, with_optional=False)
    producer = command_of(BaseCommand.PRODUCER, with_optional=False)
    subscribe = command_of(BaseCommand.SUBSCRIBE, with_optional=False)
    subscribe.subscribe.subType = subscribe.subscribe.Shared
    return b"".join(encode(each) for each in (lookup, producer, subscribe))
