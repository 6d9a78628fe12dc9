"""`CursorChangeLog`: the acknowledgements that are new since the last write of a cursor (pure).

A whole state may be large; what one group of acknowledgements changed is small. So while clients
ask for receipts, writes between two whole states have the changes alone, and every entry of the
cursor ledger from the last state on has to be read to recover. The log has the cursor's state note
the positions that were touched since the last write; the state says what they are by now:
acknowledged as a whole, partly, or not at all after a reset.

What always holds: while `is_complete`, the last whole state in the cursor ledger, the changes
written after it and the noted positions make up the cursor's state. A whole state begins the log
anew, or lets it rest if it is small: then the next write is a whole state, too. The log grows until
`is_long`: then a whole state has to be written.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from functools import partial
from itertools import repeat

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import CursorSnapshot
from pulsar_py.managed_ledger.cursors.state import CursorState

MAX_NOTED = 100_000
"""Positions noted since the last write, 4 bytes each; beyond them a whole state is written."""

MAX_ENTRIES = 4_096
"""Entries with changes after a whole state: recovery reads them in a tenth of a second."""

LEAST_MAX_BYTES = 2 * 1024 * 1024
"""The bytes of changes after which a whole state is written, if that is small."""

_PART_OF_STATE = 2  # of a large state; so that whole states cost little more than the changes


_nothing_noted = partial(defaultdict[int, "array[int]"], partial(array, "I"))


class CursorChangeLog:
    """What was acknowledged since the last write of one cursor. Owned by its CursorPersister."""

    __slots__ = ("_entries_count", "_max_bytes", "_size_bytes", "_state")

    def __init__(self, state: CursorState) -> None:
        self._state = state  # it notes the positions: that is cheapest where they change
        self._entries_count = 0  # with changes, since the last whole state
        self._size_bytes = 0  # of them
        self._max_bytes = LEAST_MAX_BYTES

    def begin(self) -> None:
        """A whole state is being encoded: it has everything that was acknowledged so far."""
        self._state.noted = _nothing_noted()
        self._entries_count = self._size_bytes = 0

    def rest(self) -> None:
        """A whole state is being encoded, and the next write is one, too: nothing is noted."""
        self._state.noted = None
        self._entries_count = self._size_bytes = 0

    def stored(self, state_bytes: int) -> None:
        """Note the size of the whole state, once it is written."""
        self._max_bytes = max(LEAST_MAX_BYTES, state_bytes // _PART_OF_STATE)

    def fail(self) -> None:
        """Forget everything: a write may have failed."""
        self._state.noted = None

    @property
    def is_complete(self) -> bool:
        """Whether all was noted that is new since the last write, because it wasn't too much."""
        noted = self._state.noted
        return noted is not None and sum(map(len, noted.values())) <= MAX_NOTED

    @property
    def has_entries(self) -> bool:
        """Whether changes were written since the last whole state."""
        return self._entries_count > 0

    @property
    def is_long(self) -> bool:
        """Whether the changes since the last whole state are so many that one is due."""
        return self._entries_count >= MAX_ENTRIES or self._size_bytes >= self._max_bytes

    def take(self) -> CursorSnapshot:
        """What the noted positions are by now; they count as written, or else call `fail`."""
        state = self._state
        noted, state.noted = state.noted, _nothing_noted()
        assert noted is not None, "changes are written while the log is complete"
        # Whole entries in one step, by bitmaps: groups have thousands of them, and few batches.
        found = state.individual_deleted_messages.among(noted)
        changes = CursorSnapshot(state.mark_delete_position, found, properties=state.properties)
        if state.batch_deleted_indexes:
            for ledger_id, entry_ids in noted.items():
                for position in map(Position, repeat(ledger_id), entry_ids):
                    bits = state.batch_deleted_indexes.get(position)
                    if bits is not None and position not in found:
                        changes.batch_deleted_indexes.put(position, bits)
        return changes

    def written(self, size_bytes: int) -> None:
        """Count an entry that was written with changes."""
        self._entries_count += 1
        self._size_bytes += size_bytes
