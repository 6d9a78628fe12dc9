"""`read_plain_ack`: reads an ACK of many entries of one ledger without protobuf (pure).

A client acknowledges in groups, and writes a hundred ids that differ in their entry ids alone. With
protobuf each of them becomes an object, with numbers to ask it for; that takes longer than what the
cursor does with them all. So a command that is written like this is read from its bytes:

    type | tag, size | consumer id | Individual | id | id | ... | request id, perhaps

    id   tag | size | ledger id | entry id

What always holds: a command that is read here has these fields and no others, and parsing it gives
the same values. Anything else is left to `read_command`: ids of several ledgers, of parts of
batches, or whose entry ids are not equally long, and a request id that is as long as an id.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pulsar_py.common.varint import varint, varint_at
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck, MessageIdData

ACK_START: Final = bytes((0x08, BaseCommand.ACK, BaseCommand.ACK << 3 | 2))
"""How an ACK begins as every client writes it: its type, then the tag of its message."""

LEAST_PLAIN_ACK_BYTES: Final = 60
"""Shorter ones are parsed: most have one id, and many of those would be looked at in vain."""

_MORE: Final = 0x80
_LOW_BITS: Final = 0x7F
"""Of each byte of a number: seven bits of it, the lowest first."""
_MAX_NUMBER_BYTES: Final = 9  # 63 bits: numbers above are negative in Java
_MAX_ENTRY_ID_BYTES: Final = 4  # 28 bits
_CONSUMER_ID_TAG: Final = CommandAck.CONSUMER_ID_FIELD_NUMBER << 3
_REQUEST_ID_TAG: Final = CommandAck.REQUEST_ID_FIELD_NUMBER << 3
_INDIVIDUAL: Final = bytes((CommandAck.ACK_TYPE_FIELD_NUMBER << 3, CommandAck.Individual))
_IDS_START: Final = _INDIVIDUAL + bytes((CommandAck.MESSAGE_ID_FIELD_NUMBER << 3 | 2,))
_LEDGER_ID_TAG: Final = MessageIdData.LEDGERID_FIELD_NUMBER << 3
_ENTRY_ID_TAG: Final = MessageIdData.ENTRYID_FIELD_NUMBER << 3
_LINE: Final = bytes(range(0x100))
_WITH_MORE: Final = _LINE[_MORE:]
_WITHOUT_MORE: Final = 2 * _LINE[:_MORE]
"""Leaves the low bits of each byte."""


class PlainAck(NamedTuple):
    """An individual ACK, of no transaction, of whole entries of one ledger."""

    consumer_id: int
    ledger_id: int
    entry_ids: range | list[int]
    """In the command's order; a range if each is one above the one before."""
    request_id: int | None


def read_plain_ack(body: bytes) -> PlainAck | None:
    """What an ACK says, whose bytes begin with `ACK_START`; None if it has to be parsed."""
    # Hot path: benchmarks/micro_acks.
    size = len(body)
    length, place = _number(body, len(ACK_START))
    if (
        size < LEAST_PLAIN_ACK_BYTES  # and so at least as long as all before the second id
        or length != size - place
        or body[place] != _CONSUMER_ID_TAG
    ):
        return None
    consumer_id, place = _number(body, place + 1)
    if consumer_id < 0 or not body.startswith(_IDS_START, place):
        return None
    start = place + len(_INDIVIDUAL)
    first = _first_id(body, start)
    if first is None:
        return None
    step = body[start + 1] + 2
    count = (size - start) // step
    end = start + count * step
    if not body.startswith(first.head, end - step):  # another ledger's, or of another length
        return None
    request_id: int | None = None
    if end < size:
        request_id, place = _number(body, end + 1)
        if request_id < 0 or place != size or body[end] != _REQUEST_ID_TAG:
            return None
    entry_ids = _entry_ids(body[start:end], first.head, first.entry_id, count)
    return (
        None if entry_ids is None else PlainAck(consumer_id, first.ledger_id, entry_ids, request_id)
    )


class _FirstId(NamedTuple):
    """The first message id of a command."""

    head: bytes
    """All of it before its entry id, which comes last."""
    ledger_id: int
    entry_id: int


def _first_id(body: bytes, start: int) -> _FirstId | None:
    """The message id at `start`; None if it has anything but a ledger id and an entry id."""
    if body[start + 2] != _LEDGER_ID_TAG:
        return None
    ledger_id, place = _number(body, start + 3)
    if ledger_id < 0 or body[place] != _ENTRY_ID_TAG:
        return None
    head = body[start : place + 1]
    entry_id, end = _number(body, place + 1)
    if end != start + 2 + body[start + 1] or end - place - 1 > _MAX_ENTRY_ID_BYTES:
        return None
    return _FirstId(head, ledger_id, entry_id)


def _number(data: bytes, place: int) -> tuple[int, int]:
    """The number at `place`, and where it ends; a negative one where it has more than 63 bits."""
    return varint_at(data, place, place + _MAX_NUMBER_BYTES)


def _entry_ids(ids: bytes, head: bytes, first: int, count: int) -> range | list[int] | None:
    """The entry ids of so many message ids; None if these differ in anything else.

    Each begins with `head`, and `first` is the entry id of the first one.
    """
    if ids == _neighbours(head, first, count):
        return range(first, first + count)
    step = len(ids) // count
    alike = bytearray(ids[:step] * count)
    columns: list[bytes] = []
    for at in range(len(head), step):
        column = ids[at::step]
        columns.append(column)
        alike[at::step] = column
    *others, last = columns
    if alike != ids or not last.isascii() or any(map(_has_last_byte, others)):
        return None
    return _joined(columns, count)


def _has_last_byte(column: bytes) -> bool:
    """Whether any of these bytes is the last one of a number."""
    return bool(column.translate(None, _WITH_MORE))


def _joined(columns: list[bytes], count: int) -> list[int]:
    """The numbers whose bytes stand in columns, the one with the lowest bits first."""
    same, numbers = 0, [0] * count
    is_same = True  # high bits are the same in all, most often
    for column in reversed(columns):
        bits = column.translate(_WITHOUT_MORE)
        if not is_same:
            numbers = [number << 7 | low for number, low in zip(numbers, bits, strict=True)]
        elif bits.count(bits[0]) == count:
            same = same << 7 | bits[0]
        else:
            same <<= 7
            numbers = [same | low for low in bits]
            is_same = False
    return [same] * count if is_same else numbers


def _neighbours(head: bytes, entry_id: int, count: int) -> bytes:
    """The bytes of so many message ids, each with the next entry id."""
    rows: list[bytearray] = []
    at = len(head)
    while count > 0:
        # Up to the next multiple of 128 they differ in one byte.
        first = head + varint(entry_id)
        low = first[at]
        row = min(_MORE - (low & _LOW_BITS), count)
        same = bytearray(first * row)
        same[at :: len(first)] = _LINE[low : low + row]
        rows.append(same)
        entry_id += row
        count -= row
    return b"".join(rows)
