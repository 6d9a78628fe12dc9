"""`AlikeEntries`: recognizes entries whose metadata differ in their ids alone (pure).

A message that has nothing but a payload comes in an entry that is like the one before, except for
its sequence id and publish time. To parse such metadata costs as much as all the rest that is done
for the message, and few programs ask for them. So the head of one entry that was parsed is kept:

    magic | checksum | size | producer name | sequence id | publish time | other fields | payload
    same    any        same   same            as long       as long        same

What always holds: parsing an entry that is alike would succeed, and give the same fields, with
another sequence id and publish time. Its checksum has been compared.

Source: MessageMetadata in PulsarApi.proto; `wire.payload` for the layout.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.hashing import crc32c
from pulsar_py.common.varint import after_varint
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.wire.payload import CHECKSUM_AND_SIZE, CHECKSUM_BLOCK_SIZE, MAGIC_CHECKSUM

__all__ = ["AlikeEntries"]

_METADATA_START: Final = CHECKSUM_AND_SIZE.size
_CHECKSUM: Final = slice(len(MAGIC_CHECKSUM), CHECKSUM_BLOCK_SIZE)
_SIZE: Final = slice(CHECKSUM_BLOCK_SIZE, _METADATA_START)
_PRODUCER_NAME_TAG: Final = MessageMetadata.PRODUCER_NAME_FIELD_NUMBER << 3 | 2
_NUMBER_TAGS: Final = (
    MessageMetadata.SEQUENCE_ID_FIELD_NUMBER << 3,
    MessageMetadata.PUBLISH_TIME_FIELD_NUMBER << 3,
)
_MORE: Final = 0x80
"""Set in each byte of a number but the last."""
_LONGEST_NUMBER: Final = 9
"""Bytes of a number of 63 bits; one more could mean more than a field holds."""

_from_bytes: Final = int.from_bytes


class AlikeEntries:
    """The head of one entry, to compare others with."""

    __slots__ = ("_mask", "_misses", "_size", "_wanted", "payload_start")

    def __init__(self) -> None:
        # The offset at which the payload of entries like it begins.
        self.payload_start = 0
        # The size of their metadata, as it is written.
        self._size = b""
        # The head as one number: the bits that have to be the same, and what they are; none is yet.
        self._mask = 0
        self._wanted = -1
        # Entries in a row that were not alike.
        self._misses = 0

    def has(self, data: EntryBytes) -> bool:
        """Whether an entry is like the one that is kept, and its checksum right."""
        # Hot path: latency in `make bench-client`.
        if data[_SIZE] != self._size:  # costs little where nothing is alike
            return False
        head = data[: self.payload_start]
        if (
            _from_bytes(head, "little") & self._mask != self._wanted
            or len(head) != self.payload_start
            or _from_bytes(head[_CHECKSUM], "big") != crc32c(data[CHECKSUM_BLOCK_SIZE:])
        ):
            return False
        self._misses = 0
        return True

    def metadata_of(self, data: EntryBytes) -> bytes:
        """The metadata, not parsed, of an entry that is alike."""
        return bytes(data[_METADATA_START : self.payload_start])

    def learn(self, data: EntryBytes, payload_start: int) -> None:
        """Keep the head of an entry that was parsed, where others may be like it.

        Where entries are not, this is tried ever less often.

        Args:
            data: The entry; its metadata are those of a message that is neither in a batch, nor a
                chunk, nor compressed, nor encrypted.
            payload_start: The offset at which they end.
        """
        self._misses += 1
        if self._misses & (self._misses - 1):
            return
        head = bytes(data[:payload_start])
        numbers = _numbers_in(head) if head.startswith(MAGIC_CHECKSUM) else []
        if not numbers:
            return
        mask = bytearray(b"\xff") * payload_start
        mask[_CHECKSUM] = bytes(CHECKSUM_BLOCK_SIZE - len(MAGIC_CHECKSUM))
        for number in numbers:
            mask[number] = bytes((_MORE,)) * len(mask[number])
        self.payload_start = payload_start
        self._size = head[_SIZE]
        self._mask = _from_bytes(mask, "little")
        self._wanted = _from_bytes(head, "little") & self._mask


def _numbers_in(head: bytes) -> list[slice]:
    """Where sequence id and publish time lie; empty if they don't follow the producer's name."""
    # A byte more, as the last field may end with the head.
    fields = head + b"\0"
    position = _METADATA_START
    name_size = fields[position + 1]
    if fields[position] != _PRODUCER_NAME_TAG or name_size >= _MORE:
        return []
    position += 2 + name_size
    numbers: list[slice] = []
    for tag in _NUMBER_TAGS:
        if position >= len(head) or fields[position] != tag:
            return []
        begin = position + 1
        position = after_varint(fields, begin)
        if position - begin > _LONGEST_NUMBER:
            return []
        numbers.append(slice(begin, position))
    return numbers
