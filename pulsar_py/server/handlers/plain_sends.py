"""SENDs as every client writes them, passed from a read to their producers (pure).

    a read's frames --> cut together, all alike but for their ids --> serve_alike: one is parsed
                    --> one by one                                --> serve_sends: one run for each
                                                                      producer, one of 128 parsed
    any other SEND  --> `handle_send`

These are most of what a busy broker reads, so a SEND costs no call of its own here. Those that have
nothing but ids differ in some bits of their sequence id, which are read without protobuf.

Source: ServerCnx.handleSend in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import UNREADABLE
from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.handlers.handle_send import handle_odd_send
from pulsar_py.wire.command_codec import sequence_id_place
from pulsar_py.wire.framing import AlikeFrames

if TYPE_CHECKING:
    from pulsar_py.server.handlers.command_connection import CommandConnection
    from pulsar_py.server.publishing.producer import Producer, Send
    from pulsar_py.wire.framing import Frame

SEND_START: Final = bytes((0x08, BaseCommand.SEND, BaseCommand.SEND << 3 | 2))
"""How a SEND begins as every client writes it: its type, then the tag of its message."""

_LOW_BITS: Final = 0x7F
"""Of each byte of a number as protobuf writes it: seven bits of the number, the lowest first."""
_WITH_MORE: Final = bytes(range(0x80, 0x100))
"""The bytes that are not a number's last one."""


def serve_alike(
    producers: Mapping[int, Producer], sends: AlikeFrames, command: BaseCommand
) -> bool:
    """Pass SENDs that have nothing but ids to their producer; returns whether they are such.

    `command` is what the first one is read with, which is enough for all.
    """
    # Hot path: publish-1k.
    first = sends.command
    if not first.startswith(SEND_START):
        return False
    try:
        command.ParseFromString(first)
    except UNREADABLE:
        return False
    send = command.send
    low_at = sequence_id_place(first)
    producer = producers.get(send.producer_id)
    if not low_at or producer is None:
        return False
    sequence_ids = alike_sequence_ids(sends, low_at, send.sequence_id)
    if sequence_ids is None:
        return False
    producer.publish_plain(sequence_ids, sends.rests)
    return True


def serve_sends(  # noqa: C901 - one call a read
    cnx: CommandConnection, frames: list[Frame], start: int, command: BaseCommand
) -> int:
    """Pass the SENDs from `start` on to their producers; returns where something else begins.

    Those of one producer that lie together go down as a run; `command` is what they are read
    with.
    """
    # Hot path: publish-1k. SENDs take no call of their own; of those that have nothing but ids,
    # and whose sequence ids are near to one another, one is parsed.
    parse = command.ParseFromString
    producer: Producer | None = None
    run: list[Send] = []
    place, end = start, len(frames)
    body, rest = frames[start]
    while rest is not None:
        place += 1
        try:
            parse(body)
        except UNREADABLE as error:
            if producer is not None:
                producer.publish_run(run)
            cnx.refuse(f"SEND: {error}")
            return len(frames)
        send = command.send  # it is there: the bytes began with its tag
        its_producer = cnx.producers.get(send.producer_id)
        sequence_id = send.sequence_id
        if (
            its_producer is None
            or send.HasField("txnid_least_bits")
            or send.HasField("message_id")
            # 0 may mean that the field, which is required, was not sent.
            or (not sequence_id and not send.HasField("sequence_id"))
        ):
            if producer is not None:
                producer.publish_run(run)
            handle_odd_send(cnx, send)
            return place
        if its_producer is not producer:
            if producer is not None:
                producer.publish_run(run)
                run = []
            producer = its_producer
        if low_at := sequence_id_place(body):
            alike = alike_sends(frames, place - 1, low_at, sequence_id)
            run += alike
            place += len(alike) - 1
        else:
            highest, count = send.highest_sequence_id or None, send.num_messages
            run.append((sequence_id, highest, count, send.is_chunk, send.marker, rest))
        if place == end:
            break
        body, rest = frames[place]
        if not body.startswith(SEND_START) or len(body) > MAX_UNITS:
            break
    if producer is not None:
        producer.publish_run(run)
    return place


def alike_sends(frames: Sequence[Frame], start: int, low_at: int, sequence_id: int) -> list[Send]:
    """The SENDs from `start` on that differ from the first one in bits of the sequence id alone.

    There may be more than those returned. The first one has nothing but ids: its sequence id, whose
    lowest bits are in the byte at `low_at`.
    """
    # Hot path: publish-1k, once for 128 SENDs; a SEND that is parsed costs 0.6 us more.
    first = frames[start].command
    length, before, after = len(first), first[:low_at], first[low_at + 1 :]
    first_low, upper = first[low_at], sequence_id & ~_LOW_BITS
    sends: list[Send] = []
    for command, rest in frames[start : start + _LOW_BITS + 1]:
        if (
            len(command) != length
            or rest is None
            or not command.startswith(before)
            or not command.endswith(after)
            # As many bytes have to follow.
            or (low := command[low_at]) ^ first_low > _LOW_BITS
        ):
            break
        sends.append((upper | low & _LOW_BITS, None, 1, False, False, rest))
    return sends


def alike_sequence_ids(sends: AlikeFrames, low_at: int, sequence_id: int) -> list[int] | None:
    """The sequence ids of SENDs that differ in nothing else; None if they do, or in many bits.

    The first one has nothing but ids: its sequence id, whose lowest bits are in the byte at
    `low_at`.
    """
    # Hot path: publish-1k, once a read.
    varying = sends.varying
    last = len(sends.command) - 1
    if not varying:
        return [sequence_id] * len(sends.rests)
    low = varying.get(low_at)
    if low is None or not _may_be(low, is_last=low_at == last):
        return None
    upper = sequence_id & ~_LOW_BITS
    if len(varying) == 1:
        return [upper | byte & _LOW_BITS for byte in low]
    next_at = low_at + 1
    high = varying.get(next_at)
    if len(varying) > 2 or high is None or not _may_be(high, is_last=next_at == last):  # noqa: PLR2004 - both
        return None
    upper &= ~(_LOW_BITS << 7)
    return [
        upper | (more & _LOW_BITS) << 7 | byte & _LOW_BITS
        for byte, more in zip(low, high, strict=True)
    ]


def _may_be(column: bytes, *, is_last: bool) -> bool:
    """Whether all of these bytes of numbers are the last one, or all are not."""
    return column.isascii() if is_last else not column.translate(None, _WITH_MORE)
