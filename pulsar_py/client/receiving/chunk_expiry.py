"""Decides when incomplete chunked messages expire (pure).

Only time counts in which the rest of a message can come. It can't come while there is no
connection, while the broker has no permits, or while another Failover consumer is active:
afterwards the time begins anew. Limits that only the broker knows, such as that of unacknowledged
messages, are not considered. Entries that arrived in time and wait to be decoded may be the rest.
`now` comes in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pulsar_py.client.receiving.chunk_assembly import ChunkAssembly, ChunkOutcome

__all__ = ["CHUNK_CHECK_SECONDS", "ChunkExpiry"]

CHUNK_CHECK_SECONDS: Final = 1.0
"""Interval of checks whether entries that came before an expiry have been decoded."""


class ChunkExpiry:
    """The expiry of one consumer's chunks."""

    def __init__(self, chunks: ChunkAssembly) -> None:
        self._chunks = chunks
        # The expiry that is due: its time, and the last entry that has to be decoded before it.
        self._due: tuple[float, list[object]] | None = None
        # Whether the broker could send nothing at the last check.
        self._was_cut_off = False

    def clear(self) -> None:
        """Forget the state: the chunks were forgotten."""
        self._due = None
        self._was_cut_off = False

    def look(
        self, now: float, waiting: Sequence[object], *, can_come: bool
    ) -> tuple[ChunkOutcome, float | None]:
        """The messages that expire now, and when to look again.

        `waiting` are received entries that are not decoded; `can_come` is whether the broker could
        send one now.
        """
        expires_at = self._chunks.next_expiry()
        if self._due is None and (expires_at is None or expires_at > now):
            return ChunkOutcome(), expires_at
        if not can_come or self._was_cut_off:
            self._due = None
            self._was_cut_off = not can_come
            self._chunks.wait_anew(now)
            return ChunkOutcome(), self._chunks.next_expiry()
        if self._due is None:
            self._due = (now, [*waiting[-1:]])
        due, last = self._due
        if last and _has(waiting, last[0]):
            return ChunkOutcome(), now + CHUNK_CHECK_SECONDS
        self._due = None
        return self._chunks.expire(due), self._chunks.next_expiry()


def _has(entries: Iterable[object], entry: object) -> bool:
    return any(each is entry for each in entries)
