"""`CursorReading`: reads a cursor's entries, from memory or from storage (edge).

`CursorState` decides which run of neighbouring entries comes next; it is taken from the read-ahead
or the caches, or fetched. Runs are returned whole: only in ledgers with individual acknowledgements
are entries checked one by one.

What always holds: the read position moves only past entries that were returned or are acknowledged.
A read during which the cursor was moved has no effect.

Source: asyncReadEntries, asyncReplayEntries in ManagedCursorImpl.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from pulsar_py.common.errors import (
    CorruptDataError,
    CursorClosedError,
    EntryNotFoundError,
    LedgerNotFoundError,
    StorageError,
)
from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.cursors.state import CursorState, ReadRun
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.log.entry_cache import EntryCacheManager
from pulsar_py.managed_ledger.log.ledger_reading import LedgerReading
from pulsar_py.managed_ledger.log.read_ahead import ReadAhead

logger = logging.getLogger(__name__)

_AHEAD_ENTRIES = 100_000  # the most entries of one read-ahead; usually its bytes end it before
_REPLAY_BYTES = 5 * 1024 * 1024  # the most bytes that one read of a replay fetches


class ReadingOwner(Protocol):
    """The part of the ManagedLedger that reading uses."""

    name: str
    config: ManagedLedgerConfig
    cache_manager: EntryCacheManager
    reading: LedgerReading  # where runs of entries come from


class CursorReading:
    """The reads of one cursor. Owned by it."""

    def __init__(
        self,
        name: str,
        owner: ReadingOwner,
        state: CursorState,
        on_lost: Callable[[list[Position]], object],
        load: Callable[[int], Awaitable[None]],
    ) -> None:
        """`on_lost` acknowledges entries that can't be read any more.

        `load` reads one ledger's acknowledgements into memory, if it is cold.
        """
        self._name = name
        self._owner = owner
        self._ledger = owner.reading
        self._state = state
        self._on_lost = on_lost
        self._load = load
        self._ahead = ReadAhead(owner.cache_manager)
        self._is_closed = False
        self.reads_count = 0  # under way
        self.replay_reads_count = 0  # those of `read_replay`

    def read_cached(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry] | None:
        """The next unacknowledged entries up to `max_position`, if they are in memory.

        Moves `read_position` past them. They are of one ledger, and at least one whatever
        `max_bytes`; there may be more to read. `[]` means that there is nothing to read now, None
        that `read` has to be awaited. Hot path: tailing consume.
        """
        self._raise_if_closed()
        state = self._state
        while (run := state.next_run(max_entries, max_position)) is not None:
            if run.is_cold:
                return None
            entries: Sequence[Entry] | None = self._ahead.take(
                run.ledger_id, run.first, run.last, max_bytes
            )
            if entries is None:
                entries = self._ledger.run_cached(run.ledger_id, run.first, run.last, max_bytes)
            if entries is None:
                return None
            state.read_through(run.ledger_id, run.first + len(entries) - 1)
            if run.has_acknowledged:
                entries = self._unacknowledged(run, entries)
            if entries:
                return entries
        return []

    def _unacknowledged(self, run: ReadRun, entries: Sequence[Entry]) -> list[Entry]:
        waiting = self._state.individual_deleted_messages.missing_in(
            run.ledger_id, run.first, run.first + len(entries) - 1
        )
        return [entries[entry_id - run.first] for entry_id in waiting]

    async def read(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry]:
        """As `read_cached`, but reads from storage if need be. One call at a time.

        If the cursor is rewound, moved or reset meanwhile, the result is empty.

        Raises:
            CursorClosedError: The cursor was closed.
            StorageError: An entry can't be read.
        """
        assert not self.reads_count, "one read at a time"
        self.reads_count += 1
        try:
            while True:
                found = self.read_cached(max_entries, max_bytes, max_position)
                if found is not None:
                    return found
                if not await self._fetch(max_entries, max_bytes, max_position):
                    return []
        finally:
            self.reads_count -= 1

    async def _fetch(self, max_entries: int, max_bytes: int, max_position: Position) -> bool:
        """Read the next run into `_ahead`; False if the cursor was moved meanwhile."""
        state = self._state
        config = self._owner.config
        run = state.next_run(max_entries, max_position)
        assert run is not None, "there was something to read"
        if run.is_cold:
            await self._load(run.ledger_id)
            return True
        last = run.last
        if config.read_ahead_bytes > max_bytes:
            record = state.ledgers.ledgers[run.ledger_id]
            last = max(last, min(record.entries_count - 1, run.first + _AHEAD_ENTRIES))
            max_bytes = config.read_ahead_bytes
        generation = state.read_generation
        try:
            entries = await self._ledger.run(run.ledger_id, run.first, last, max_bytes)
        except (LedgerNotFoundError, EntryNotFoundError, CorruptDataError) as error:
            if state.read_generation != generation or run.ledger_id not in state.ledgers.ledgers:
                return False
            if not config.skips_non_recoverable_data:
                raise
            self._skip_lost(run, error)
            return True
        self._raise_if_closed()
        if state.read_generation != generation:
            return False
        self._ahead.keep_at_least(entries, max_entries)
        return True

    def _skip_lost(self, run: ReadRun, error: StorageError) -> None:
        """Acknowledge lost entries: one, or the rest of the ledger if that is lost.

        Only with `skips_non_recoverable_data`; else the subscription would fail at them for ever.
        """
        last = run.first
        if isinstance(error, LedgerNotFoundError):
            last = self._state.ledgers.ledgers[run.ledger_id].entries_count - 1
        logger.error(
            "lost entries skipped",
            extra={
                "topic": self._owner.name,
                "cursor": self._name,
                "ledger_id": run.ledger_id,
                "first_entry_id": run.first,
                "last_entry_id": last,
                "error": str(error),
            },
        )
        lost = [Position(run.ledger_id, entry_id) for entry_id in range(run.first, last + 1)]
        self._on_lost(lost)

    def read_replay_cached(self, positions: Sequence[Position]) -> list[Entry] | None:
        """The entries at `positions` that exist and are not acknowledged, if they are in memory.

        In the order of `positions`; entries missing in the result are acknowledged or deleted.
        """
        self._raise_if_closed()
        if self._cold_ones(positions):
            return None
        found: list[Entry] = []
        for ledger_id, first, last in self._replay_runs(positions):
            following = first
            while following <= last:
                entries = self._ledger.run_cached(ledger_id, following, last, _REPLAY_BYTES)
                if entries is None:
                    return None
                found += entries
                following += len(entries)
        return found

    async def read_replay(self, positions: Sequence[Position]) -> list[Entry]:
        """As `read_replay_cached`, but reads from storage if need be.

        Raises:
            CursorClosedError: The cursor was closed.
            StorageError: An entry can't be read.
        """
        self._raise_if_closed()
        self.replay_reads_count += 1
        try:
            return await self._read_replay(positions)
        finally:
            self.replay_reads_count -= 1

    async def _read_replay(self, positions: Sequence[Position]) -> list[Entry]:
        for ledger_id in self._cold_ones(positions):
            await self._load(ledger_id)
        found: list[Entry] = []
        for ledger_id, first, last in self._replay_runs(positions):
            following = first
            while following <= last:
                entries = await self._read_replay_run(ledger_id, following, last)
                self._raise_if_closed()
                found += entries
                following += max(1, len(entries))
        return [entry for entry in found if not self._state.is_acknowledged(entry.position)]

    async def _read_replay_run(self, ledger_id: int, first: int, last: int) -> Sequence[Entry]:
        entries = self._ledger.run_cached(ledger_id, first, last, _REPLAY_BYTES)
        if entries is not None:
            return entries
        try:
            return await self._ledger.run(ledger_id, first, last, _REPLAY_BYTES)
        except (LedgerNotFoundError, EntryNotFoundError, CorruptDataError) as error:
            if ledger_id in self._state.ledgers.ledgers:
                if not self._owner.config.skips_non_recoverable_data:
                    raise
                self._skip_lost(ReadRun(ledger_id, first, first, has_acknowledged=True), error)
            return []

    def _cold_ones(self, positions: Sequence[Position]) -> set[int]:
        cold = self._state.pages.cold
        return {position[0] for position in positions if position[0] in cold} if cold else set()

    def _replay_runs(self, positions: Sequence[Position]) -> list[tuple[int, int, int]]:
        """Runs of the positions that exist unacknowledged, as (ledger id, first, last entry id)."""
        state = self._state
        runs: list[tuple[int, int, int]] = []
        for position in positions:
            if state.is_acknowledged(position) or not state.ledgers.contains(position):
                continue
            if runs and runs[-1][0] == position[0] and runs[-1][2] + 1 == position[1]:
                runs[-1] = (position[0], runs[-1][1], position[1])
            else:
                runs.append((position[0], position[1], position[1]))
        return runs

    def forget_ahead(self) -> None:
        """Drop the read-ahead: the cursor was moved."""
        self._ahead.clear()

    def close(self) -> None:
        """Fail all reads from now on."""
        self._is_closed = True
        self._state.read_generation += 1
        self._ahead.clear()

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise CursorClosedError(f"{self._name}: the cursor is closed")
