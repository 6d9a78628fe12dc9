"""ManagedLedger: an append-only log of ledgers with cursors (edge).

Carries out what `LedgerState` decides: creates, rolls, trims and deletes ledgers, completes appends
a group at a time and wakes waiting cursors once a group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.entry import Entry
from pulsar_py.managed_ledger.managed_cursor import ManagedCursor

C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)


class InitialPosition(Enum):
    """Where a new cursor starts."""

    EARLIEST = "earliest"
    LATEST = "latest"


class AppendListener(Protocol[C_contra]):
    """Who hears what became of appended entries; the topic.

    Called on the loop, never from inside `append`.
    """

    def on_appended(
        self, ledger_id: int, first_entry_id: int, contexts: Sequence[C_contra]
    ) -> None:
        """These entries are durable, with consecutive ids; once a group, in order of appending."""

    def on_append_failed(self, contexts: Sequence[C_contra], error: Exception) -> None:
        """These entries are not stored and never will be; others may still come."""

    def on_fenced(self, error: Exception) -> None:
        """Another owner has the managed ledger; what was pending has failed before this. Once."""


@dataclass(frozen=True, slots=True)
class LedgerStats:
    """One ledger of a managed ledger, for statistics."""

    ledger_id: int
    entries_count: int
    size_bytes: int
    closed_millis: int  # 0 while open


@dataclass(frozen=True, slots=True)
class CursorStats:
    """One cursor, for internal statistics."""

    mark_delete_position: Position
    read_position: Position
    is_waiting: bool
    pending_reads_count: int
    messages_consumed_count: int
    cursor_ledger_id: int  # -1: the state is in the metadata record
    cursor_ledger_last_entry_id: int
    individually_deleted_messages: str
    last_ledger_switch_millis: int
    state: str
    backlog_count: int
    subscription_has_pending_read: bool
    properties: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ManagedLedgerStats:
    """What `internal_stats` answers."""

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


class ManagedLedger(Generic[C]):
    """One topic's entries and cursors. Owned by a `ManagedLedgerOpener` until closed or deleted.

    Pulsar's ManagedLedgerImpl.
    """

    name: str
    listener: AppendListener[C] | None

    @property
    def config(self) -> ManagedLedgerConfig:
        """The settings in force."""
        raise NotImplementedError

    def set_config(self, config: ManagedLedgerConfig) -> None:
        """Replace the settings; takes effect with the next decision."""
        raise NotImplementedError

    @property
    def last_confirmed_entry(self) -> Position:
        """The last durable entry; `(ledger, -1)` while there is none. May be trimmed already."""
        raise NotImplementedError

    @property
    def first_position(self) -> Position:
        """Where the first entry that still exists stands, or the next one will."""
        raise NotImplementedError

    @property
    def is_terminated(self) -> bool:
        """Nothing can be appended any more, by request."""
        raise NotImplementedError

    @property
    def is_fenced(self) -> bool:
        """Another owner has it."""
        raise NotImplementedError

    @property
    def terminated_position(self) -> Position | None:
        """The last entry of a terminated managed ledger."""
        raise NotImplementedError

    @property
    def entries_count(self) -> int:
        """Entries that exist."""
        raise NotImplementedError

    @property
    def size_bytes(self) -> int:
        """Bytes of the entries that exist."""
        raise NotImplementedError

    @property
    def entries_added_count(self) -> int:
        """Entries appended since it was opened."""
        raise NotImplementedError

    @property
    def pending_appends_count(self) -> int:
        """Entries appended and neither durable nor failed yet."""
        raise NotImplementedError

    @property
    def properties(self) -> Mapping[str, str]:
        """Stored with the list of ledgers."""
        raise NotImplementedError

    @property
    def cursors(self) -> Mapping[str, ManagedCursor]:
        """All cursors, durable or not, by name."""
        raise NotImplementedError

    def append(self, data: bytes, context: C) -> None:
        """Queue one entry; `context` comes back in the listener's news.

        Groups are completed in the order of the calls. While there is no ledger, entries wait for
        it in order; if it can't be created, or the disk is full, `on_append_failed` tells.

        Raises:
            ManagedLedgerFencedError: Another owner has it; reopening does not help.
            ManagedLedgerTerminatedError: Nothing can follow.
            ManagedLedgerClosedError: It is closed.
        """
        raise NotImplementedError

    async def append_and_wait(self, data: bytes) -> Position:
        """Append one entry and return its position once it is durable; for rare writes.

        Its context does not reach the listener.

        Raises:
            ManagedLedgerError, StorageError: It is not stored.
        """
        raise NotImplementedError

    async def open_cursor(
        self,
        name: str,
        initial: InitialPosition = InitialPosition.LATEST,
        *,
        properties: Mapping[str, int] | None = None,
        cursor_properties: Mapping[str, str] | None = None,
    ) -> ManagedCursor:
        """The durable cursor of that name, created durably if missing.

        `initial` and the properties only matter to a new one.

        Raises:
            ManagedLedgerError: Closed or fenced, or the name is a non-durable cursor's.
            MetadataError: It could not be stored.
        """
        raise NotImplementedError

    def new_non_durable_cursor(
        self,
        name: str,
        start: Position | InitialPosition,
        *,
        initial: InitialPosition | None = None,
    ) -> ManagedCursor:
        """A cursor in memory only; the first entry it reads is the one at `start`.

        A start past the end becomes `initial` (LATEST if None), one in a deleted ledger the next
        entry there is. Never holds trimming back.

        Raises:
            ManagedLedgerError: Closed or fenced, or the name is taken.
        """
        raise NotImplementedError

    async def delete_cursor(self, name: str) -> None:
        """Remove a cursor with its record and cursor ledger.

        Raises:
            CursorNotFoundError: There is none.
        """
        raise NotImplementedError

    async def terminate(self) -> Position:
        """Let nothing follow the last entry; returns its position. Fine if done already."""
        raise NotImplementedError

    async def set_property(self, name: str, value: str) -> None:
        """Store one property durably."""
        raise NotImplementedError

    async def delete_property(self, name: str) -> None:
        """Remove one property durably; fine if it is not there."""
        raise NotImplementedError

    async def trim(self) -> None:
        """Delete the ledgers that retention and durable cursors let go."""
        raise NotImplementedError

    async def roll_ledger(self) -> None:
        """Close the current ledger if it has entries, and go on in a new one."""
        raise NotImplementedError

    async def close(self) -> None:
        """Persist all cursors and close the current ledger. May be called again."""
        raise NotImplementedError

    async def delete(self) -> None:
        """Delete cursors, metadata and ledgers for good; closes first."""
        raise NotImplementedError

    def contains(self, position: Position) -> bool:
        """Whether there is a durable entry at `position`."""
        raise NotImplementedError

    def next_valid_position(self, position: Position) -> Position:
        """Where the first entry after `position` stands, or the next one will."""
        raise NotImplementedError

    def previous_position(self, position: Position) -> Position:
        """Where the last entry before `position` stands; `(ledger, -1)` if there is none."""
        raise NotImplementedError

    def count_entries_between(self, lower_exclusive: Position, upper_inclusive: Position) -> int:
        """How many entries exist after the first and up to the second; 0 if they are reversed."""
        raise NotImplementedError

    def position_after_entries(self, start: Position, count: int) -> Position:
        """The position of the `count`-th entry at or after `start`, at most the last one."""
        raise NotImplementedError

    def size_after(self, position: Position) -> int:
        """Estimated bytes of the entries after `position`."""
        raise NotImplementedError

    def backlog_size_bytes(self) -> int:
        """Estimated bytes after the slowest durable cursor's mark-delete position."""
        raise NotImplementedError

    def slowest_durable_cursor(self) -> ManagedCursor | None:
        """The durable cursor with the oldest mark-delete position."""
        raise NotImplementedError

    async def read_entry(self, position: Position) -> Entry:
        """One entry.

        Raises:
            EntryNotFoundError, LedgerNotFoundError: There is none.
            CorruptDataError: What is stored fails its checksum.
        """
        raise NotImplementedError

    async def find_newest(
        self, predicate: Callable[[Entry], bool], *, after: Position | None = None
    ) -> Position | None:
        """The newest entry (after `after`) for which `predicate` holds; None if there is none.

        A binary search: the predicate has to hold up to some entry and for none behind it.
        """
        raise NotImplementedError

    def ledgers_info(self) -> Sequence[LedgerStats]:
        """All ledgers, oldest first."""
        raise NotImplementedError

    def internal_stats(self) -> ManagedLedgerStats:
        """Everything about ledgers and cursors."""
        raise NotImplementedError
