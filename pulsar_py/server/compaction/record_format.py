"""The entries of a compacted ledger: a message with the position it had in the topic (pure).

    size       i32  of the id
    id         MessageIdData: ledger, entry, partition (-1 without partitions)
    size       i32  of the message
    message    as the broker sends it to consumers: checksum, metadata, payload; before them broker
               entry metadata, where consumers get that

All big endian, in ascending order of positions. Something shorter than its sizes say is foreign or
damaged.

Source: RawMessageImpl in Pulsar's client; AbstractTwoPhaseCompactor in its broker.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.message_id import position_of, to_unsigned
from pulsar_py.common.position import Position
from pulsar_py.proto.PulsarApi_pb2 import MessageIdData

_SIZE: Final = Struct(">i")


class CompactedRecord(NamedTuple):
    """One entry of a compacted ledger."""

    position: Position
    """The message's position in the topic."""
    message: EntryBytes


def encode_record(position: Position, partition_index: int, message: EntryBytes) -> bytes:
    """One entry; `partition_index` is -1 in a topic without partitions."""
    own = _message_id(position)
    own.partition = partition_index
    data = own.SerializeToString()
    return b"".join((_SIZE.pack(len(data)), data, _SIZE.pack(len(message)), message))


def encode_compacted_to(position: Position, partition_index: int) -> bytes:
    """The label `pulsar/compactedTo`; it has a partition only where the topic is one."""
    own = _message_id(position)
    own.batch_size = 0
    if partition_index >= 0:
        own.partition = partition_index
    return own.SerializeToString()


def _message_id(position: Position) -> MessageIdData:
    return MessageIdData(
        ledgerId=to_unsigned(position.ledger_id),
        entryId=to_unsigned(position.entry_id),
    )


def decode_record(data: EntryBytes) -> CompactedRecord:
    """The message and position of one entry.

    Raises:
        CorruptDataError: It is no such record.
    """
    own, end = split_record(data)
    start, end = _part(data, end)
    return CompactedRecord(position_of(own), data[start:end])


def split_record(data: EntryBytes) -> tuple[MessageIdData, int]:
    """The id of one entry, and where the part behind it begins.

    Raises:
        CorruptDataError: It is no such record.
    """
    start, end = _part(data, 0)
    try:
        own = MessageIdData.FromString(bytes(data[start:end]))
    except DecodeError as error:
        raise CorruptDataError(f"entry of a compacted ledger: no message id: {error}") from error
    if not own.IsInitialized():  # upb does not refuse it
        raise CorruptDataError("entry of a compacted ledger: its id lacks the ledger or the entry")
    return own, end


def with_id(own: MessageIdData, data: EntryBytes, end: int) -> bytes:
    """An entry with another id; the former one, and its size, go up to `end`."""
    stored = own.SerializeToString()
    return b"".join((_SIZE.pack(len(stored)), stored, data[end:]))


def _part(data: EntryBytes, at: int) -> tuple[int, int]:
    """Start and end of the part whose size stands at `at`."""
    start = at + _SIZE.size
    size = _SIZE.unpack_from(data, at)[0] if start <= len(data) else -1
    if not 0 <= size <= len(data) - start:
        raise CorruptDataError(
            f"entry of a compacted ledger: a part of {size} bytes at {at} does not fit "
            f"{len(data)} bytes"
        )
    return start, start + size
