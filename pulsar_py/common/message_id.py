"""`MessageId`: a position with a client's additions: partition, batch index, chunks (values).

The serialized form, which users store and hand back, is one bare `MessageIdData`. A message in a
batch carries `batch_index` and `batch_size`; a chunked message has the id of its last chunk, and
that of its first one nested. On the wire ledger and entry are unsigned, -1 being 2^64-1.

Source: MessageIdImpl, BatchMessageIdImpl, ChunkMessageIdImpl and MessageIdData in Pulsar.
"""

from __future__ import annotations

from functools import total_ordering
from typing import ClassVar, Final

from pulsar_py.common.errors import UNREADABLE
from pulsar_py.common.position import MAX_LONG, Position
from pulsar_py.proto.PulsarApi_pb2 import MessageIdData

_UNSIGNED = 2**64


def to_unsigned(value: int) -> int:
    """A signed 64-bit number as the protocol's unsigned fields hold it: -1 becomes 2^64-1."""
    return value if value >= 0 else value + _UNSIGNED


def to_signed(value: int) -> int:
    """The signed number of an unsigned 64-bit one; the reverse of `to_unsigned`."""
    return value if value <= MAX_LONG else value - _UNSIGNED


def position_of(data: MessageIdData) -> Position:
    """The entry a wire message id names."""
    return Position(to_signed(data.ledgerId), to_signed(data.entryId))


@total_ordering
class MessageId:
    """The position of one message. Ordered by ledger, entry and batch index."""

    __slots__ = (
        "batch_index",
        "batch_size",
        "entry_id",
        "first_chunk",
        "ledger_id",
        "partition_index",
    )

    earliest: ClassVar[MessageId]
    """Before the first message."""
    latest: ClassVar[MessageId]
    """After the last message."""

    def __init__(
        self,
        ledger_id: int,
        entry_id: int,
        *,
        partition_index: int = -1,
        batch_index: int = -1,
        batch_size: int = 0,
        first_chunk: MessageId | None = None,
    ) -> None:
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        # -1: the topic has no partitions, or the id does not tell.
        self.partition_index = partition_index
        # -1: the id means the whole entry.
        self.batch_index = batch_index
        self.batch_size = batch_size
        # Chunked messages: where the first chunk is; seeking goes there.
        self.first_chunk = first_chunk

    @property
    def position(self) -> Position:
        """The position of the entry that holds the message."""
        return Position(self.ledger_id, self.entry_id)

    @classmethod
    def from_data(cls, data: MessageIdData) -> MessageId:
        """Read a wire message id."""
        return cls(
            to_signed(data.ledgerId),
            to_signed(data.entryId),
            partition_index=data.partition,
            batch_index=data.batch_index,
            batch_size=data.batch_size,
            first_chunk=(
                cls.from_data(data.first_chunk_message_id)
                if data.HasField("first_chunk_message_id")
                else None
            ),
        )

    def to_data(self) -> MessageIdData:
        """As a wire message id; what has its default is left out."""
        data = MessageIdData(
            ledgerId=to_unsigned(self.ledger_id), entryId=to_unsigned(self.entry_id)
        )
        if self.partition_index >= 0:
            data.partition = self.partition_index
        if self.batch_index >= 0:
            data.batch_index = self.batch_index
            if self.batch_size > 0:
                data.batch_size = self.batch_size
        if self.first_chunk is not None:
            data.first_chunk_message_id.CopyFrom(self.first_chunk.to_data())
        return data

    def serialize(self) -> bytes:
        """The form that users may store."""
        return self.to_data().SerializeToString()

    @classmethod
    def parse(cls, data: bytes) -> MessageId:
        """Read the serialized form.

        Raises:
            ValueError: The bytes are not a serialized message id.
        """
        try:
            return cls.from_data(MessageIdData.FromString(data))
        except UNREADABLE as error:
            raise ValueError(f"{data.hex()} is not a serialized message id: {error}") from error

    @classmethod
    def deserialize(cls, data: bytes) -> MessageId:
        """`parse`, under the official Python client's name."""
        return cls.parse(data)

    def _key(self) -> tuple[int, int, int]:
        return (self.ledger_id, self.entry_id, self.batch_index)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MessageId):
            return (
                self._key() == other._key()
                and self.partition_index == other.partition_index
                and self.first_chunk == other.first_chunk
            )
        return NotImplemented

    def __lt__(self, other: MessageId) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        """Pulsar's text form, `ledger:entry:partition` and `:batch index` where there is one."""
        text = f"{self.ledger_id}:{self.entry_id}:{self.partition_index}"
        return text if self.batch_index < 0 else f"{text}:{self.batch_index}"

    def __repr__(self) -> str:
        return f"MessageId({self})"


EARLIEST_MESSAGE_ID: Final = MessageId(-1, -1)
LATEST_MESSAGE_ID: Final = MessageId(MAX_LONG, MAX_LONG)
MessageId.earliest = EARLIEST_MESSAGE_ID
MessageId.latest = LATEST_MESSAGE_ID
