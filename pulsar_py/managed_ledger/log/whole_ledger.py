"""`WholeLedgerWriter`: writes a ledger at once, from its first entry to its end (edge).

Entries are lent to the store until confirmed; beyond a count or size of unconfirmed ones the caller
waits. Where the store is busy for a moment, the entry is offered again. Compacted ledgers and
buckets of the delayed index are written so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from pulsar_py.common.errors import StorageError, StoreBusyError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore, LedgerWriter
from pulsar_py.managed_ledger.log.appender import create_ledger

MAX_UNCONFIRMED: Final = 500
MAX_UNCONFIRMED_BYTES: Final = 8 * 1024 * 1024
BESIDE_OTHERS_BYTES: Final = 256 * 1024
"""The same for what is written beside others' appends: these share the journal's groups with it,
and so wait for at most about so many bytes more."""
BUSY_PAUSE_SECONDS: Final = 0.05
BUSY_TRIES: Final = 200
CREATION_TIMEOUT_SECONDS: Final = 60.0


class WholeLedgerWriter:
    """The writer of one ledger; its listener."""

    def __init__(
        self,
        ledger_store: LedgerStore,
        clock: Clock,
        *,
        max_unconfirmed_bytes: int = MAX_UNCONFIRMED_BYTES,
    ) -> None:
        """Beyond so many unconfirmed bytes `append` waits; one entry may be larger."""
        self._ledger_store = ledger_store
        self._max_unconfirmed_bytes = max_unconfirmed_bytes
        self._clock = clock
        self._writer: LedgerWriter | None = None
        self._sizes: deque[int] = deque()  # of the entries that are not confirmed yet
        self._unconfirmed_bytes = 0
        self._confirmed = -1
        self._failure: StorageError | None = None
        self._news = asyncio.Event()

    @property
    def ledger_id(self) -> int:
        """The id of the ledger; only after `create_with`."""
        assert self._writer is not None, "it was not created"
        return self._writer.ledger_id

    async def create_with(self, options: LedgerOptions) -> int:
        """Create the ledger; returns its id.

        Raises:
            StorageError, MetadataError: There is none, or one that no metadata names.
        """
        self._writer = await create_ledger(
            self._ledger_store, self, options, timeout_seconds=CREATION_TIMEOUT_SECONDS
        )
        return self._writer.ledger_id

    def take(self, writer: LedgerWriter) -> None:
        """Write with a writer that was made with this one as its listener, behind its last entry.

        In place of `create_with`.
        """
        self._writer = writer
        self._confirmed = writer.last_add_confirmed

    async def append(self, entry: bytes) -> None:
        """Append one entry, once there is room for it.

        Raises:
            StorageError: The ledger takes no more.
        """
        while (
            len(self._sizes) >= MAX_UNCONFIRMED
            or self._unconfirmed_bytes >= self._max_unconfirmed_bytes
        ) and self._failure is None:
            await self._wait()
        if self._failure is not None:
            raise self._failure
        self._sizes.append(len(entry))
        self._unconfirmed_bytes += len(entry)
        await self._offer(entry)

    async def _offer(self, entry: bytes) -> None:
        assert self._writer is not None
        for _ in range(BUSY_TRIES):
            try:
                self._writer.append(entry)
            except StoreBusyError:
                await self._clock.sleep(BUSY_PAUSE_SECONDS)
            else:
                return
        self._writer.append(entry)

    async def close(self) -> None:
        """Close the ledger with all its entries.

        Raises:
            StorageError: They may not all be there.
        """
        await self.flush()
        assert self._writer is not None
        await self._writer.close()

    async def flush(self) -> None:
        """Return when all entries so far are durable.

        Raises:
            StorageError: They may not all be there.
        """
        while self._sizes and self._failure is None:
            await self._wait()
        if self._failure is not None:
            raise self._failure

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        """Note which entries are durable."""
        del ledger_id
        for _ in range(last_add_confirmed - self._confirmed):
            self._unconfirmed_bytes -= self._sizes.popleft()
        self._confirmed = last_add_confirmed
        self._news.set()

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        """Note that no more entries will be."""
        del ledger_id
        self._failure = error
        self._news.set()
