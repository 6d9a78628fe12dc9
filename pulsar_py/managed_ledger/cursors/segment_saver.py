"""`CursorSegmentSaver`: writes and loads the segments of one large cursor (edge).

A save appends the pages that changed, some at a time so that the loop is not blocked, and then the
marker. A new cursor ledger gets all pages: those in memory are encoded, cold ones copied as they
are stored. The caller holds the cursor's lock during every call that awaits.

A page whose batches are larger than an entry may be is written without the highest of them; those
are counted, and their ledger stays in memory.

What always holds: a page is taken off the list of changed ones only by a write, and put back if
that fails. After a failed write the next one begins a new cursor ledger, because the store's `refs`
may already name segments that were never confirmed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from pulsar_py.common.errors import CorruptDataError, StorageError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors import paging
from pulsar_py.managed_ledger.cursors.memory import CursorMemory
from pulsar_py.managed_ledger.cursors.segments import (
    MAX_SEGMENT_BYTES,
    SegmentKey,
    SegmentKind,
    SegmentRef,
    StoredSegment,
    encode_marker,
    encode_segment,
    encode_stored,
    live_refs,
    segment_keys,
)
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.managed_ledger.cursors.store import CursorStore, OnWritten
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig

logger = logging.getLogger(__name__)

OnLoaded = Callable[[Position, list[Position]], None]
"""Called after a cold ledger was loaded, with the mark-delete position before it, and the batches
that turned out to be acknowledged as a whole."""


def ignore_loaded(before: Position, finished: list[Position]) -> None:
    """Do nothing: an `OnLoaded` for owners that need no callback."""


_SLICE = 16  # pages that are encoded without a pause: below a millisecond
_SLICE_BYTES = 1 << 20  # of batches in them
_MARGIN_BYTES = 16 * 1024  # of a segment, for its other fields beside the bit sets


class CursorSegmentSaver:
    """The segments of one cursor. Owned by its CursorPersister."""

    def __init__(
        self,
        name: str,
        state: CursorState,
        store: CursorStore,
        memory: CursorMemory,
        clock: Clock,
        *,
        on_loaded: OnLoaded,
    ) -> None:
        self._name = name
        self._state = state
        self._store = store
        self._memory = memory
        self._clock = clock
        self._on_loaded = on_loaded
        self._writes_count = 0  # under way: nothing may leave memory
        self._used: set[int] = set()  # ledgers written or loaded since the last `tell_memory`
        self._left_out: dict[SegmentKey, int] = {}  # batches for which a segment had no room

    # Saving

    def try_save(self, config: ManagedLedgerConfig, on_written: OnWritten) -> bool:
        """Append the changed pages if they are few and a cursor ledger takes them; else False."""
        self._take_up_left_out()
        dirty = self._state.pages.dirty
        if dirty is None or len(dirty) > _SLICE or not self._store.can_append(config):
            return False
        keys = sorted(SegmentKey(*key) for key in dirty)
        if any(key.ledger_id in self._state.pages.cold for key in keys):
            return False
        if len(self._first_slice(keys)) < len(keys):
            return False
        entries, refs = self._encoded(keys, self._store.last_entry_id + 1)
        live = live_refs(refs, self._state.mark_delete_position)
        entries.append(encode_marker(self._state, live))

        def on_appended(error: Exception | None) -> None:
            self._ended(keys, error)
            on_written(error)

        if not self._store.try_append(entries, config, on_appended):
            return False
        self._taken(keys)
        self._store.refs = live
        return True

    def _encoded(
        self, keys: Sequence[SegmentKey], entry_id: int
    ) -> tuple[list[bytes], dict[SegmentKey, SegmentRef]]:
        """Entries of these pages, to be appended from `entry_id` on, and all refs after that."""
        entries: list[bytes] = []
        refs = dict(self._store.refs)
        for key in keys:
            encoded = self._encode(key)
            if encoded is None:
                refs.pop(key, None)
                continue
            refs[key] = encoded[1]._replace(entry_id=entry_id + len(entries))
            entries.append(encoded[0])
        return entries, refs

    def _encode(self, key: SegmentKey) -> tuple[bytes, SegmentRef] | None:
        """One page's entry and ref; the batches for which it has no room are counted."""
        encoded = encode_segment(self._state, key, MAX_SEGMENT_BYTES)
        self._left_out.pop(key, None)
        if encoded is not None and key.kind == SegmentKind.BATCHES:
            batches = self._state.batch_deleted_indexes
            left_out = batches.page_entries_count((key.ledger_id, key.page))
            left_out -= encoded[1].entries_count
            if left_out:
                self._left_out[key] = left_out
        return encoded

    def _take_up_left_out(self) -> None:
        """Mark pages as changed whose left-out batches may have room by now."""
        batches, dirty = self._state.batch_deleted_indexes, self._state.pages.dirty
        for key in self._left_out:
            size_bytes = batches.page_size_bytes((key.ledger_id, key.page))
            if dirty is not None and size_bytes <= MAX_SEGMENT_BYTES - _MARGIN_BYTES:
                dirty.add(key)

    @property
    def left_out_count(self) -> int:
        """Batches that are still needed and for which the segments had no room."""
        if self._left_out:
            mark_delete = self._state.mark_delete_position
            self._left_out = {
                key: count
                for key, count in self._left_out.items()
                if key.last_position > mark_delete
            }
        return sum(self._left_out.values())

    def _first_slice(self, keys: Sequence[SegmentKey]) -> Sequence[SegmentKey]:
        """The first pages, as many as may be encoded without blocking the loop; at least one."""
        batches = self._state.batch_deleted_indexes
        size_bytes = 0
        for place, key in enumerate(keys[:_SLICE]):
            if key.kind == SegmentKind.BATCHES:
                size_bytes += batches.page_size_bytes((key.ledger_id, key.page))
            if size_bytes > _SLICE_BYTES and place:
                return keys[:place]
        return keys[:_SLICE]

    def _taken(self, keys: Sequence[SegmentKey]) -> None:
        dirty = self._state.pages.dirty
        assert dirty is not None
        dirty.difference_update(keys)
        self._used.update(key.ledger_id for key in keys)
        self._writes_count += 1

    def _ended(self, keys: Sequence[SegmentKey], error: Exception | None) -> None:
        self._writes_count -= 1
        if error is not None:
            self._state.pages.put_back(keys)

    async def save(self, config: ManagedLedgerConfig) -> None:
        """Write the changed pages, or all pages to a new cursor ledger.

        Raises:
            StorageError, MetadataError, ManagedLedgerFencedError: The state may not be durable.
        """
        state, store = self._state, self._store
        if not state.pages.is_tracking:
            store.refs = {}
            paging.track_pages(state)
            await asyncio.sleep(0)  # finding all pages took a millisecond: don't block the loop
        await self.load_wanted(config)
        taken: list[SegmentKey] = []
        self._writes_count += 1
        error: Exception | None = StorageError("cut off")
        try:
            if not await self._append_changes(config, taken):
                taken += self._take_all()
                await store.switch_ledger(state, config, lambda: self._write_all(config))
            error = None
        finally:
            self._ended(taken, error)

    async def _append_changes(self, config: ManagedLedgerConfig, taken: list[SegmentKey]) -> bool:
        """Append the pages that changed and a marker; False if no ledger takes them."""
        state, store = self._state, self._store
        self._take_up_left_out()
        dirty = state.pages.dirty
        assert dirty is not None
        waiting = sorted(SegmentKey(*key) for key in dirty)
        while store.can_append(config):
            keys = self._first_slice(waiting)
            waiting = waiting[len(keys) :]
            entries, refs = self._encoded(keys, store.last_entry_id + 1)
            if not waiting:
                refs = live_refs(refs, state.mark_delete_position)
                entries.append(encode_marker(state, refs))
            taken += keys
            dirty.difference_update(keys)
            self._used.update(key.ledger_id for key in keys)
            writing = store.append_and_wait(entries, config)
            before, store.refs = store.refs, refs
            if not await writing:
                store.refs = before
                return False
            if not waiting:
                return True
        return False

    def _take_all(self) -> list[SegmentKey]:
        """All pages, taken off the list of changed ones, for a new ledger."""
        dirty = self._state.pages.dirty
        assert dirty is not None
        keys = [SegmentKey(*key) for key in dirty]
        dirty.clear()
        return keys

    async def _write_all(self, config: ManagedLedgerConfig) -> dict[SegmentKey, SegmentRef]:
        """Append every page and a marker to a new cursor ledger."""
        state, store = self._state, self._store
        cold = [key for key in store.refs if key.ledger_id in state.pages.cold]
        waiting = sorted({*segment_keys(state), *cold})
        refs: dict[SegmentKey, SegmentRef] = {}
        while waiting:
            keys = self._first_slice(waiting)
            waiting = waiting[len(keys) :]
            entries: list[bytes] = []
            for key, entry, ref in await self._all_entries(keys, config):
                refs[key] = ref._replace(entry_id=store.last_entry_id + 1 + len(entries))
                entries.append(entry)
                self._used.add(key.ledger_id)
            if entries:
                await store.append_new(entries)
        refs = live_refs(refs, state.mark_delete_position)
        await store.append_new([encode_marker(state, refs)])
        return refs

    async def _all_entries(
        self, keys: Sequence[SegmentKey], config: ManagedLedgerConfig
    ) -> list[tuple[SegmentKey, bytes, SegmentRef]]:
        """The entries of pages: encoded from memory, or for cold ledgers copied from storage."""
        state, refs = self._state, self._store.refs
        found: list[tuple[SegmentKey, bytes, SegmentRef]] = []
        stored = [key for key in keys if key.ledger_id in state.pages.cold and key in refs]
        if stored:
            for segment in await self._store.read_segments(stored, config):
                entry = encode_stored(state, segment)
                found.append((segment.key, entry, refs[segment.key]))
        for key in keys:
            encoded = None if key in stored else self._encode(key)
            if encoded is not None:
                found.append((key, *encoded))
        return found

    # Memory

    async def load_wanted(self, config: ManagedLedgerConfig) -> None:
        """Load the cold ledgers that are wanted.

        Raises:
            StorageError: They can't be read now.
        """
        pages = self._state.pages
        while pages.wanted:
            await self.load(min(pages.wanted), config)

    async def load(self, ledger_id: int, config: ManagedLedgerConfig) -> None:
        """Load one cold ledger. Corrupt acknowledgements are dropped: their messages come again.

        Raises:
            StorageError: It can't be read now.
        """
        if ledger_id not in self._state.pages.cold:
            return
        keys = sorted(key for key in self._store.refs if key.ledger_id == ledger_id)
        segments: list[StoredSegment] = []
        for start in range(0, len(keys), _SLICE):
            try:
                segments += await self._store.read_segments(keys[start : start + _SLICE], config)
            except CorruptDataError as error:
                logger.exception(
                    "acknowledgements lost",
                    extra={"cursor": self._name, "ledger_id": ledger_id, "error": str(error)},
                )
        before = self._state.mark_delete_position
        finished = paging.load(self._state, ledger_id, segments, self._clock.monotonic_seconds())
        self._on_loaded(before, finished)
        self._used.add(ledger_id)
        self.tell_memory()

    async def load_all(self, config: ManagedLedgerConfig) -> None:
        """Load all cold ledgers, and evict none meanwhile.

        Raises:
            StorageError: They can't be read now.
        """
        self._writes_count += 1
        try:
            for ledger_id in list(self._state.pages.cold):
                await self.load(ledger_id, config)
        finally:
            self._writes_count -= 1

    def tell_memory(self) -> None:
        """Report the memory in use, and evict what exceeds the limit."""
        used, self._used = self._used, set()
        if not used:
            return
        sizes = dict.fromkeys(used, 0)
        for key, ref in self._store.refs.items():
            if key.ledger_id in sizes:
                sizes[key.ledger_id] += ref.size_bytes
        for ledger_id, size_bytes in sizes.items():
            self._memory.touch(self, ledger_id, size_bytes)
        self._memory.make_room()

    def restored(self) -> None:
        """Count the memory of a state that was just read from storage."""
        cold = self._state.pages.cold
        self._used = {key.ledger_id for key in self._store.refs if key.ledger_id not in cold}
        self.tell_memory()

    def evict(self, ledger_id: int) -> bool:
        """Drop a ledger's stored acknowledgements from memory; False if they have to stay now."""
        state = self._state
        if self._writes_count or ledger_id in self._used or not state.pages.is_tracking:
            return not state.pages.is_tracking
        if state.pages.cold.get(ledger_id) is not None:
            return True
        if any(key.ledger_id == ledger_id for key in self._left_out):
            return False  # some of its batches are not stored
        if not paging.may_leave_memory(state, ledger_id):
            return False
        paging.leave_memory(state, ledger_id)
        return True

    def close(self) -> None:
        """Stop counting the memory of this cursor's ledgers."""
        self._memory.forget(self)
