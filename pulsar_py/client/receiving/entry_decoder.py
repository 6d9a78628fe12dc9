"""Decodes an entry that a MESSAGE carried into messages (pure).

    bytes --parse--> ParsedEntry --open--> OpenedEntry --messages_of--> messages
           checksum            decrypt                split the batch,
           metadata            decompress             leave out what is not wanted

Input may lie in reused memory (`wire.frame_receiver`); no result refers to it.

The steps are apart because between the first two something may have to be waited for (a key, the
schema of a version), and because a chunk goes to the assembly after decryption. An entry that can't
be read becomes a `Problem`: the validation error that its acknowledgement reports to the broker,
and a text that names topic, entry and both values. Nothing is ever inflated beyond a limit.

Source: ConsumerImpl.messageReceived in Pulsar's Java client; `wire.payload` and `wire.batch`
for the layouts.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise, repeat
from struct import Struct
from typing import Final

from pulsar_py.client.messages.message import EntryKey, Message, ReceivedEntry
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import UNREADABLE, PayloadError
from pulsar_py.common.hashing import crc32c
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    CommandAck,
    CommandMessage,
    MessageMetadata,
    SingleMessageMetadata,
)
from pulsar_py.wire.batch import batch_indexes
from pulsar_py.wire.compression import decompress
from pulsar_py.wire.payload import (
    CHECKSUM_AND_SIZE,
    CHECKSUM_BLOCK_SIZE,
    CHECKSUM_MAGIC_NUMBER,
    ChecksumStatus,
    metadata_bounds,
    parse_broker_entry_metadata,
    verify_checksum,
)

__all__ = [
    "NOT_BATCHED",
    "ParsedEntry",
    "Problem",
    "check_batch_size",
    "inflate",
    "messages_of",
    "parse",
]

NOT_BATCHED: Final = -1
"""The batch index of a message that is not part of a batch."""

_SIZE: Final = Struct(">I")
_MIN_MESSAGE_BYTES: Final = 6
"""The least bytes of a message in a batch: the size of its metadata, and `payload_size`."""
_MAX_COMPACTED_BATCH: Final = 1_000_000
"""Most messages that a batch may have had before compaction: their bits make one integer."""
MAX_INFLATED_BYTES: Final = 1 << 30
"""Limit for the decompressed size of an entry. `maxMessageSize` is no such limit: it bounds the
compressed size, and ten times as much text may be valid."""
_START_SIZE: Final = CHECKSUM_AND_SIZE.size
_unpack_start = CHECKSUM_AND_SIZE.unpack_from
_WRONG: Final = ChecksumStatus.WRONG

_CHEAP_TO_COPY: Final = 4096
"""A copy of fewer bytes costs less than a memoryview."""
_LIKENESS_MISSES: Final = 4
"""After so many messages that differ from the one before, comparing the rest is not worth it."""
_MAX_HEAD: Final = 16
"""Bytes at the beginning of a message that hold all of `_likeness`."""
_PAYLOAD_SIZE_TAG: Final = SingleMessageMetadata.PAYLOAD_SIZE_FIELD_NUMBER << 3
_COMPACTED_OUT_TAG: Final = SingleMessageMetadata.COMPACTED_OUT_FIELD_NUMBER << 3

_parse_metadata = MessageMetadata.FromString
_parse_single = SingleMessageMetadata.FromString


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why an entry can't be used."""

    validation_error: CommandAck.ValidationError.ValueType
    text: str
    messages_count: int = 1
    """The permits that it took, as far as known."""


class ParsedEntry:
    """An entry whose metadata was read."""

    __slots__ = (
        "broker_metadata",
        "command",
        "data",
        "is_batch",
        "is_plain",
        "key",
        "messages_count",
        "metadata",
        "payload_start",
    )

    def __init__(  # noqa: PLR0917 - made once an entry, where keywords cost
        self,
        command: CommandMessage,
        data: EntryBytes,
        key: EntryKey,
        metadata: MessageMetadata,
        payload_start: int,
        broker_metadata: BrokerEntryMetadata | None,
    ) -> None:
        self.command = command
        self.data = data
        self.key = key
        self.metadata = metadata
        # The offset in `data` at which the payload begins.
        self.payload_start = payload_start
        self.broker_metadata = broker_metadata
        self.is_batch = metadata.HasField("num_messages_in_batch")
        # Whether the payload is one message that needs neither decrypting nor decompressing.
        self.is_plain = not (
            self.is_batch
            or metadata.compression
            or metadata.num_chunks_from_msg
            or metadata.encryption_keys
        )
        # The number of messages, before any are left out.
        self.messages_count = metadata.num_messages_in_batch if self.is_batch else 1

    @property
    def payload(self) -> bytes:
        """A copy of the payload as it came."""
        return bytes(self.data[self.payload_start :])

    @property
    def payload_view(self) -> memoryview:
        """The payload as it came, without copying it."""
        return memoryview(self.data)[self.payload_start :]


def parse(
    command: CommandMessage, data: EntryBytes, key: EntryKey, topic: str
) -> ParsedEntry | Problem:
    """Check an entry's checksum and limits, and read its metadata."""
    # Hot path: consume in `make bench-client`, unbatched.
    broker_metadata = None
    try:
        magic, checksum, size = _unpack_start(data) if len(data) >= _START_SIZE else (0, 0, 0)
        if magic == CHECKSUM_MAGIC_NUMBER:  # nearly all entries begin with it
            whole = data if len(data) < _CHEAP_TO_COPY else memoryview(data)
            covered = whole[CHECKSUM_BLOCK_SIZE:]
            if crc32c(covered) != checksum:
                return _wrong_checksum(topic, key, data)
            end = _START_SIZE + size
            if end > len(data):
                return _undecodable(topic, key, f"metadata of {size} bytes in {len(data)}")
            metadata = _parse_metadata(bytes(data[_START_SIZE:end]))
        else:
            if verify_checksum(data) is _WRONG:
                return _wrong_checksum(topic, key, data)
            start, end = metadata_bounds(data)
            metadata = _parse_metadata(bytes(data[start:end]))
            broker_metadata = parse_broker_entry_metadata(data)
        # `IsInitialized` would cost 0.25 us more; clients that set a publish time set the other two
        # required fields.
        if not metadata.publish_time and not metadata.IsInitialized():
            return _undecodable(topic, key, "the metadata lack a required field")
    except (PayloadError, *UNREADABLE) as error:
        return _undecodable(topic, key, str(error))
    return ParsedEntry(command, data, key, metadata, end, broker_metadata)


def _wrong_checksum(topic: str, key: EntryKey, data: EntryBytes) -> Problem:
    text = f"wrong checksum over {len(data)} bytes"
    return _problem(CommandAck.ChecksumMismatch, topic, key, text)


def _undecodable(topic: str, key: EntryKey, text: str, messages_count: int = 1) -> Problem:
    return _problem(CommandAck.BatchDeSerializeError, topic, key, text, messages_count)


def _problem(
    validation_error: CommandAck.ValidationError.ValueType,
    topic: str,
    key: EntryKey,
    text: str,
    messages_count: int = 1,
) -> Problem:
    return Problem(validation_error, f"{topic}: entry {key[0]}:{key[1]}: {text}", messages_count)


def inflate(
    parsed: ParsedEntry, payload: EntryBytes, topic: str, max_bytes: int | None
) -> EntryBytes | Problem:
    """The payload before compression; `max_bytes` None for joined chunks, which were limited."""
    metadata = parsed.metadata
    size = metadata.uncompressed_size
    if max_bytes is not None and size > max_bytes:
        return _problem(
            CommandAck.UncompressedSizeCorruption,
            topic,
            parsed.key,
            f"the metadata say {size} bytes uncompressed, the limit is {max_bytes}",
            parsed.messages_count,
        )
    try:
        return decompress(metadata.compression, payload, size)
    except PayloadError as error:
        return _problem(
            CommandAck.DecompressionError, topic, parsed.key, str(error), parsed.messages_count
        )


def check_batch_size(parsed: ParsedEntry, body_bytes: int, topic: str) -> Problem | None:
    """Check that a batch's body can hold as many messages as its metadata names; None if so."""
    count = parsed.messages_count
    kept = list(parsed.metadata.compacted_batch_indexes)
    limit = _MAX_COMPACTED_BATCH if kept else body_bytes // _MIN_MESSAGE_BYTES
    if not 0 < count <= limit:
        text = f"{count} messages do not fit a batch of {body_bytes} bytes"
        return _undecodable(topic, parsed.key, text)
    if any(after <= before for before, after in pairwise((-1, *kept, count))):
        text = f"messages {kept[0]} to {kept[-1]} were kept of a batch of {count}, out of order"
        return _undecodable(topic, parsed.key, text)
    return None


def messages_of(
    entry: ReceivedEntry, body: EntryBytes, start: int, wanted_bits: int
) -> list[Message] | Problem:
    """The messages of a batch whose bits are set; they become the entry's `unacked_bits`.

    Args:
        entry: The entry of the batch.
        body: Holds the batch from `start` on, decrypted and decompressed.
        start: The offset at which the batch begins.
        wanted_bits: Bit i is set where message i is wanted.
    """
    # Hot path: consume in `make bench-client`. Metadata is parsed only when an accessor needs it:
    # a message costs 0.4 us if all have the same sizes, and 0.7 instead of 0.9 us if some in a row
    # have.
    messages = _same_sized(entry, body, start)
    if messages is None:
        return _any_sized(entry, bytes(body), start, wanted_bits)
    if wanted_bits.bit_count() != len(messages):
        messages = [each for each in messages if wanted_bits >> each.batch_index & 1]
    entry.unacked_bits = wanted_bits
    return messages


def _same_sized(entry: ReceivedEntry, body: EntryBytes, start: int) -> list[Message] | None:
    """All messages of a batch whose messages have the same sizes; None if that is not certain."""
    count = entry.batch_size
    step, odd = divmod(len(body) - start, count)
    if odd or entry.metadata.compacted_batch_indexes:
        return None
    head = bytes(body[start : start + min(step, _MAX_HEAD)])
    try:
        metadata_size: int = _SIZE.unpack_from(head)[0]
        likeness = _likeness(head, 0, metadata_size)
        if likeness is None:
            return None
        first = _parse_single(bytes(body[start + 4 : start + 4 + metadata_size]))
    except (*UNREADABLE, IndexError, struct.error):
        return None  # `_any_sized` reports what is wrong
    if first.payload_size < 0 or 4 + metadata_size + first.payload_size != step:
        return None
    for offset, byte in enumerate(likeness):
        if body[start + offset :: step] != bytes((byte,)) * count:
            return None
    rows = Struct(f"4x{metadata_size}s{first.payload_size}s").iter_unpack(memoryview(body)[start:])
    # Without `__init__`, whose call would cost as much as all the rest; and all at once, which is a
    # fifth less than one by one.
    messages: list[Message] = list(map(object.__new__, repeat(Message, count)))
    for index, (message, (single, data)) in enumerate(zip(messages, rows, strict=True)):
        message.entry = entry
        message.batch_index = index
        message._single = single  # noqa: SLF001 - instead of its __init__
        message._data = data  # noqa: SLF001
    return messages


def _any_sized(
    entry: ReceivedEntry, body: bytes, start: int, wanted_bits: int
) -> list[Message] | Problem:
    """As `messages_of`, message by message."""
    metadata = entry.metadata
    kept = metadata.compacted_batch_indexes
    indexes = batch_indexes(body, start, entry.batch_size, kept)
    length = len(body)
    likeness: bytes | None = None
    misses_left = _LIKENESS_MISSES
    metadata_size = payload_size = 0
    single: SingleMessageMetadata | bytes
    messages: list[Message] = []
    add = messages.append
    unpack = _SIZE.unpack_from
    position = start
    try:
        for index in indexes:
            if likeness is not None and body.startswith(likeness, position):
                split = position + 4 + metadata_size
                single = body[position + 4 : split]
            else:
                metadata_size = unpack(body, position)[0]
                split = position + 4 + metadata_size
                single = _parse_single(body[position + 4 : split])
                payload_size = single.payload_size
                if misses_left:
                    misses_left -= 1
                    likeness = _likeness(body, position, metadata_size)
                else:
                    likeness = None  # it stands for the sizes of the message before
                if single.compacted_out:
                    wanted_bits &= ~(1 << index)
            end = split + payload_size
            if end > length or end < split:
                return _undecodable(
                    entry.topic,
                    entry.key,
                    f"message {index} of {entry.batch_size} needs {payload_size} bytes at "
                    f"{split - start}, the batch has {length - start}",
                    entry.batch_size,
                )
            if wanted_bits >> index & 1:
                add(Message(entry, index, single, body[split:end]))
            position = end
    except (*UNREADABLE, ValueError, IndexError, struct.error) as error:
        text = f"message {index} of {entry.batch_size} at {position - start}: {error}"
        return _undecodable(entry.topic, entry.key, text, entry.batch_size)
    if len(messages) != wanted_bits.bit_count():
        wanted_bits = sum(1 << each.batch_index for each in messages)
    entry.unacked_bits = wanted_bits
    return messages


def _likeness(body: bytes, position: int, metadata_size: int) -> bytes | None:
    """The first bytes of messages that have the same sizes as this one; None if none are certain.

    They are the metadata's size, `payload_size` as the first field, and the tag of the next field,
    which must come after `compacted_out`: serializers write fields in the order of their numbers.
    """
    start = position + 4
    if body[start] != _PAYLOAD_SIZE_TAG:
        return None
    after = start + 1
    while body[after] & 0x80:
        after += 1
    after += 1
    if after >= start + metadata_size or body[after] <= _COMPACTED_OUT_TAG:
        return None
    return body[position : after + 1]
