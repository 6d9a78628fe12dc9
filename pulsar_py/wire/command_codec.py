"""Parses and encodes commands, with fast encoders for SEND_RECEIPT and MESSAGE (pure).

`read_command` returns the parsed BaseCommand and guarantees that the sub-message its type names is
there and complete, and that its texts are UTF-8. `encode` frames any `Command…` message, of
either side; `commands` spells out a broker's answers with it. Commands that are sent once an entry
have encoders that reuse their message: `SendReceiptEncoder` and `MessageEncoder`. (Parsing can't
reuse one: upb frees what it parsed only together with the message.)

A frame is complete `bytes`, ready for the socket; MESSAGE is followed by the stored entry as it is.

Source: Commands in Pulsar's common module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from google.protobuf.message import Message

from pulsar_py.common.buffer import Buffer, EntryBytes
from pulsar_py.common.errors import UNREADABLE, RemoteProtocolError
from pulsar_py.common.message_id import to_unsigned
from pulsar_py.common.varint import varint
from pulsar_py.proto.pool import message_class
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandAckResponse,
    CommandMessage,
    CommandSendReceipt,
)
from pulsar_py.wire.framing import SIZES
from pulsar_py.wire.payload import MAGIC_BROKER_ENTRY_METADATA, strip_broker_entry_metadata
from pulsar_py.wire.text_fields import has_broken_text, has_texts

_pack_sizes = SIZES.pack

# type -> name of the field that holds the sub-message; the field's number equals the type.
FIELD_NAMES: Final[dict[int, str]] = {
    field.number: field.name
    for field in BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}


# class of a Command... message -> what precedes its length in a BaseCommand: type, field tag.
_PREFIXES: Final[dict[type[Message], bytes]] = {
    message_class(field.message_type): b"\x08" + varint(number) + varint(number << 3 | 2)
    for field in BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None and (number := field.number)
}
_VARINTS: Final = tuple(varint(size) for size in range(1024))


# An ACK's only texts are its properties, which it rarely has: without this byte it has none.
_ACK: Final = BaseCommand.ACK
# These (MESSAGE, SEND and SEND_RECEIPT are among them) have no texts that could not be UTF-8.
_WITHOUT_TEXTS: Final = frozenset(
    field.number
    for field in BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None and not has_texts(field.message_type)
)
_ACK_PROPERTIES_TAG: Final = bytes((CommandAck.PROPERTIES_FIELD_NUMBER << 3 | 2,))


def read_command(data: bytes) -> BaseCommand:
    """Parse the command of a frame.

    Raises:
        RemoteProtocolError: It can't be parsed, its type is unknown, the sub-message of its type or
            a required field is missing, or a text of it is not UTF-8.
    """
    # Hot path: read_command in benchmarks/micro.
    try:
        command = BaseCommand.FromString(data)
    except UNREADABLE as error:
        raise RemoteProtocolError(f"command of {len(data)} bytes: {error}") from None
    number = command.type
    if command.IsInitialized() and command.HasField(FIELD_NAMES[number]):  # type: ignore[arg-type] # literals
        if (
            not data.isascii()
            and number not in _WITHOUT_TEXTS
            and (number != _ACK or _ACK_PROPERTIES_TAG in data)
            and has_broken_text(getattr(command, FIELD_NAMES[number]))
        ):
            name = BaseCommand.Type.Name(number)
            raise RemoteProtocolError(f"{name} has a text that is not UTF-8")
        return command
    if not command.HasField("type"):
        raise RemoteProtocolError("command of an unknown type, or without one")
    name = BaseCommand.Type.Name(command.type)
    raise RemoteProtocolError(f"{name} lacks its message or a required field of it")


def serialize(message: Message) -> bytes:
    """The serialized BaseCommand that has `message`, any `Command…`, as its sub-message."""
    data = message.SerializeToString()
    size = len(data)
    length = _VARINTS[size] if size < len(_VARINTS) else varint(size)
    return _PREFIXES[message.__class__] + length + data


def encode(message: Message) -> bytes:
    """The frame of any `Command…` message that has no payload."""
    command = serialize(message)
    size = len(command)
    return SIZES.pack(size + 4, size) + command


def _receipt_head(size: int) -> bytes:
    """The bytes before a serialized CommandSendReceipt of that size in its frame."""
    command_size = size + 4
    return SIZES.pack(command_size + 4, command_size) + _RECEIPT_PREFIX + varint(size)


def _message_head(size: int) -> bytes:
    """The bytes before a serialized CommandMessage of that size in its BaseCommand."""
    return _MESSAGE_PREFIX + varint(size)


_RECEIPT_PREFIX: Final = _PREFIXES[CommandSendReceipt]
_MESSAGE_PREFIX: Final = _PREFIXES[CommandMessage]
# By size; a receipt has six numbers of at most ten bytes each.
_RECEIPT_HEADS: Final = tuple(_receipt_head(size) for size in range(80))
_MESSAGE_HEADS: Final = tuple(_message_head(size) for size in range(128))


# Tags of the first two fields of a message, if they are numbers, and the most that the last byte of
# a number can be.
_FIRST_NUMBER: Final = 1 << 3
_SECOND_NUMBER: Final = 2 << 3
_MAX_LAST_BYTE: Final = 0x7F


_ACK_RESPONSE_PREFIX: Final = _PREFIXES[CommandAckResponse]


def _ack_response_head(size: int) -> bytes:
    """The bytes before a serialized CommandAckResponse of that size in its frame."""
    command_size = size + len(_ACK_RESPONSE_PREFIX) + 1
    return SIZES.pack(command_size + 4, command_size) + _ACK_RESPONSE_PREFIX + varint(size)


# By size; two tags of a byte, and two numbers of at most ten.
_ACK_RESPONSE_HEADS: Final = tuple(_ack_response_head(size) for size in range(23))


def encode_ack_receipts(consumer_id: int, request_ids: Iterable[int]) -> bytes:
    """The frames of an ACK_RESPONSE each, one behind the other, without errors or transactions."""
    # Hot path: acknowledge with a receipt; a tenth of the time of messages made for them.
    start = b"\x08" + varint(consumer_id) + b"\x30"
    heads = [head + start for head in _ACK_RESPONSE_HEADS[len(start) :]]
    frames: list[bytes] = []
    for request_id in request_ids:
        encoded = varint(request_id)
        frames += (heads[len(encoded)], encoded)
    return b"".join(frames)


def sequence_id_place(send: bytes) -> int:
    """Where the lowest seven bits of the sequence id are in a SEND that has no other fields.

    0 if it has others than producer id and sequence id, as those of batches have. `send` is a
    serialized BaseCommand that was parsed, so that its numbers are whole.
    """
    # type, tag, and in one byte the length; then producer id and sequence id, each behind its tag
    size = len(send)
    if send[3] != size - 4 or send[4] != _FIRST_NUMBER:
        return 0
    at = 5
    while send[at] > _MAX_LAST_BYTE:
        at += 1
    at += 1
    if at == size or send[at] != _SECOND_NUMBER:
        return 0
    at += 1
    last = at
    while send[last] > _MAX_LAST_BYTE:
        last += 1
    return at if last == size - 1 else 0


class SendReceiptEncoder:
    """Builds SEND_RECEIPTs; one for each event loop is enough."""

    __slots__ = ("_message", "_message_id")

    def __init__(self) -> None:
        self._message = CommandSendReceipt()
        # A part of `_message`: setting its fields sets them there.
        self._message_id = self._message.message_id

    def encode(
        self,
        producer_id: int,
        sequence_id: int,
        ledger_id: int,
        entry_id: int,
        highest_sequence_id: int | None = None,
    ) -> bytes:
        """The frame for one stored entry; ledger and entry -1 say that it was a duplicate.

        `highest_sequence_id` repeats that of the SEND, and is left out if that had none.
        """
        # Hot path: SEND_RECEIPT in benchmarks/micro.
        message = self._message
        message.producer_id = producer_id
        message.sequence_id = sequence_id
        if ledger_id < 0:
            ledger_id, entry_id = to_unsigned(ledger_id), to_unsigned(entry_id)
        message_id = self._message_id
        message_id.ledgerId = ledger_id
        message_id.entryId = entry_id
        if highest_sequence_id is not None:
            message.highest_sequence_id = highest_sequence_id
            data = message.SerializeToString()
            message.ClearField("highest_sequence_id")
        else:
            data = message.SerializeToString()
        return _RECEIPT_HEADS[len(data)] + data

    def encode_run(
        self,
        producer_id: int,
        ledger_id: int,
        first_entry_id: int,
        sequence_ids: Sequence[int],
        highest_ids: Sequence[int | None],
    ) -> Buffer:
        """The frames for entries stored one behind the other: `encode` for each of them.

        `sequence_ids` and `highest_ids` have for each entry what its SEND had.
        """
        # Hot path: publish-1k, once a group and producer. Receipts of 128 SENDs of a row differ in
        # two bytes, the lowest of sequence and entry id.
        if highest_ids.count(None) < len(highest_ids):
            entry_ids = range(first_entry_id, first_entry_id + len(sequence_ids))
            receipts = zip(sequence_ids, entry_ids, highest_ids, strict=True)
            return b"".join(
                self.encode(producer_id, sequence_id, ledger_id, entry_id, highest)
                for sequence_id, entry_id, highest in receipts
            )
        frames: list[Buffer] = []
        place, count = 0, len(sequence_ids)
        while place < count:
            sequence_id, entry_id = sequence_ids[place], first_entry_id + place
            frame = self.encode(producer_id, sequence_id, ledger_id, entry_id)
            most = min(0x80 - (sequence_id & 0x7F), 0x80 - (entry_id & 0x7F), count - place)
            found = sequence_ids[place : place + most]
            row = most if found == list(range(sequence_id, sequence_id + most)) else 1
            while row < most and found[row] == sequence_id + row:
                row += 1
            frames.append(_receipts_in_a_row(frame, row, producer_id, sequence_id, entry_id))
            place += row
        return b"".join(frames) if len(frames) > 1 else frames[0]


def _receipts_in_a_row(
    first: bytes, count: int, producer_id: int, sequence_id: int, entry_id: int
) -> Buffer:
    """`first` and the receipts behind it; both ids ascend, and only in their lowest seven bits."""
    if count == 1:
        return first
    frames, step = bytearray(first * count), len(first)
    # Behind the head: a tag, the producer's id, a tag, the sequence id; the entry's id is last.
    for at, number in (
        (len(_RECEIPT_HEADS[0]) + 2 + len(varint(producer_id)), sequence_id),
        (step - len(varint(entry_id)), entry_id),
    ):
        low = _first_byte(number)
        assert first[at] == low, (producer_id, sequence_id, entry_id)
        frames[at::step] = _LINE[low : low + count]
    return frames


# The second byte of an entry tells a broker entry metadata block from a checksum block. Every entry
# that is delivered begins with one of the two.
_BROKER_BLOCK_MAGIC_END = MAGIC_BROKER_ENTRY_METADATA[1]
_LINE: Final = bytes(range(256))
_FIRST_BYTES: Final = tuple(bytes((value,)) for value in range(256))

JOIN_BELOW_BYTES: Final = 4096
"""Runs of entries smaller than this on average go out as one buffer: a copy of 1 KB costs 0.04 µs,
two buffers more for the socket about 0.3."""


class StoredEntry(Protocol):
    """The fields of an entry that MESSAGE needs."""

    ledger_id: int
    entry_id: int
    data: EntryBytes


def _buffers(parts: list[Buffer], entries_bytes_count: int) -> list[Buffer]:
    """The bytes for the socket: four parts an entry, small entries joined."""
    if 4 * entries_bytes_count <= JOIN_BELOW_BYTES * len(parts):
        return [b"".join(parts)]
    buffers: list[Buffer] = []
    for at in range(0, len(parts), 4):
        buffers += (b"".join(parts[at : at + 3]), parts[at + 3])
    return buffers


def _first_byte(entry_id: int) -> int:
    """The first byte of the id's varint; ids up to the next multiple of 128 share the others."""
    return entry_id & 0x7F | (0x80 if entry_id >> 7 else 0)


def _same_frames(
    before: bytes, after: bytes, entry_id: int, block: list[EntryBytes]
) -> list[Buffer]:
    """Frames of entries of one length: the same bytes around each, but for one of its entry id."""
    command_size, size = len(before) + 1 + len(after), len(block[0])
    sizes = _pack_sizes(command_size + 4 + size, command_size)
    first = _first_byte(entry_id)
    frames = bytearray().join((sizes, before, b"\0", after))
    at, step = len(sizes) + len(before), len(frames) + size
    frames = frames.join((b"", *block))
    frames[at::step] = _LINE[first : first + len(block)]
    return [frames]


def _different_frames(
    before: bytes, after: bytes, entry_id: int, block: list[EntryBytes]
) -> list[Buffer]:
    pack_sizes, command_size = _pack_sizes, len(before) + 1 + len(after)
    parts: list[Buffer] = []
    size, sizes = -1, b""
    first = _first_byte(entry_id)
    for first_byte, entry in zip(_FIRST_BYTES[first : first + len(block)], block, strict=True):
        if len(entry) != size:
            size = len(entry)
            sizes = pack_sizes(command_size + 4 + size, command_size) + before
        parts += (sizes, first_byte, after, entry)
    return _buffers(parts, sum(map(len, block)))


class MessageEncoder:
    """Builds what precedes an entry in MESSAGE; one for each consumer."""

    __slots__ = ("_message", "_message_id")

    def __init__(self, consumer_id: int, partition_index: int = -1) -> None:
        self._message = CommandMessage(consumer_id=consumer_id)
        # A part of `_message`: setting its fields sets them there.
        self._message_id = self._message.message_id
        if partition_index >= 0:
            self._message_id.partition = partition_index

    def encode(
        self,
        ledger_id: int,
        entry_id: int,
        payload_length: int,
        *,
        redelivery_count: int = 0,
        ack_set: Sequence[int] | None = None,
        consumer_epoch: int | None = None,
    ) -> bytes:
        """The beginning of the frame; `payload_length` bytes of an entry have to follow it.

        `ack_set` has the words of the batch indexes to deliver; None or empty means all.
        """
        # Hot path: MESSAGE in benchmarks/micro.
        message_id = self._message_id
        message_id.ledgerId = ledger_id
        message_id.entryId = entry_id
        if redelivery_count or ack_set or consumer_epoch is not None:
            data = self._serialize_rare(redelivery_count, ack_set, consumer_epoch)
        else:
            data = self._message.SerializeToString()
        size = len(data)
        head = _MESSAGE_HEADS[size] if size < len(_MESSAGE_HEADS) else _message_head(size)
        command_size = len(head) + size
        return _pack_sizes(command_size + 4 + payload_length, command_size) + head + data

    def encode_run(
        self, entries: Sequence[StoredEntry], *, strips_broker_entry_metadata: bool
    ) -> tuple[list[Buffer], int]:
        """MESSAGE frames without redelivery counts, ack sets and epochs, and the entries' bytes."""
        # Hot path: tailing in `make bench`. One call a run, not one an entry: of the frames in it
        # only entry ids and lengths differ.
        if len(entries) == 1:
            return self._encode_single(entries[0], strips_broker_entry_metadata)
        pack_sizes, first_bytes = _pack_sizes, _FIRST_BYTES
        parts: list[Buffer] = []
        bytes_count = 0
        ledger_id = block = size = -1
        command_size = continues = 0
        sizes = before = after = b""
        for entry in entries:
            payload = entry.data
            if strips_broker_entry_metadata and payload[1] == _BROKER_BLOCK_MAGIC_END:
                payload = strip_broker_entry_metadata(payload)
            entry_id = entry.entry_id
            if entry_id >> 7 != block or entry.ledger_id != ledger_id:
                ledger_id, block, size = entry.ledger_id, entry_id >> 7, -1
                continues = 0x80 if block else 0
                before, after = self._around_entry_id(ledger_id, entry_id)
                command_size = len(before) + 1 + len(after)
            if len(payload) != size:
                size = len(payload)
                sizes = pack_sizes(command_size + 4 + size, command_size) + before
            parts += (sizes, first_bytes[entry_id & 0x7F | continues], after, payload)
            bytes_count += size
        return _buffers(parts, bytes_count), bytes_count

    def _encode_single(
        self,
        entry: StoredEntry,
        strips_broker_entry_metadata: bool,  # noqa: FBT001 - hot path
    ) -> tuple[list[Buffer], int]:
        """A run of one entry, which needs no parts to share with others."""
        payload = entry.data
        if strips_broker_entry_metadata and payload[1] == _BROKER_BLOCK_MAGIC_END:
            payload = strip_broker_entry_metadata(payload)
        size = len(payload)
        head = self.encode(entry.ledger_id, entry.entry_id, size)
        if size <= JOIN_BELOW_BYTES:
            return [b"".join((head, payload))], size
        return [head, payload], size

    def encode_neighbours(
        self, ledger_id: int, first_entry_id: int, entries: Sequence[EntryBytes]
    ) -> tuple[list[Buffer], int]:
        """Encode one MESSAGE for each of `entries`, whose ids follow each other."""
        # Hot path: catch-up in `make bench`. Commands of 128 entries differ in one byte.
        entries = list(entries)
        is_same = bool(entries) and len(set(map(len, entries))) == 1
        frame = (
            _same_frames if is_same and len(entries[0]) < JOIN_BELOW_BYTES else _different_frames
        )
        buffers: list[Buffer] = []
        place = 0
        while place < len(entries):
            entry_id = first_entry_id + place
            block = entries[place : place + 0x80 - (entry_id & 0x7F)]
            before, after = self._around_entry_id(ledger_id, entry_id)
            buffers += frame(before, after, entry_id, block)
            place += len(block)
        bytes_count = len(entries[0]) * len(entries) if is_same else sum(map(len, entries))
        return buffers, bytes_count

    def _around_entry_id(self, ledger_id: int, entry_id: int) -> tuple[bytes, bytes]:
        """The command before and after the first byte of the entry id's varint.

        That byte holds the lowest 7 bits; entry ids that differ in them alone share both parts.
        """
        message_id = self._message_id
        message_id.ledgerId = ledger_id
        message_id.entryId = entry_id
        data = self._message.SerializeToString()
        data = _message_head(len(data)) + data
        at = len(data) - len(varint(entry_id))
        if message_id.HasField("partition"):
            at -= 1 + len(varint(message_id.partition))
        assert data[at] & 0x7F == entry_id & 0x7F
        return data[:at], data[at + 1 :]

    def _serialize_rare(
        self, redelivery_count: int, ack_set: Sequence[int] | None, consumer_epoch: int | None
    ) -> bytes:
        message = self._message
        if redelivery_count:
            message.redelivery_count = redelivery_count
        if ack_set:
            message.ack_set.extend(ack_set)
        if consumer_epoch is not None:
            message.consumer_epoch = consumer_epoch
        data = message.SerializeToString()
        message.ClearField("redelivery_count")
        message.ClearField("ack_set")
        message.ClearField("consumer_epoch")
        return data
