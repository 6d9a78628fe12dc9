"""`LedgerReaders`: the handles by which a managed ledger reads its closed ledgers (edge).

A handle is opened at its first read and shared by all cursors; the least recently used one that
has no read under way is closed when there are too many. Ledgers are opened concurrently: a slow
opening delays no read of another ledger.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import ManagedLedgerClosedError
from pulsar_py.ledgers.store import LedgerReader, LedgerStore

MAX_OPEN_READERS = 32


class LedgerReaders:
    """Open readers by ledger id. Owned by a ManagedLedger."""

    def __init__(self, store: LedgerStore, password: bytes) -> None:
        self._store = store
        self._password = password
        self._open: OrderedDict[int, LedgerReader] = OrderedDict()  # last used last
        self._reads: dict[int, int] = {}  # ledger id -> reads under way
        self._opening: dict[int, asyncio.Lock] = {}  # of ledgers that are being opened
        self._is_closed = False

    def read_cached(
        self, ledger_id: int, first: int, last: int, max_bytes: int
    ) -> Sequence[EntryBytes] | None:
        """The entries that `read` would return, if they are in memory; else None."""
        reader = self._open.get(ledger_id)
        return None if reader is None else reader.read_cached(first, last, max_bytes)

    async def read(
        self, ledger_id: int, first: int, last: int, max_bytes: int
    ) -> Sequence[EntryBytes]:
        """Entries of one ledger, as LedgerReader.read gives them.

        Raises:
            StorageError: The ledger or the entry can't be read.
        """
        reader = self._open.get(ledger_id) or await self._opened(ledger_id)
        self._reads[ledger_id] = self._reads.get(ledger_id, 0) + 1
        try:
            return await reader.read(first, last, max_bytes)
        finally:
            self._reads[ledger_id] -= 1
            if not self._reads[ledger_id]:
                del self._reads[ledger_id]
            if ledger_id in self._open:
                self._open.move_to_end(ledger_id)

    async def _opened(self, ledger_id: int) -> LedgerReader:
        lock = self._opening.setdefault(ledger_id, asyncio.Lock())
        async with lock:
            self._raise_if_closed()
            reader = self._open.get(ledger_id)
            if reader is None:
                try:
                    reader = await self._open_new(ledger_id)
                finally:
                    # Callers that wait have a reference to this lock; later ones need none, since
                    # the reader is open by then, or make a new one.
                    self._opening.pop(ledger_id, None)
            return reader

    async def _open_new(self, ledger_id: int) -> LedgerReader:
        await self._make_room()
        reader = await self._store.open(ledger_id, password=self._password)
        known = self._open.get(ledger_id)
        if self._is_closed or known is not None:
            await reader.close()
            self._raise_if_closed()
        if known is None:
            known = self._open[ledger_id] = reader
        return known

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise ManagedLedgerClosedError("the managed ledger is closed: open it again to read")

    async def _make_room(self) -> None:
        idle = [ledger_id for ledger_id in self._open if ledger_id not in self._reads]
        for ledger_id in idle[: max(0, len(self._open) - MAX_OPEN_READERS + 1)]:
            await self._open.pop(ledger_id).close()

    async def forget(self, ledger_ids: Sequence[int]) -> None:
        """Close the handles of ledgers that are about to be deleted."""
        for ledger_id in ledger_ids:
            if (reader := self._open.pop(ledger_id, None)) is not None:
                await reader.close()

    async def close(self) -> None:
        """Close all handles; later reads fail."""
        self._is_closed = True
        await self.forget(list(self._open))
