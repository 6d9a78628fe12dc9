"""`SimulatedLedgerStore`: ledgers in memory that can be made to fail, wait or get fenced.

It serves tests of managed ledgers and topics. Confirmations come on the loop's next turn, a group
at a time, or when the test releases them (`is_holding`, `release`). To restart, a test opens new
managed ledgers on the same store, which recover the ledgers and thereby fence the old writers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import (
    EntryNotFoundError,
    EntryTooBigError,
    LedgerClosedError,
    LedgerFencedError,
    LedgerNotFoundError,
    StorageError,
    StoreBusyError,
)
from pulsar_py.ledgers.store import (
    LedgerInfo,
    LedgerListener,
    LedgerOptions,
    LedgerReader,
    LedgerStore,
    LedgerWriter,
    LentEntry,
    StoreLimits,
)

LIMITS = StoreLimits(
    max_entry_bytes=16 * 1024 * 1024,
    max_pinned_bytes=1024 * 1024 * 1024,
    answer_timeout_seconds=60.0,
)
"""The default limits of a store."""


@dataclass(slots=True)
class _Ledger:
    """One ledger's entries; those after the last confirmed one may be lost by a recovery."""

    ledger_id: int
    options: LedgerOptions
    entries: list[bytes] = field(default_factory=list)
    last_confirmed: int = -1
    is_closed: bool = False
    is_fenced: bool = False


class _Reader(LedgerReader):
    def __init__(self, store: SimulatedLedgerStore, ledger: _Ledger) -> None:
        self.ledger_id = ledger.ledger_id
        self._store = store
        self._ledger = ledger

    @property
    def last_add_confirmed(self) -> int:
        return self._ledger.last_confirmed

    @property
    def length_bytes(self) -> int:
        return sum(map(len, self._ledger.entries[: self._ledger.last_confirmed + 1]))

    @property
    def is_closed(self) -> bool:
        return self._ledger.is_closed

    def read_cached(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes] | None:
        if self._store.is_cold or first_entry_id > self._ledger.last_confirmed:
            return None
        return self._run(first_entry_id, last_entry_id, max_bytes)

    def _run(self, first: int, last: int, max_bytes: int) -> list[bytes]:
        found: list[bytes] = []
        for data in self._ledger.entries[first : min(last, self._ledger.last_confirmed) + 1]:
            max_bytes -= len(data)
            if max_bytes < 0 and found:
                break
            found.append(data)
        return found

    async def read_last_add_confirmed(self) -> int:
        await asyncio.sleep(0)
        if self.ledger_id not in self._store.ledgers:
            raise LedgerNotFoundError(f"ledger {self.ledger_id} was deleted")
        return self._ledger.last_confirmed

    async def read(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes]:
        await asyncio.sleep(0)
        self._store.reads_count += 1
        if self.ledger_id not in self._store.ledgers:
            raise LedgerNotFoundError(f"ledger {self.ledger_id} was deleted")
        if first_entry_id > self._ledger.last_confirmed:
            raise EntryNotFoundError(f"ledger {self.ledger_id} has no entry {first_entry_id}")
        return self._run(first_entry_id, last_entry_id, max_bytes)

    async def close(self) -> None:
        await asyncio.sleep(0)


class _Writer(_Reader, LedgerWriter):
    def __init__(
        self, store: SimulatedLedgerStore, ledger: _Ledger, listener: LedgerListener
    ) -> None:
        super().__init__(store, ledger)
        self.listener = listener
        self.error: StorageError | None = None  # what it failed with
        self._is_announcing = False
        self._pending_bytes = 0  # of entries that are not answered

    @property
    def last_add_pushed(self) -> int:
        return len(self._ledger.entries) - 1

    def append(self, data: LentEntry) -> int:
        store = self._store
        if self._ledger.is_fenced:
            raise LedgerFencedError(f"ledger {self.ledger_id} is fenced")
        if self._ledger.is_closed:
            raise LedgerClosedError(f"ledger {self.ledger_id} is closed")
        if self.error is not None:
            raise StorageError(f"ledger {self.ledger_id} has failed")
        if store.append_error is not None:
            raise store.append_error
        if self.ledger_id not in store.ledgers:
            raise LedgerNotFoundError(f"ledger {self.ledger_id} was deleted")
        data = b"".join(data) if isinstance(data, tuple) else bytes(data)
        if len(data) > store.limits.max_entry_bytes:
            raise EntryTooBigError(
                f"an entry of {len(data)} bytes, the largest is {store.limits.max_entry_bytes}"
            )
        store.take_pending(len(data))
        self._pending_bytes += len(data)
        self._ledger.entries.append(data)
        if not store.is_holding:
            self.announce_soon()
        return len(self._ledger.entries) - 1

    def announce_soon(self) -> None:
        if not self._is_announcing:
            self._is_announcing = True
            asyncio.get_running_loop().call_soon(self._announce)

    def _announce(self) -> None:
        self._is_announcing = False
        ledger = self._ledger
        if self.error is None and ledger.is_fenced:
            self.fail(LedgerFencedError(f"ledger {self.ledger_id} is fenced"))
        if self.error is not None or self._store.is_holding or ledger.is_closed:
            return
        ledger.last_confirmed = len(ledger.entries) - 1
        self._answer_pending()
        self.listener.on_confirmed(self.ledger_id, ledger.last_confirmed)

    def fail(self, error: StorageError) -> None:
        if self.error is None:
            self.error = error
            self._answer_pending()
            self.listener.on_failed(self.ledger_id, error)

    def _answer_pending(self) -> None:
        self._store.pending_bytes -= self._pending_bytes
        self._pending_bytes = 0

    async def close(self) -> None:
        ledger = self._ledger
        if self._store.close_error is not None:
            await asyncio.sleep(0)
            raise self._store.close_error
        if ledger.is_fenced:
            raise LedgerFencedError(f"ledger {self.ledger_id} is fenced")
        if self.ledger_id not in self._store.ledgers:
            raise LedgerNotFoundError(f"ledger {self.ledger_id} was deleted")
        if not ledger.is_closed:
            ledger.is_closed = True
            if self.last_add_pushed > ledger.last_confirmed:
                del ledger.entries[ledger.last_confirmed + 1 :]
                self.fail(LedgerClosedError(f"ledger {self.ledger_id} is closed"))
        await asyncio.sleep(0)


class SimulatedLedgerStore(LedgerStore):
    """A LedgerStore in memory with switches for faults; set the attributes at any time."""

    def __init__(self, limits: StoreLimits = LIMITS) -> None:
        self.limits = limits
        self.pending_bytes = 0  # of appends that are not answered
        self.ledgers: dict[int, _Ledger] = {}
        self.is_holding = False  # appends are not confirmed
        self.is_cold = False  # nothing is in memory: every read has to wait
        self.create_error: StorageError | None = None  # creating fails
        self.append_error: StorageError | None = None  # appending fails, without harm to the ledger
        self.close_error: StorageError | None = None  # closing a writer fails
        self.delete_error: StorageError | None = None  # deleting fails
        self.creations_may_proceed: asyncio.Event | None = None  # creating waits for it
        self.reads_count = 0  # awaited reads
        self._writers: list[_Writer] = []
        self._next_ledger_id = 3

    def take_pending(self, size_bytes: int) -> None:
        """Count an entry that waits for its answer.

        Raises:
            StoreBusyError: `max_pinned_bytes` are exceeded.
        """
        if self.pending_bytes + size_bytes > self.limits.max_pinned_bytes:
            raise StoreBusyError(
                f"{self.pending_bytes} of {self.limits.max_pinned_bytes} bytes wait"
            )
        self.pending_bytes += size_bytes

    def release(self) -> None:
        """Stop holding, and confirm the held entries."""
        self.is_holding = False
        for writer in self._writers:
            if writer.last_add_pushed > writer.last_add_confirmed:
                writer.announce_soon()

    def fail_writers(self, error: StorageError, *, stored_count: int = 0) -> None:
        """Let all open writers fail; the first `stored_count` unconfirmed entries were stored."""
        for writer in self._writers:
            ledger = self.ledgers.get(writer.ledger_id)
            if ledger is not None and not ledger.is_closed and writer.error is None:
                del ledger.entries[ledger.last_confirmed + 1 + stored_count :]
                writer.fail(error)

    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        """A new ledger."""
        await asyncio.sleep(0)
        if self.creations_may_proceed is not None:
            await self.creations_may_proceed.wait()
        if self.create_error is not None:
            raise self.create_error
        ledger = _Ledger(self._next_ledger_id, options)
        self._next_ledger_id += 1
        self.ledgers[ledger.ledger_id] = ledger
        writer = _Writer(self, ledger, listener)
        self._writers.append(writer)
        return writer

    def _existing(self, ledger_id: int, password: bytes | None = None) -> _Ledger:
        ledger = self.ledgers.get(ledger_id)
        if ledger is None:
            raise LedgerNotFoundError(f"no ledger {ledger_id}")
        if password is not None and password != ledger.options.password:
            raise StorageError(f"ledger {ledger_id}: the password does not match")
        return ledger

    async def open(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Open for reading."""
        await asyncio.sleep(0)
        return _Reader(self, self._existing(ledger_id, password))

    async def recover(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Fence the writer, close the ledger after its last stored entry, and open it."""
        await asyncio.sleep(0)
        ledger = self._existing(ledger_id, password)
        if not ledger.is_closed:
            ledger.is_fenced = ledger.is_closed = True
            ledger.last_confirmed = len(ledger.entries) - 1
        return _Reader(self, ledger)

    async def delete(self, ledger_id: int) -> None:
        """Delete for good."""
        await asyncio.sleep(0)
        if self.delete_error is not None:
            raise self.delete_error
        self.ledgers.pop(ledger_id, None)

    async def list_ledgers(self) -> AsyncIterator[Sequence[int]]:
        """All ids, in pages of a hundred."""
        ledger_ids = sorted(self.ledgers)
        for start in range(0, len(ledger_ids), 100):
            await asyncio.sleep(0)
            yield ledger_ids[start : start + 100]

    async def custom_metadata(self, ledger_id: int) -> Mapping[str, bytes]:
        """A ledger's labels."""
        return self._existing(ledger_id).options.custom_metadata

    async def info(self, ledger_id: int) -> LedgerInfo:
        """One ledger's state."""
        ledger = self._existing(ledger_id)
        reader = _Reader(self, ledger)
        return LedgerInfo(
            ledger_id=ledger_id,
            is_closed=ledger.is_closed,
            last_entry_id=reader.last_add_confirmed if ledger.is_closed else None,
            length_bytes=reader.length_bytes if ledger.is_closed else None,
            custom_metadata=ledger.options.custom_metadata,
        )

    async def close(self) -> None:
        """Nothing to release."""
