"""Statistics of a managed ledger: frozen values, made on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from pulsar_py.common.position import Position


class LedgerStats(Struct, frozen=True):
    """One ledger of a managed ledger."""

    ledger_id: int
    entries_count: int
    size_bytes: int
    closed_millis: int  # 0 while open


class CursorStats(Struct, frozen=True):
    """One cursor."""

    mark_delete_position: Position
    read_position: Position
    is_waiting: bool
    pending_reads_count: int
    pending_replay_reads_count: int  # of entries that are sent again
    messages_consumed_count: int
    cursor_ledger_id: int  # -1: the state is in the metadata record
    cursor_ledger_last_entry_id: int
    individually_deleted_messages: str
    last_ledger_switch_millis: int
    state: str
    backlog_count: int
    entries_to_read_count: int
    ranges_not_persisted_count: int  # ranges and batches that the last write left out
    ranges_over_limit_count: int  # those that it wrote beyond the settings' limits
    properties: Mapping[str, int]


class ManagedLedgerStats(Struct, frozen=True):
    """A snapshot of all ledgers and cursors."""

    entries_added_count: int
    entries_count: int
    size_bytes: int
    current_ledger_entries_count: int
    current_ledger_size_bytes: int
    last_ledger_created_millis: int
    last_ledger_creation_failure_millis: int  # 0: none failed
    waiting_cursors_count: int
    pending_appends_count: int
    last_confirmed_entry: Position
    state: str
    ledgers: Sequence[LedgerStats]
    cursors: Mapping[str, CursorStats]
    properties: Mapping[str, str]
