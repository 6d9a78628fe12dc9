"""SENDs beside the way that `ServerCnx` has for them: many that are alike, and odd ones.

`alike_sends` and `alike_sequence_ids` read neighbours without parsing each. The handlers serve
SENDs that `ServerCnx` can't pass directly to their producer:

    as clients write it, to a producer  --> the producer, from `ServerCnx.data_received`
    its fields in another order         --> the producer, from here
    with an unsupported field           --> SEND_ERROR
    to a producer the broker closed     --> dropped: CLOSE_PRODUCER is on its way
    to an unknown one, or incomplete    --> the connection is closed

Source: ServerCnx.handleSend in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import NotAllowedError, RemoteProtocolError
from pulsar_py.proto.PulsarApi_pb2 import CommandSend
from pulsar_py.wire import commands
from pulsar_py.wire.framing import AlikeFrames

if TYPE_CHECKING:
    from pulsar_py.server.connection.command_connection import CommandConnection
    from pulsar_py.server.publishing.producer import Send
    from pulsar_py.wire.framing import Frame

_LOW_BITS: Final = 0x7F
"""Of each byte of a number as protobuf writes it: seven bits of the number, the lowest first."""
_WITH_MORE: Final = bytes(range(0x80, 0x100))
"""The bytes that are not a number's last one."""


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


def handle_send(cnx: CommandConnection, send: CommandSend, rest: bytes | None) -> None:
    """Serve a SEND with its fields in another order than clients write, or without payload."""
    if rest is None:
        raise RemoteProtocolError("SEND without a payload")
    producer = cnx.producers.get(send.producer_id)
    is_plain = not send.HasField("txnid_least_bits") and not send.HasField("message_id")
    if producer is None or not is_plain:
        handle_odd_send(cnx, send)
        return
    producer.publish(
        send.sequence_id,
        send.highest_sequence_id or None,
        send.num_messages,
        send.is_chunk,
        send.marker,
        rest,
    )


def handle_odd_send(cnx: CommandConnection, send: CommandSend) -> None:
    """Serve a SEND to an unknown or closed producer, or with an unsupported field."""
    if not cnx.is_connected:
        return
    if not send.IsInitialized():
        cnx.refuse("SEND lacks a required field")
        return
    producer_id = send.producer_id
    producer = cnx.producers.get(producer_id)
    if producer is None:
        if producer_id not in cnx.closed_producers:
            cnx.refuse(f"SEND to producer {producer_id}, which does not exist")
        return
    what = "a transaction" if send.HasField("txnid_least_bits") else "a message id"
    text = f"SEND with {what} is not allowed on {producer.topic.name}"
    sequence_id = max(send.sequence_id, send.highest_sequence_id)
    cnx.send(commands.send_error(producer_id, sequence_id, NotAllowedError.code, text))
