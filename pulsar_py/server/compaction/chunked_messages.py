"""`ChunkedMessages`: joins the chunks of messages, so that they stay or go together (pure).

A chunk that repeats or skips one is no part of its message, as for consumers. Messages whose last
chunk has not come yet are kept: the next compaction decides about them. Apache Pulsar takes each
chunk for a message of its own, and keeps the last one only.

Of messages that are not complete as much is held as fits the bound; the ones begun first are let
go. Their chunks are kept, as are all chunks from then on whose message is not known: they may be
its end. So each message is still whole, and older ones of a key may stay until the next compaction.
Tombstones have to stay with them (`has_let_go`), else what they delete would come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from pulsar_py.server.compaction.keyed_messages import ChunkPart

MESSAGE_COST_BYTES: Final = 250
"""Memory of an incomplete message beside its uuid: heads of objects, a dictionary's slot."""
CHUNK_COST_BYTES: Final = 44
"""Memory of the number of a chunk: an integer and its place in a list that has room to grow."""


class ChunkedMessages:
    """The chunked messages that are not complete yet; owned by one compaction."""

    def __init__(self, keep: Callable[[Iterable[int]], None], *, memory_bytes: int) -> None:
        """`keep` takes the numbers of chunks that stay whatever comes."""
        self._keep = keep
        self._max_bytes = memory_bytes
        self._held_bytes = 0
        self._open: dict[str, list[int]] = {}  # by uuid: the numbers of the chunks so far
        self.has_let_go = False
        """Whether there were more incomplete messages than fit the bound."""

    def add(self, part: ChunkPart, number: int) -> list[int] | None:
        """Take in a chunk; returns the numbers of all chunks if the message is complete now."""
        if part.chunk_id == 0:
            self._close(part.uuid)
            self._open[part.uuid] = []
            self._held_bytes += _cost(part.uuid, 0)
        chunks = self._open.get(part.uuid)
        if chunks is None:
            if self.has_let_go:
                self._keep((number,))
            return None
        if part.chunk_id != len(chunks):
            return None
        chunks.append(number)
        self._held_bytes += CHUNK_COST_BYTES
        if len(chunks) >= part.chunks_count:
            self._close(part.uuid)
            return chunks
        while self._held_bytes > self._max_bytes:
            self._keep(self._close(next(iter(self._open))))
            self.has_let_go = True
        return None

    def keep_incomplete(self) -> None:
        """Keep the chunks of each message whose end has not come, and forget them."""
        while self._open:
            self._keep(self._close(next(iter(self._open))))

    def _close(self, uuid: str) -> list[int]:
        chunks = self._open.pop(uuid, None)
        if chunks is None:
            return []
        self._held_bytes -= _cost(uuid, len(chunks))
        return chunks


def _cost(uuid: str, chunks_count: int) -> int:
    return MESSAGE_COST_BYTES + len(uuid) + CHUNK_COST_BYTES * chunks_count
