"""What a ledger's users hold: a reader, or the writer, which reads too.

Both only look at the shared `Ledger` and the caches; waiting work is the storage's. The writer's
`append` is the hottest call of the engine: it compares, counts and adds to a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import CorruptDataError, EntryNotFoundError, LedgerClosedError
from pulsar_py.storage.journal import Journal
from pulsar_py.storage.ledger_storage import LedgerStorage
from pulsar_py.storage.ledger_store import LedgerWriter
from pulsar_py.storage.ledgers import ENTRY_OVERHEAD_BYTES, Ledger, check_exists
from pulsar_py.storage.write_cache import AppendGate, WriteCache, cut

ENOUGH_ENTRIES = 32
"""So many of one run are returned as they lie there; fewer are put together with what follows."""


class HandleOwner(Protocol):
    """What a handle needs of the Bookie."""

    journal: Journal
    cache: WriteCache
    gate: AppendGate
    storage: LedgerStorage

    async def close_ledger(self, ledger: Ledger, *, is_fenced: bool) -> None:
        """End a ledger at its last confirmed entry, durably."""


class BookieLedger(LedgerWriter):
    """A handle on one ledger; as a reader it is known by its interface alone."""

    def __init__(self, owner: HandleOwner, ledger: Ledger, *, is_writer: bool) -> None:
        self.ledger_id = ledger.ledger_id
        self._owner = owner
        self._ledger = ledger
        self._gate = owner.gate
        self._journal = owner.journal
        self._is_writer = is_writer

    @property
    def last_add_confirmed(self) -> int:
        """Id of the last readable entry, -1 when there is none."""
        return self._ledger.last_add_confirmed

    @property
    def last_add_pushed(self) -> int:
        """Id of the last entry appended, confirmed or not."""
        return self._ledger.last_add_pushed

    @property
    def length_bytes(self) -> int:
        """Bytes of all confirmed entries."""
        return self._ledger.length_bytes

    @property
    def is_closed(self) -> bool:
        """Nothing will be added any more."""
        return self._ledger.record.is_closed

    def append(self, data: bytes) -> int:
        """Queue one entry; returns its id.

        # Hot path: benchmarks/micro_storage.py, append
        """
        ledger = self._ledger
        cost = len(data) + ENTRY_OVERHEAD_BYTES
        gate = self._gate
        if ledger.refusal is not None or gate.room_bytes < cost:
            raise ledger.refusal or gate.refusal()
        gate.room_bytes -= cost
        pending = ledger.pending
        if not pending:
            self._journal.enqueue(ledger)
        pending.append(data)
        ledger.last_add_pushed = entry_id = ledger.last_add_pushed + 1
        return entry_id

    def read_cached(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes] | None:
        """What `read` would return, if it is in memory now; else None."""
        ledger_id = self.ledger_id
        cache, read_cache = self._owner.cache, self._owner.storage.read_cache
        last = min(last_entry_id, self._ledger.last_add_confirmed)
        chosen: list[EntryBytes] = []
        entry_id = first_entry_id
        while entry_id <= last and not self._ledger.record.is_deleted:
            found = cache.find(ledger_id, entry_id) or read_cache.find(ledger_id, entry_id)
            if found is None:
                break
            entries, place = found
            available = min(last - entry_id + 1, len(entries) - place)
            part = cut(entries, place, available, max_bytes)
            if not chosen and len(part) >= ENOUGH_ENTRIES:
                return part
            size_bytes = sum(map(len, part))
            if chosen and size_bytes > max_bytes:
                break
            chosen += part
            max_bytes -= size_bytes
            entry_id += len(part)
            if len(part) < available or max_bytes <= 0:
                break
        return chosen or None

    async def read(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes]:
        """Entries from `first_entry_id`, in order: at least one, then while `max_bytes` allow."""
        check_exists(self._ledger)
        last = min(last_entry_id, self._ledger.last_add_confirmed)
        if not 0 <= first_entry_id <= last:
            raise EntryNotFoundError(
                f"ledger {self.ledger_id}: no entry {first_entry_id} to {last_entry_id}, "
                f"the last confirmed one is {self._ledger.last_add_confirmed}"
            )
        cached = self.read_cached(first_entry_id, last, max_bytes)
        if cached is not None:
            return cached
        storage = self._owner.storage
        ahead_bytes = storage.settings.read_ahead_bytes if last > first_entry_id else 0
        try:
            entries, place = await storage.load(self.ledger_id, first_entry_id, ahead_bytes)
        except CorruptDataError:
            check_exists(self._ledger)
            raise
        return cut(entries, place, last - first_entry_id + 1, max_bytes)

    async def close(self) -> None:
        """Release the handle; the writer's ends the ledger at its last confirmed entry."""
        if self._is_writer:
            self._is_writer = False
            if self._ledger.refusal is None:
                self._ledger.refusal = LedgerClosedError(f"ledger {self.ledger_id} is closed")
            await self._owner.close_ledger(self._ledger, is_fenced=False)
