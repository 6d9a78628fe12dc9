"""ManagedCursor: one subscription's place in a managed ledger (edge).

Carries out what `CursorState` decides: reads runs of entries, and writes the state to metadata or
to a cursor ledger, a second after an acknowledgement at the latest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.entry import Entry


class ManagedCursor:
    """A durable or non-durable cursor. Owned by its ManagedLedger until closed or deleted.

    Invariant: read_position is after mark_delete_position.

    Pulsar's ManagedCursorImpl and NonDurableCursorImpl.
    """

    name: str
    is_durable: bool
    on_mark_delete_moved: Callable[[], None] | None  # called after the position moved, once a call

    @property
    def mark_delete_position(self) -> Position:
        """Everything up to it is acknowledged."""
        raise NotImplementedError

    @property
    def persistent_mark_delete_position(self) -> Position:
        """The mark-delete position that survives a crash."""
        raise NotImplementedError

    @property
    def read_position(self) -> Position:
        """The next entry to read."""
        raise NotImplementedError

    @property
    def properties(self) -> Mapping[str, int]:
        """Numbers stored together with the mark-delete position."""
        raise NotImplementedError

    @property
    def cursor_properties(self) -> Mapping[str, str]:
        """Texts of users and of the broker (`#pulsar.internal.`), in the metadata store."""
        raise NotImplementedError

    @property
    def is_active(self) -> bool:
        """Whether entries are cached for it."""
        raise NotImplementedError

    @property
    def last_active_millis(self) -> int:
        """Wall time of the last acknowledgement, or of opening."""
        raise NotImplementedError

    def read_cached(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> list[Entry] | None:
        """The next unacknowledged entries up to `max_position`, if they are in memory.

        Moves `read_position` past them. At least one entry whatever `max_bytes`; `[]` means there
        is nothing to read now, None that `read` has to be awaited.
        """
        raise NotImplementedError

    async def read(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> list[Entry]:
        """As `read_cached`, reading from storage. One at a time.

        If the cursor is rewound, moved or reset meanwhile, what was read is dropped and the result
        is empty.

        Raises:
            CursorClosedError: The cursor was closed.
            StorageError: An entry can't be read.
        """
        raise NotImplementedError

    def wait_for_entries(self, callback: Callable[[], None]) -> None:
        """Call back once, soon, when there is an entry to read or the ledger was terminated.

        One callback at a time: a new one replaces the old one.
        """
        raise NotImplementedError

    def cancel_wait(self) -> None:
        """Forget the waiting callback."""
        raise NotImplementedError

    def read_replay_cached(self, positions: Sequence[Position]) -> list[Entry] | None:
        """The entries at `positions` that exist and are not acknowledged, if they are in memory.

        In the order asked for; those missing in the result are acknowledged or gone.
        """
        raise NotImplementedError

    async def read_replay(self, positions: Sequence[Position]) -> list[Entry]:
        """As `read_replay_cached`, reading from storage.

        Raises:
            CursorClosedError: The cursor was closed.
            StorageError: An entry can't be read.
        """
        raise NotImplementedError

    def acknowledge(
        self,
        positions: Sequence[Position],
        ack_sets: Sequence[Sequence[int] | None] | None = None,
    ) -> None:
        """Acknowledge entries, or with an ack set the indexes whose bits are clear in it.

        In memory; written within a second.

        Raises:
            InvalidCursorPositionError: One is past the last entry; those before it are
                acknowledged, those after it are not.
            CursorClosedError: The cursor is closed.
        """
        raise NotImplementedError

    def acknowledge_cumulative(
        self,
        position: Position,
        ack_set: Sequence[int] | None = None,
        properties: Mapping[str, int] | None = None,
    ) -> None:
        """Acknowledge everything up to `position`, of that one only what `ack_set` leaves clear.

        `properties` replace the cursor's if given.

        Raises:
            InvalidCursorPositionError: Past the last entry, or before the mark-delete position.
            CursorBusyError: A reset is under way.
            CursorClosedError: The cursor is closed.
        """
        raise NotImplementedError

    def is_acknowledged(self, position: Position) -> bool:
        """Whether the whole entry is acknowledged."""
        raise NotImplementedError

    def batch_ack_set(self, position: Position) -> Sequence[int] | None:
        """Words of the batch indexes still to deliver (bit set); None if all of them are."""
        raise NotImplementedError

    def rewind(self) -> None:
        """Read again from the first entry that is not acknowledged."""
        raise NotImplementedError

    def seek(self, position: Position, *, is_forced: bool = False) -> None:
        """Read on from `position`; not before the mark-delete position unless forced."""
        raise NotImplementedError

    async def reset(self, position: Position, ack_set: Sequence[int] | None = None) -> None:
        """Make `position` the next entry to deliver, as if all before it were acknowledged.

        Persists first. EARLIEST and LATEST are understood; others become the next valid position.

        Raises:
            CursorBusyError: Another reset is under way.
            CursorClosedError: The cursor is closed.
        """
        raise NotImplementedError

    async def skip(self, count: int, *, counts_acknowledged: bool = False) -> None:
        """Acknowledge the next `count` entries of the backlog."""
        raise NotImplementedError

    async def clear_backlog(self) -> None:
        """Acknowledge everything there is."""
        raise NotImplementedError

    def backlog_count(self) -> int:
        """Entries not acknowledged, exactly."""
        raise NotImplementedError

    def backlog_bytes(self) -> int:
        """Estimated bytes of the backlog."""
        raise NotImplementedError

    def entries_to_read_count(self) -> int:
        """Entries from the read position on, acknowledged ones included."""
        raise NotImplementedError

    def has_more_entries(self) -> bool:
        """Whether an entry stands at or after the read position."""
        raise NotImplementedError

    def individual_ranges_count(self) -> int:
        """Ranges of individually acknowledged entries above the mark-delete position."""
        raise NotImplementedError

    def set_active(self) -> None:
        """Cache entries for it while it tails: it has consumers."""
        raise NotImplementedError

    def set_inactive(self) -> None:
        """Cache nothing for it."""
        raise NotImplementedError

    async def set_cursor_properties(self, properties: Mapping[str, str]) -> None:
        """Replace the users' properties durably; internal ones stay."""
        raise NotImplementedError

    async def set_internal_property(self, name: str, value: str | None) -> None:
        """Set or remove (None) one internal property durably."""
        raise NotImplementedError

    def set_properties(self, properties: Mapping[str, int]) -> None:
        """Replace the numbers stored with the position; written with the next change."""
        raise NotImplementedError

    async def flush(self) -> None:
        """Write what is dirty now."""
        raise NotImplementedError

    async def close(self) -> None:
        """Persist and release; waiting reads fail. A non-durable cursor is forgotten."""
        raise NotImplementedError
