"""Measures and splits large commands without parsing them (pure).

Parsing is one call that can't be interrupted, and may take a second for the largest command that
fits a frame, with 900,000 message ids or as many empty texts. These functions walk over the encoded
fields step by step, so that the caller may yield in between:

    split_command   the type and the bytes of the sub-message, from the bytes of a BaseCommand
    count_fields    how many fields a message holds, those of messages in it included
    cut_list        a message with a long list, as the rest of it and stretches of the list

A *field* is one number, text or message as it stands on the wire; a packed list is as many fields
as it has numbers. That is what parsing, checking and serving a command costs time for.

From which size a command is large, and what the broker does with it then, is in
`server/handlers/large_commands.py`.

Source: the encoding of Protocol Buffers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from msgspec import Struct, field

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.varint import varint, varint_at
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand

_VARINT, _FIXED_64, _BYTES, _START_GROUP, _END_GROUP, _FIXED_32 = range(6)
_MORE: Final = 0x80
_MAX_VARINT_BYTES: Final = 10
_MAX_TOP_FIELDS: Final = 16  # of a BaseCommand; every client writes two
_MAX_DEPTH: Final = 64
_NOT_LAST_BYTES: Final = bytes(range(_MORE, 256))
_PACKED_SIZES: Final = {
    FieldDescriptor.TYPE_FIXED32: 4, FieldDescriptor.TYPE_SFIXED32: 4,
    FieldDescriptor.TYPE_FLOAT: 4, FieldDescriptor.TYPE_FIXED64: 8,
    FieldDescriptor.TYPE_SFIXED64: 8, FieldDescriptor.TYPE_DOUBLE: 8,
}  # fmt: skip
_NOT_PACKED: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


class WireField(NamedTuple):
    """The place of one encoded field: `start` to `end` with its tag, its value from `value` on."""

    number: int
    wire_type: int
    start: int
    value: int
    end: int


def _varint_at(data: bytes, place: int, end: int) -> tuple[int, int]:
    """The varint at `place`, and the offset after it."""
    number, after = varint_at(data, place, min(place + _MAX_VARINT_BYTES, end))
    if number < 0:
        raise RemoteProtocolError(
            f"command of {len(data)} bytes: expected a varint at byte {place}, of at most 10 bytes"
        )
    return number, after


def wire_fields(data: bytes, start: int, end: int) -> Iterator[WireField]:
    """The fields between two places of `data`, one by one.

    Raises:
        RemoteProtocolError: They can't be read.
    """
    place = start
    while place < end:
        first = place
        tag = data[place]
        if tag < _MORE:
            place += 1
        else:
            tag, place = _varint_at(data, place, end)
        kind = tag & 7
        value = place
        if kind == _BYTES:
            if place < end and data[place] < _MORE:
                value = place + 1
                place = value + data[place]
            else:
                length, value = _varint_at(data, place, end)
                place = value + length
        elif kind == _VARINT:
            _, place = _varint_at(data, place, end)
        elif kind == _FIXED_64:
            place += 8
        elif kind == _FIXED_32:
            place += 4
        elif kind not in (_START_GROUP, _END_GROUP):
            raise RemoteProtocolError(f"command of {len(data)} bytes: unknown wire type {kind}")
        if place > end:
            raise RemoteProtocolError(
                f"command of {len(data)} bytes: a field ends at {place}, its message at {end}"
            )
        yield WireField(tag >> 3, kind, first, value, place)


def number_of(data: bytes, each: WireField) -> int:
    """The value of a field that is a number."""
    number, _ = _varint_at(data, each.value, each.end)
    return number


def command_bytes(kind: int, part: bytes) -> bytes:
    """A serialized BaseCommand of that type, with the serialized sub-message."""
    return b"\x08" + varint(kind) + varint(kind << 3 | _BYTES) + varint(len(part)) + part


def split_command(data: bytes) -> tuple[int, int, int]:
    """The type of a serialized BaseCommand, and where its sub-message begins and ends.

    Raises:
        RemoteProtocolError: It can't be read, or is not written as one type and one sub-message.
    """
    number = None
    parts: list[WireField] = []
    for count, each in enumerate(wire_fields(data, 0, len(data))):
        if count == _MAX_TOP_FIELDS:
            raise RemoteProtocolError(f"command of {len(data)} bytes has too many fields")
        if each.number == BaseCommand.TYPE_FIELD_NUMBER and each.wire_type == _VARINT:
            number, _ = _varint_at(data, each.value, each.end)
        else:
            parts.append(each)
    if number is None or len(parts) != 1 or parts[0].number != number:
        raise RemoteProtocolError(
            f"command of {len(data)} bytes: expected a type and one message of that type"
        )
    if parts[0].wire_type != _BYTES or number not in BaseCommand.DESCRIPTOR.fields_by_number:
        raise RemoteProtocolError(f"command of {len(data)} bytes is of an unknown type")
    return number, parts[0].value, parts[0].end


def count_fields(descriptor: Descriptor, data: bytes, start: int, end: int, limit: int) -> int:
    """The number of fields in a message and in all messages below it.

    Counting stops once there are more than `limit`; the result is then above it, not exact.

    Raises:
        RemoteProtocolError: They can't be read, or are nested too deeply.
    """
    count = 0
    waiting = [(descriptor, start, end, 0)]
    while waiting and count <= limit:
        descriptor, start, end, depth = waiting.pop()
        for each in wire_fields(data, start, end):
            count += 1
            if count > limit:
                break
            if each.wire_type != _BYTES:
                continue
            known = descriptor.fields_by_number.get(each.number)
            if known is None or known.type in _NOT_PACKED:
                continue
            if known.message_type is None:
                count += _packed_count(known, data, each)
            elif depth == _MAX_DEPTH:
                raise RemoteProtocolError(
                    f"command of {len(data)} bytes: messages nested more than {depth} deep"
                )
            else:
                waiting.append((known.message_type, each.value, each.end, depth + 1))
    return count


def _packed_count(known: FieldDescriptor, data: bytes, packed: WireField) -> int:
    size = _PACKED_SIZES.get(known.type)
    if size is not None:
        return (packed.end - packed.value) // size
    return len(data[packed.value : packed.end].translate(None, _NOT_LAST_BYTES))


class CutList(Struct):
    """A message with a long list, as stretches of the list and everything else.

    Invariant: each stretch is within the given limits of elements and bytes, or is one element.
    """

    rest: bytes = b""
    """All other fields, as they were written."""
    stretches: list[tuple[int, int]] = field(default_factory=list)
    """Where neighbouring elements of the list begin and end."""


def cut_list(
    data: bytes, start: int, end: int, number: int, *, max_elements: int, max_bytes: int
) -> Generator[None, None, CutList]:
    """Cut the list that is field `number` of a message; yields after each stretch.

    Raises:
        RemoteProtocolError: It can't be read.
    """
    cut = CutList()
    others: list[bytes] = []
    count, first, last = 0, start, start
    for steps, each in enumerate(wire_fields(data, start, end)):
        if each.wire_type in (_START_GROUP, _END_GROUP):
            raise RemoteProtocolError(
                f"command of {len(data)} bytes has a group, which no command of Pulsar has"
            )
        is_element = each.number == number and each.wire_type == _BYTES
        is_full = count == max_elements or each.end - first > max_bytes
        if count and (is_full or not is_element):
            cut.stretches.append((first, last))
            count = 0
        if is_element:
            first = first if count else each.start
            last = each.end
            count += 1
        else:
            others.append(data[each.start : each.end])
        if steps % max_elements == max_elements - 1:
            yield
    if count:
        cut.stretches.append((first, last))
    cut.rest = b"".join(others)
    return cut
