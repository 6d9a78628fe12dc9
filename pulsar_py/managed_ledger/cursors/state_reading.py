"""Reads the last whole state of a cursor from its cursor ledger (edge).

Entries are read from the end, many at a time. The newest state that can be decoded counts: one
entry, or the segments that a marker lists; the changes behind it are joined to it. Entries that are
damaged are skipped, at most `_READ_BACK_ENTRIES` of them. Of a large state only as many ledgers are
loaded as there is room for; the others are cold. `CursorStore` writes what is read here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import CorruptDataError, EntryNotFoundError, FormatVersionError
from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerReader
from pulsar_py.managed_ledger.cursors.format import CursorSnapshot
from pulsar_py.managed_ledger.cursors.pages import ColdLedger
from pulsar_py.managed_ledger.cursors.segments import (
    Marker,
    SegmentKey,
    SegmentKind,
    SegmentRef,
    StoredChanges,
    StoredSegment,
    add_segment,
    decode_entry,
    holes_key,
    live_refs,
    segment_keys,
)

logger = logging.getLogger(__name__)

_READ_BACK_ENTRIES = 100  # unreadable entries that are skipped on the way back to a whole state
_READ_BYTES = 512 * 1024  # of neighbouring entries at a time
_TAIL_ENTRIES = 16  # entries at the end of a cursor ledger that are read together
_MAX_TAIL_ENTRIES = 1024  # the same before a long row of changes; twice as many with each read


async def last_whole_state(
    reader: LedgerReader, room_bytes: int
) -> tuple[CursorSnapshot, dict[SegmentKey, SegmentRef]] | None:
    """The newest state that can be read, and what changed after it; None if none can be read."""
    unreadable_count = 0
    changes: list[CursorSnapshot] = []  # newest first
    tail = _Tail(reader)
    for entry_id in range(reader.last_add_confirmed, -1, -1):
        try:
            found = decode_entry(bytes(await tail.entry(entry_id)))
            if isinstance(found, StoredChanges):
                changes.append(found.snapshot)
            elif isinstance(found, CursorSnapshot):
                return _with_changes(found, changes), {}
            elif isinstance(found, Marker):
                snapshot, refs = await _load(reader, found, room_bytes)
                return _with_changes(snapshot, changes), refs
        except FormatVersionError:
            raise
        except (CorruptDataError, EntryNotFoundError) as error:
            logger.warning(
                "cursor state can't be read",
                extra={"ledger_id": reader.ledger_id, "entry_id": entry_id, "error": str(error)},
            )
            unreadable_count += 1
            if unreadable_count == _READ_BACK_ENTRIES:
                break
    return None


class _Tail:
    """Reads a ledger's entries from the end, more of them at a time the further it gets."""

    def __init__(self, reader: LedgerReader) -> None:
        self._reader = reader
        self._entries: dict[int, EntryBytes] = {}  # the last ones that were read together
        self._entries_count = _TAIL_ENTRIES

    async def entry(self, entry_id: int) -> EntryBytes:
        """The entry of that id.

        Raises:
            CorruptDataError, EntryNotFoundError: It can't be read.
        """
        if entry_id not in self._entries:
            self._entries = await _read_tail(self._reader, entry_id, self._entries_count)
            is_whole = len(self._entries) == min(self._entries_count, entry_id + 1)
            grown = min(self._entries_count * 2, _MAX_TAIL_ENTRIES)
            self._entries_count = grown if is_whole else _TAIL_ENTRIES
        return self._entries[entry_id]


def _with_changes(snapshot: CursorSnapshot, changes: Sequence[CursorSnapshot]) -> CursorSnapshot:
    """A state and the changes after it, of which the newest come first, joined."""
    if not changes:
        return snapshot
    newest = changes[0]
    addition = CursorSnapshot(newest.mark_delete_position, properties=newest.properties)
    for each in reversed(changes):
        addition.individual_deleted_messages.add_all(each.individual_deleted_messages)
        _merge_batches(addition, each)
    join_states(snapshot, addition)
    return snapshot


async def _read_tail(
    reader: LedgerReader, entry_id: int, entries_count: int
) -> dict[int, EntryBytes]:
    """An entry, and those before it, so many in all, if they can be read together with it.

    Raises:
        CorruptDataError, EntryNotFoundError: The entry itself can't be read.
    """
    first = max(entry_id + 1 - entries_count, 0)
    try:
        entries = await reader.read(first, entry_id, _READ_BYTES)
    except (CorruptDataError, EntryNotFoundError):
        entries = ()
    if first + len(entries) <= entry_id:  # too large together, or one of them is damaged
        first = entry_id
        entries = await reader.read(entry_id, entry_id, 1)
    return dict(enumerate(entries, first))


async def _load(
    reader: LedgerReader, marker: Marker, room_bytes: int
) -> tuple[CursorSnapshot, dict[SegmentKey, SegmentRef]]:
    """The state whose segments a marker lists; ledgers for which there is no room are cold."""
    snapshot = marker.snapshot
    snapshot.is_segmented = True
    refs = live_refs(marker.refs, snapshot.mark_delete_position)
    by_ledger: dict[int, dict[SegmentKey, SegmentRef]] = {}
    for key, ref in sorted(refs.items()):
        by_ledger.setdefault(key.ledger_id, {})[key] = ref
    for number, (ledger_id, parts) in enumerate(sorted(by_ledger.items())):
        room_bytes -= sum(ref.size_bytes for ref in parts.values())
        if room_bytes < 0 and number > 1:
            snapshot.cold[ledger_id] = _cold_ledger(parts.items())
            continue
        for segment in await read_stored_segments(reader, parts):
            for position in add_segment(snapshot, segment):
                snapshot.individual_deleted_messages.add(position)
    return snapshot, refs


def _cold_ledger(parts: Iterable[tuple[SegmentKey, SegmentRef]]) -> ColdLedger:
    """The counts of one ledger, summed up from its segments' refs."""
    entries_count = ranges_count = batches_count = 0
    for key, ref in parts:
        if key.kind == SegmentKind.HOLES:
            entries_count += ref.entries_count
            ranges_count += ref.ranges_count
        else:
            batches_count += ref.entries_count
    return ColdLedger(entries_count, ranges_count, batches_count)


async def read_stored_segments(
    reader: LedgerReader, refs: dict[SegmentKey, SegmentRef]
) -> list[StoredSegment]:
    """Read the segments of these refs; neighbouring entries are read together."""
    keys = {ref.entry_id: key for key, ref in refs.items()}
    entry_ids = sorted(keys)
    found: list[StoredSegment] = []
    while entry_ids:
        first = last = entry_ids[0]
        while last - first + 1 < len(entry_ids) and entry_ids[last - first + 1] == last + 1:
            last += 1
        entries = await reader.read(first, last, _READ_BYTES)
        for entry_id, data in enumerate(entries, first):
            segment = decode_entry(bytes(data))
            if not isinstance(segment, StoredSegment) or segment.key != keys[entry_id]:
                raise CorruptDataError(
                    f"ledger {reader.ledger_id}: entry {entry_id} is not the segment that the "
                    f"marker lists, {keys[entry_id]}"
                )
            found.append(segment)
        del entry_ids[: len(entries)]
    return sorted(found)


def join_states(snapshot: CursorSnapshot, addition: CursorSnapshot) -> None:
    """Add newer acknowledgements to a state: those of the record, or those written as changes."""
    snapshot.added_pages.update(segment_keys(addition))
    snapshot.mark_delete_position = max(
        snapshot.mark_delete_position, addition.mark_delete_position
    )
    snapshot.properties = addition.properties
    snapshot.individual_deleted_messages.add_all(addition.individual_deleted_messages)
    for position in _merge_batches(snapshot, addition):
        snapshot.added_pages.add(holes_key(position))


def _merge_batches(snapshot: CursorSnapshot, addition: CursorSnapshot) -> list[Position]:
    """Add partly acknowledged batches; returns those that both acknowledge as a whole."""
    finished: list[Position] = []
    batches = addition.batch_deleted_indexes
    for key in batches.page_keys():
        finished += snapshot.batch_deleted_indexes.merge_page(key, batches.encode_page(key)[0])
    for position in finished:
        snapshot.individual_deleted_messages.add(position)
    return finished
