"""`Entry`: one stored entry, as cursors return it.

Entries that several cursors read from the cache are one shared object, so that its metadata is
parsed once: `server` keeps the result in `summary`.

Source: EntryImpl in Pulsar's managed-ledger.
"""

from __future__ import annotations

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.position import Position


class Entry:
    """One entry: its position, its bytes, and the summary that `server` parsed from them."""

    __slots__ = ("data", "entry_id", "ledger_id", "summary")

    def __init__(self, ledger_id: int, entry_id: int, data: EntryBytes) -> None:
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.data = data  # exactly as appended
        self.summary: object | None = None  # set and read by `server` alone

    @property
    def position(self) -> Position:
        """The entry's position."""
        return Position(self.ledger_id, self.entry_id)

    def __repr__(self) -> str:
        return f"Entry({self.ledger_id}:{self.entry_id}, {len(self.data)} bytes)"
