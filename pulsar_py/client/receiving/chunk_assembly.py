"""Puts the chunks of messages together (pure).

A buffer is opened by chunk 0 and takes only the chunk that comes next; the chunks of other messages
may lie in between. What does not fit is one of these:

    a chunk again that the buffer has, same entry      a redelivery: dropped
    the same from another entry                        sent twice: acknowledged, or it would stay
    chunk 0 again, same entry                          a redelivery: begin anew
    chunk 0 again from another entry                   the producer began anew: acknowledge the old
    a gap, or no buffer                                something is lost: ask for all of it again,
                                                       once a message

Buffers are limited in number (the oldest is dropped) and in age, and a buffer in bytes, to what its
metadata announced. The chunks of a dropped buffer are acknowledged or requested again, as
configured, and so are those that come after it. Chunks that have waited too long, in a buffer or
without one, are acknowledged, since the rest will not come: of a duplicate, the broker stores the
first chunks and not the last one. Only time in which the rest could have come counts
(`chunk_expiry.py`), and not how long ago a chunk was published. `now` comes in.

Source: processMessageChunk in ConsumerImpl of Pulsar's Java client; PIP-37.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeAlias

from pulsar_py.client.messages.message import EntryKey
from pulsar_py.common.recent import remember
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata

__all__ = ["MAX_CHUNKED_MESSAGE_BYTES", "Chunk", "ChunkAssembly", "ChunkListener", "ChunkOutcome"]

ChunkListener: TypeAlias = Callable[[EntryKey, MessageMetadata, bool], None]
"""Called with each chunk's entry and metadata, and whether the chunks before it are here."""

_REMEMBERED_COUNT: Final = 1_000

MAX_CHUNKED_MESSAGE_BYTES: Final = 2**31 - 1
"""The largest value of `total_chunk_msg_size`."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk, decrypted."""

    key: EntryKey
    metadata: MessageMetadata
    payload: bytes


@dataclass(slots=True)
class ChunkOutcome:
    """The result of one chunk, or of an expiry."""

    payload: bytes | None = None
    """The whole message, still compressed; None while it is not complete."""
    chunk_ids: tuple[EntryKey, ...] = ()
    """Its entries, in order."""
    to_acknowledge: list[EntryKey] = field(default_factory=list)
    to_redeliver: list[EntryKey] = field(default_factory=list)
    """Entries of dropped messages, to ask the broker for again."""
    held: list[EntryKey] = field(default_factory=list)
    """Entries whose message's beginning is missing: of no use unless that comes, too."""
    problem: str | None = None
    """Why the message of `chunk_ids` can't be put together; names announced and actual sizes."""


class _Buffer:
    """The chunks of a message that is not complete."""

    __slots__ = ("chunks_count", "keys", "opened_at", "pieces", "received_bytes", "total_bytes")

    def __init__(self, metadata: MessageMetadata, now: float) -> None:
        self.chunks_count = metadata.num_chunks_from_msg
        self.total_bytes = metadata.total_chunk_msg_size
        self.opened_at = now
        self.received_bytes = 0
        self.pieces: list[bytes] = []
        self.keys: list[EntryKey] = []


class ChunkAssembly:
    """The incomplete messages of one consumer."""

    def __init__(
        self,
        *,
        max_pending: int = 10,
        expire_seconds: float = 60.0,
        is_oldest_acknowledged: bool = False,
        listener: ChunkListener | None = None,
    ) -> None:
        """`max_pending` 0 means no limit, `expire_seconds` 0 never.

        With a `listener`, chunks whose beginning is missing are left to it: they are neither
        acknowledged nor asked for again.
        """
        self._max_pending = max_pending
        self._expire_seconds = expire_seconds
        self._is_oldest_acknowledged = is_oldest_acknowledged
        self._listener = listener
        # uuid -> buffer, in the order in which they were opened.
        self._buffers: dict[str, _Buffer] = {}
        # Chunks without a buffer -> the time since which they wait: received ones, and those that
        # were received before `clear` and should come again.
        self._orphans: dict[EntryKey, float] = {}
        self._former_orphans: dict[EntryKey, float] = {}
        # uuids of messages that were dropped and asked for again, and whose chunk 0 has not come
        # since; and of messages with a gap, which are asked for again only once.
        self._asked: OrderedDict[str, None] = OrderedDict()
        self._gapped: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buffers)

    @property
    def pending_bytes(self) -> int:
        """Bytes in all buffers."""
        return sum(each.received_bytes for each in self._buffers.values())

    def add(self, chunk: Chunk, now: float) -> ChunkOutcome:
        """Take one chunk; if the chunks don't fit their announced sizes, the message is dropped."""
        outcome = ChunkOutcome()
        uuid, chunk_id = chunk.metadata.uuid, chunk.metadata.chunk_id
        if chunk_id == 0:
            self._begin(chunk, now, outcome)
        buffer = self._buffers.get(uuid)
        if self._listener is not None:
            self._listener(chunk.key, chunk.metadata, buffer is not None)
            if buffer is None:
                return outcome
        if buffer is None or chunk_id != len(buffer.pieces):
            self._refuse(chunk, buffer, now, outcome)
            return outcome
        self._orphans.pop(chunk.key, None)
        buffer.pieces.append(chunk.payload)
        buffer.keys.append(chunk.key)
        buffer.received_bytes += len(chunk.payload)
        is_complete = chunk_id + 1 == buffer.chunks_count
        if is_complete or buffer.received_bytes > buffer.total_bytes:
            del self._buffers[uuid]
            outcome.chunk_ids = tuple(buffer.keys)
            outcome.problem = _size_problem(uuid, buffer)
            if outcome.problem is None:
                outcome.payload = b"".join(buffer.pieces)
        return outcome

    def _begin(self, chunk: Chunk, now: float, outcome: ChunkOutcome) -> None:
        metadata = chunk.metadata
        self._asked.pop(metadata.uuid, None)
        if (
            old := self._buffers.pop(metadata.uuid, None)
        ) is not None and chunk.key not in old.keys:
            outcome.to_acknowledge += old.keys
        if self._max_pending and len(self._buffers) >= self._max_pending:
            self._drop(next(iter(self._buffers)), outcome)
        self._buffers[metadata.uuid] = _Buffer(metadata, now)

    def _refuse(
        self, chunk: Chunk, buffer: _Buffer | None, now: float, outcome: ChunkOutcome
    ) -> None:
        """Handle a chunk that is not the next one of its message."""
        metadata = chunk.metadata
        if buffer is not None and metadata.chunk_id < len(buffer.pieces):
            if chunk.key not in buffer.keys:
                outcome.to_acknowledge.append(chunk.key)
            return
        keys = [chunk.key]
        if buffer is not None:
            keys = self._buffers.pop(metadata.uuid).keys + keys
            if metadata.uuid not in self._gapped:
                remember(self._gapped, metadata.uuid, None, _REMEMBERED_COUNT)
                remember(self._asked, metadata.uuid, None, _REMEMBERED_COUNT)
        if metadata.uuid in self._asked:
            outcome.to_redeliver += keys
            return
        for key in keys:
            self._orphans.setdefault(key, self._former_orphans.pop(key, now))
        outcome.held += keys

    def _drop(self, uuid: str, outcome: ChunkOutcome) -> None:
        """Drop the oldest buffer, to make room for a new message."""
        keys = self._buffers.pop(uuid).keys
        if self._is_oldest_acknowledged:
            outcome.to_acknowledge += keys
        else:
            outcome.to_redeliver += keys
            remember(self._asked, uuid, None, _REMEMBERED_COUNT)

    def first_keys(self) -> list[EntryKey]:
        """The first entry of each incomplete message."""
        return [each.keys[0] for each in self._buffers.values()]

    def next_expiry(self) -> float | None:
        """When the oldest buffer, or chunk without one, expires; None if none ever does."""
        if not self._expire_seconds:
            return None
        since = [each.opened_at for each in islice(self._buffers.values(), 1)]
        since += islice(self._orphans.values(), 1)
        return min(since) + self._expire_seconds if since else None

    def expire(self, now: float) -> ChunkOutcome:
        """Give up messages that are too old (removeExpireIncompleteChunkedMessages)."""
        outcome = ChunkOutcome()
        if not self._expire_seconds:
            return outcome
        for uuid, buffer in [*self._buffers.items()]:
            if buffer.opened_at + self._expire_seconds <= now:
                outcome.to_acknowledge += buffer.keys
                del self._buffers[uuid]
        for key, since in [*self._orphans.items()]:
            if since + self._expire_seconds <= now:
                outcome.to_acknowledge.append(key)
                del self._orphans[key]
        return outcome

    def wait_anew(self, now: float) -> None:
        """Restart all times until expiry: no chunks could come for a while."""
        for buffer in self._buffers.values():
            buffer.opened_at = now
        self._orphans = dict.fromkeys(self._orphans, now)

    def clear(self) -> None:
        """Forget all buffers: their chunks are delivered again."""
        self._buffers.clear()
        self._asked.clear()
        self._former_orphans, self._orphans = self._orphans, {}


def _size_problem(uuid: str, buffer: _Buffer) -> str | None:
    if buffer.received_bytes == buffer.total_bytes:
        return None
    return (
        f"chunked message {uuid}: {len(buffer.pieces)} of {buffer.chunks_count} chunks hold "
        f"{buffer.received_bytes} bytes, announced were {buffer.total_bytes}"
    )
