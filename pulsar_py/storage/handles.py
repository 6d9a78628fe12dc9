"""`BookieLedger`: the reader or the writer of a ledger of the embedded store.

A handle works on the shared `Ledger` and the caches; everything that awaits is done by the Bookie
and its LedgerStorage. The writer's `append` is the most frequent call of the engine: it compares,
counts and adds to a list. Large entries that stay in the caller's memory (`lent`) take more steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import (
    CorruptDataError,
    EntryNotFoundError,
    EntryTooBigError,
    StorageError,
)
from pulsar_py.ledgers.store import LedgerWriter, LentEntry, StoreLimits
from pulsar_py.storage.entry_logs.ledger_storage import LedgerStorage
from pulsar_py.storage.journal.journal import Journal
from pulsar_py.storage.shared.ledgers import ENTRY_OVERHEAD_BYTES, Ledger, check_exists
from pulsar_py.storage.shared.lent import taken
from pulsar_py.storage.shared.write_cache import AppendGate, WriteCache, cut

ENOUGH_ENTRIES = 32
"""A part of one cached run with at least this many entries is returned by itself, as a slice of the
run; a smaller part is joined with the entries of the next run."""


class HandleOwner(Protocol):
    """The part of the Bookie that a handle needs."""

    journal: Journal
    cache: WriteCache
    gate: AppendGate
    storage: LedgerStorage
    limits: StoreLimits

    async def close_ledger(self, ledger: Ledger) -> None:
        """End the writer's ledger at its last confirmed entry, durably."""

    def in_time(self, ledger_id: int) -> AbstractAsyncContextManager[None]:
        """A context that raises StoreUnavailableError after `answer_timeout_seconds`."""


class BookieLedger(LedgerWriter):
    """A handle on one ledger; readers get it as a `LedgerReader`."""

    def __init__(self, owner: HandleOwner, ledger: Ledger, *, is_writer: bool) -> None:
        self.ledger_id = ledger.ledger_id
        self._owner = owner
        self._ledger = ledger
        self._gate = owner.gate
        self._journal = owner.journal
        self._max_cost = owner.limits.max_entry_bytes + ENTRY_OVERHEAD_BYTES
        self._is_writer = is_writer

    @property
    def last_add_confirmed(self) -> int:
        """Id of the last readable entry, -1 when there is none."""
        return self._ledger.last_add_confirmed

    async def read_last_add_confirmed(self) -> int:
        """The same as `last_add_confirmed`: all handles share one `Ledger`."""
        check_exists(self._ledger)
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
        """Whether nothing will be added any more."""
        return self._ledger.record.is_closed

    def append(self, data: LentEntry) -> int:
        """Queue one entry; returns its id."""
        # Hot path: benchmarks/micro_storage.py, append
        if type(data) is not bytes:
            return self._append_lent(data)
        ledger = self._ledger
        cost = len(data) + ENTRY_OVERHEAD_BYTES
        gate = self._gate
        if ledger.refusal is not None or cost > self._max_cost or gate.room_bytes < cost:
            raise self._refusal(cost)
        gate.room_bytes -= cost
        pending = ledger.pending
        if not pending:
            self._journal.enqueue(ledger)
        pending.append(data)
        ledger.last_add_pushed = entry_id = ledger.last_add_pushed + 1
        return entry_id

    def append_run(self, entries: Sequence[bytes]) -> int:
        """Queue all entries of a run, or none where one of them needs a closer look."""
        # Hot path: publish-1k, once a run of SENDs.
        ledger, gate = self._ledger, self._gate
        cost = sum(map(len, entries)) + len(entries) * ENTRY_OVERHEAD_BYTES
        if ledger.refusal is not None or cost > self._max_cost or gate.room_bytes < cost:
            return 0
        gate.room_bytes -= cost
        if not ledger.pending:
            self._journal.enqueue(ledger)
        ledger.pending += entries
        ledger.last_add_pushed += len(entries)
        return len(entries)

    def _refusal(self, cost: int) -> StorageError:
        """The error that refuses an entry of that cost: the ledger's, its size, or the gate's."""
        refusal = self._ledger.refusal
        if refusal is not None:
            return type(refusal)(*refusal.args)
        if cost > self._max_cost:
            return EntryTooBigError(
                f"ledger {self.ledger_id}: an entry of {cost - ENTRY_OVERHEAD_BYTES} bytes, "
                f"the largest is {self._max_cost - ENTRY_OVERHEAD_BYTES}"
            )
        return self._gate.refusal()

    def _append_lent(self, data: LentEntry) -> int:
        """Queue an entry that is a view, or in pieces."""
        entry = taken(data)
        if isinstance(entry, bytes):
            return self.append(entry)
        ledger, gate = self._ledger, self._gate
        cost = entry.size_bytes + ENTRY_OVERHEAD_BYTES
        if ledger.refusal is not None or cost > self._max_cost:
            raise self._refusal(cost)
        pinned_bytes = gate.pins.add(entry)
        if gate.room_bytes < cost + pinned_bytes:
            gate.pins.remove(entry)
            raise gate.refusal()
        gate.give_back(-pinned_bytes)
        gate.room_bytes -= cost
        if not ledger.pending:
            self._journal.enqueue(ledger)
        ledger.pending.append(entry)
        ledger.lent_pending_count += 1
        ledger.last_add_pushed += 1
        return ledger.last_add_pushed

    def read_cached(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes] | None:
        """The entries that `read` would return, if they are in memory now; else None."""
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
            async with self._owner.in_time(self.ledger_id):
                entries, place = await storage.load(self.ledger_id, first_entry_id, ahead_bytes)
        except CorruptDataError:
            check_exists(self._ledger)
            raise
        return cut(entries, place, last - first_entry_id + 1, max_bytes)

    async def close(self) -> None:
        """Release the handle; the writer also ends the ledger at its last confirmed entry."""
        if self._is_writer:
            await self._owner.close_ledger(self._ledger)
            self._is_writer = False
