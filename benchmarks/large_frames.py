"""Builds large frames of the binary protocol as bytes, and tells which commands may be large.

Building a message of so many parts takes seconds; these functions repeat or join encoded fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct

import crc32c
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.common.varint import varint
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe
from pulsar_py.wire.commands import FIELD_NAMES

SIZES = Struct(">II")
_BYTES_TYPE = 2  # of protobuf: a length, then as many bytes
SPARE_BYTES = 64  # for the lengths around what is filled
ITEM_BYTES = 24  # for tags, lengths and the key of an item
_LONG_TYPES = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
MINUS_ONE = varint((1 << 64) - 1)


@dataclass(frozen=True, slots=True)
class LargestCommand:
    """One row: a frame that a connection may send.

    It has consumer 1 of the topic, and producer 1 of another one with a consumer that has permits.
    """

    name: str
    frame: bytes
    answer: int | None
    """The type of its answer; None for commands that have none. ERROR is always one, too."""
    subscription_type: int = CommandSubscribe.Shared
    """Of the consumer that the connection has."""

    @property
    def kind(self) -> int:
        """The type of the command."""
        return self.frame[SIZES.size + 1]


def _is_variable(message: Descriptor, *, above: tuple[str, ...] = ()) -> bool:
    """Whether a message has a text, bytes or a list, itself or in a message that it holds."""
    for each in message.fields:
        if each.is_repeated or each.type in _LONG_TYPES:
            return True
        part = each.message_type
        if part is None or part.name in above:
            continue
        if _is_variable(part, above=(*above, message.name)):
            return True
    return False


VARIABLE_KINDS = frozenset(
    kind
    for kind, name in FIELD_NAMES.items()
    if (message := BaseCommand.DESCRIPTOR.fields_by_name[name].message_type) is not None
    and _is_variable(message)
)
"""Types of commands whose size is up to who sends them, those of a broker included."""


def field(number: int, data: bytes) -> bytes:
    """One field that has a length."""
    return varint(number << 3 | _BYTES_TYPE) + varint(len(data)) + data


def command_frame(kind: int, part: bytes) -> bytes:
    """A frame, of the type and the encoded message of its command."""
    command = b"\x08" + varint(kind) + field(kind, part)
    return SIZES.pack(4 + len(command), len(command)) + command


def filled(kind: int, head: Message, number: int, item: bytes, room: int) -> bytes:
    """The command with as many of one repeated field as go into a frame."""
    start = head.SerializePartialToString()
    repeated = field(number, item)
    return command_frame(kind, start + repeated * ((room - len(start)) // len(repeated)))


def different(
    kind: int, head: Message, number: int, make: Callable[[int], bytes], room: int
) -> bytes:
    """The same with items that all differ."""
    parts = [head.SerializePartialToString()]
    size, index = len(parts[0]), 0
    while True:
        part = field(number, make(index))
        size += len(part)
        if size > room:
            return command_frame(kind, b"".join(parts))
        parts.append(part)
        index += 1


def served(
    kind: int,
    head: Message,
    number: int,
    room: int,
    *,
    make: Callable[[int, int], bytes],
    parts: int,
) -> bytes:
    """As many items of so many fields as are served, each as long as there is room.

    `make` has the index and the bytes that the item may have.
    """
    start = head.SerializePartialToString()
    count = (MAX_UNITS - len(head.ListFields())) // (parts + 1)
    item_bytes = (room - len(start)) // count - ITEM_BYTES
    items = [field(number, make(index, item_bytes)) for index in range(count)]
    return command_frame(kind, start + b"".join(items))


def send_frame(send: bytes, metadata: bytes) -> bytes:
    """A SEND whose message is metadata alone."""
    command = b"\x08" + varint(BaseCommand.SEND) + field(BaseCommand.SEND, send)
    checked = len(metadata).to_bytes(4, "big") + metadata
    rest = b"\x0e\x01" + crc32c.crc32c(checked).to_bytes(4, "big") + checked
    return SIZES.pack(4 + len(command) + len(rest), len(command)) + command + rest


def with_field(start: bytes, number: int, data: bytes) -> bytes:
    """An encoded message with one field more."""
    return start + field(number, data)


def message_id(ledger_id: int, entry_id: int, words: bytes = b"") -> bytes:
    """A MessageIdData, with encoded words of an ack set."""
    start = b"\x08" + varint(ledger_id) + b"\x10" + varint(entry_id)
    return start + (field(5, words) if words else b"")


def long_pair(index: int, size: int) -> bytes:
    """A KeyValue whose value is about as long."""
    return field(1, b"%x" % index) + field(2, b"x" * size)


def pair(index: int) -> bytes:
    """A KeyValue without a value."""
    return field(1, b"%x" % index) + field(2, b"")


def number_pair(index: int) -> bytes:
    """A KeyLongValue."""
    return field(1, b"%x" % index) + b"\x10\x01"


def hash_range(index: int) -> bytes:
    """An IntRange that touches no other."""
    return b"\x08" + varint(2 * index) + b"\x10" + varint(2 * index)
