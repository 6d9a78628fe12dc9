"""`CursorChangeLog`: the acknowledgements that are new since the last write of a cursor (pure).

A whole state may be large; what one group of acknowledgements changed is small. So while clients
ask for receipts, writes between two whole states have the changes alone, and every entry of the
cursor ledger from the last state on has to be read to recover. The log knows which positions were
touched since the last write; the cursor's state says what they are by now: acknowledged as a whole,
partly, or not at all after a reset.

What always holds: while `is_complete`, the last whole state in the cursor ledger, the changes
written after it and the touched positions make up the cursor's state. A whole state begins the log
anew, or lets it rest if it is small: then the next write is a whole state, too. The log grows until
`is_long`: then a whole state has to be written.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import CursorSnapshot
from pulsar_py.managed_ledger.cursors.state import CursorState

MAX_TOUCHED = 100_000
"""Positions touched since the last write; beyond them a whole state is written."""

MAX_ENTRIES = 4_096
"""Entries with changes after a whole state: recovery reads them in a tenth of a second."""

LEAST_MAX_BYTES = 512 * 1024
"""The bytes of changes after which a whole state is written, if that is small."""

_PART_OF_STATE = 5  # of a large state; so that whole states cost little more than the changes


class CursorChangeLog:
    """The positions touched since the last write of one cursor. Owned by its CursorPersister."""

    __slots__ = ("_entries_count", "_max_bytes", "_size_bytes", "_touched", "is_complete")

    def __init__(self) -> None:
        self.is_complete = False
        self._touched: list[Position] = []  # may repeat positions, and name acknowledged ones
        self._entries_count = 0  # with changes, since the last whole state
        self._size_bytes = 0  # of them
        self._max_bytes = LEAST_MAX_BYTES

    def touch(self, positions: Sequence[Position]) -> None:
        """Note positions of which some were acknowledged, as a whole or partly."""
        # Hot path: acknowledge.
        if self.is_complete:
            self._touched += positions
            if len(self._touched) > MAX_TOUCHED:
                self.fail()

    def begin(self) -> None:
        """A whole state is being encoded: it has everything that was touched so far."""
        self._touched.clear()
        self._entries_count = self._size_bytes = 0
        self.is_complete = True

    def rest(self) -> None:
        """A whole state is being encoded, and the next write is one, too: nothing is noted."""
        self.begin()
        self.is_complete = False

    def stored(self, state_bytes: int) -> None:
        """Note the size of the whole state, once it is written."""
        self._max_bytes = max(LEAST_MAX_BYTES, state_bytes // _PART_OF_STATE)

    def fail(self) -> None:
        """Forget everything: a write may have failed, or too much was touched."""
        self._touched.clear()
        self.is_complete = False

    @property
    def has_entries(self) -> bool:
        """Whether changes were written since the last whole state."""
        return self._entries_count > 0

    @property
    def is_long(self) -> bool:
        """Whether the changes since the last whole state are so many that one is due."""
        return self._entries_count >= MAX_ENTRIES or self._size_bytes >= self._max_bytes

    def take(self, state: CursorState) -> CursorSnapshot:
        """What the touched positions are by now; they count as written, or else call `fail`."""
        touched, self._touched = self._touched, []
        # Whole entries in one step, by bitmaps: groups have thousands of them, and few batches.
        found = state.individual_deleted_messages.among(touched)
        changes = CursorSnapshot(state.mark_delete_position, found, properties=state.properties)
        if state.batch_deleted_indexes:
            for position in touched:
                bits = state.batch_deleted_indexes.get(position)
                if bits is not None and position not in found:
                    changes.batch_deleted_indexes.put(position, bits)
        return changes

    def written(self, size_bytes: int) -> None:
        """Count an entry that was written with changes."""
        self._entries_count += 1
        self._size_bytes += size_bytes
