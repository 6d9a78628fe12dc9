"""Decides when a cursor keeps its state in pages, and which ledgers stay in memory (pure).

A small state is written as one entry. A large one is tracked page by page (`CursorPages`) and
stored in segments; then written ledgers may leave memory, and are loaded again when they are
wanted. These functions decide when, and change the state; `CursorSegmentSaver` writes and reads
segments.

What always holds: acknowledgements that leave memory are durable. When they are loaded again they
are joined with newer ones, so that none of either is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.pages import ColdLedger
from pulsar_py.managed_ledger.cursors.segments import (
    SegmentKind,
    StoredSegment,
    add_segment,
    holes_key,
    segment_keys,
)
from pulsar_py.managed_ledger.cursors.state import CursorState

MAX_BATCHES_BYTES: Final = 512 * 1024
"""The most bytes of all batches' bit sets in one entry or record; stored they take up to a quarter
more.

One entry may have 5 MiB, a value in ZooKeeper 1 MiB."""


def fits_one_entry(state: CursorState, max_ranges: int) -> bool:
    """Whether ranges and batches are few and small enough to be written together.

    A state that is stored in segments stays there until it has become much smaller.
    """
    batches_count = len(state.batch_deleted_indexes)
    entries_count = len(state.individual_deleted_messages)
    if state.pages.is_tracking:
        is_few = not state.pages.cold and entries_count + batches_count <= max_ranges // 2
        return is_few and state.batch_deleted_indexes.size_bytes() <= MAX_BATCHES_BYTES // 2
    if batches_count > max_ranges or state.batch_deleted_indexes.size_bytes() > MAX_BATCHES_BYTES:
        return False
    if entries_count + batches_count <= max_ranges:
        return True
    return state.individual_deleted_messages.ranges_count() + batches_count <= max_ranges


def track_pages(state: CursorState) -> None:
    """Store the state in segments from now on; none of them is written yet."""
    state.pages.track(segment_keys(state))


def may_leave_memory(state: CursorState, ledger_id: int) -> bool:
    """Whether a ledger's acknowledgements are written and not needed for the next ack or read."""
    mark_delete = state.mark_delete_position
    needed = {
        mark_delete.ledger_id,
        state.ledgers.next_valid_position(mark_delete).ledger_id,
        state.read_position.ledger_id,
    }
    return ledger_id not in needed and state.pages.is_clean(ledger_id)


def leave_memory(state: CursorState, ledger_id: int) -> None:
    """Drop a ledger's acknowledgements from memory: they are durable, `load` reads them again."""
    deleted, records = state.individual_deleted_messages, state.batch_deleted_indexes
    batches_count = len(records)
    ranges_count = deleted.ranges_count_in_ledger(ledger_id)
    records.remove_ledger(ledger_id)
    left = ColdLedger(deleted.remove_ledger(ledger_id), ranges_count, batches_count - len(records))
    state.pages.leave_memory(ledger_id, left)


def load(
    state: CursorState, ledger_id: int, segments: Sequence[StoredSegment], now: float
) -> list[Position]:
    """Join a cold ledger's segments with the acknowledgements that came since.

    Returns the batches that both together acknowledge as a whole.

    Raises:
        CorruptDataError: A segment is malformed; those before it were joined.
    """
    finished: list[Position] = []
    if not state.pages.forget(ledger_id):
        return finished
    deleted, records = state.individual_deleted_messages, state.batch_deleted_indexes
    try:
        for segment in segments:
            if segment.key.kind == SegmentKind.BATCHES and not state.is_batch_index_ack_enabled:
                continue
            for position in add_segment(state, segment):
                deleted.add(position)
                state.pages.put_back([holes_key(position)])
                finished.append(position)
    finally:
        records.discard_members_of(deleted, ledger_id)
        if ledger_id == state.mark_delete_position.ledger_id:
            deleted.remove_through(state.mark_delete_position)
            records.remove_through(state.mark_delete_position)
        state.advance(now, is_changed=bool(finished))
    return finished
