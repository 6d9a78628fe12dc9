"""`CompactionInput`: reads what is to be compacted: the former compacted ledger, then the topic.

It is read twice, by both phases. The cursor of the compaction holds the topic's entries until they
are compacted, so they are the same both times (edge).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Final, Protocol

from pulsar_py.common.errors import StorageError, StoreUnavailableError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.compaction.compacted_ledger import CompactedLedger

ENTRIES_A_READ: Final = 100
BYTES_A_READ: Final = 1024 * 1024


class CompactionCursor(Protocol):
    """The part of the cursor `__compaction` that reading uses."""

    @property
    def read_position(self) -> Position:
        """The next entry to read."""

    def rewind(self) -> None:
        """Read again from the first entry that is not acknowledged."""

    async def read(
        self, max_entries: int, max_bytes: int, max_position: Position
    ) -> Sequence[Entry]:
        """The next entries up to `max_position`."""


class CompactionInput:
    """All that one compaction reads, in the order of positions."""

    def __init__(
        self,
        compacted: CompactedLedger | None,
        cursor: CompactionCursor,
        last: Position,
        *,
        read_timeout_seconds: float,
    ) -> None:
        """`last` is the last position of the topic that is compacted this time."""
        self._compacted = compacted
        self._cursor = cursor
        self._last = last
        self._read_timeout_seconds = read_timeout_seconds

    async def entries(self) -> AsyncIterator[Sequence[Entry]]:
        """Yield entries, some at a time.

        Raises:
            StorageError: They can't be read, or the cursor was moved meanwhile.
        """
        if self._compacted is not None:
            index = 0
            while entries := await self._read(
                self._compacted.read(index, ENTRIES_A_READ, BYTES_A_READ)
            ):
                index += len(entries)
                yield entries
        cursor = self._cursor
        cursor.rewind()
        while cursor.read_position <= self._last:
            entries = await self._read(cursor.read(ENTRIES_A_READ, BYTES_A_READ, self._last))
            if not entries and cursor.read_position <= self._last:
                raise StorageError("the cursor of the compaction was moved meanwhile; try again")
            yield entries

    async def _read(self, read: Awaitable[Sequence[Entry]]) -> Sequence[Entry]:
        try:
            async with asyncio.timeout(self._read_timeout_seconds):
                return await read
        except TimeoutError as error:
            raise StoreUnavailableError(
                f"nothing could be read for {self._read_timeout_seconds:g} s "
                "(brokerServiceCompactionPhaseOneLoopTimeInSeconds); try again"
            ) from error
