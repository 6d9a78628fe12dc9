"""`ChunkedMessages`: joins the chunks of messages, so that they stay or go together (pure).

A chunk that repeats or skips one is no part of its message, as for consumers. Messages whose last
chunk has not come yet are kept: the next compaction decides about them. Apache Pulsar takes each
chunk for a message of its own, and keeps the last one only.
"""

from __future__ import annotations

from pulsar_py.server.compaction.keyed_messages import ChunkPart


class ChunkedMessages:
    """The chunked messages that are not complete yet; owned by one compaction."""

    def __init__(self) -> None:
        self._open: dict[str, list[int]] = {}  # by uuid: the numbers of the chunks so far

    def add(self, part: ChunkPart, number: int) -> list[int] | None:
        """Take in a chunk; returns the numbers of all chunks if the message is complete now."""
        if part.chunk_id == 0:
            self._open[part.uuid] = []
        chunks = self._open.get(part.uuid)
        if chunks is None or part.chunk_id != len(chunks):
            return None
        chunks.append(number)
        if len(chunks) < part.chunks_count:
            return None
        del self._open[part.uuid]
        return chunks

    def incomplete(self) -> list[list[int]]:
        """The numbers of the chunks of each message whose end has not come."""
        return list(self._open.values())
