"""`EntryRun`: neighbouring entries of one ledger, kept as bytes until one is used alone.

A catch-up read returns thousands of entries that are sent as they are stored. Their bytes are
enough for that; `Entry` objects are made on the first access to one, once for the whole run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.managed_ledger.log.entry import Entry


def make_entries(ledger_id: int, first_entry_id: int, datas: Iterable[EntryBytes]) -> list[Entry]:
    """The entries whose bytes are `datas`, with ids from `first_entry_id` without gaps."""
    return [Entry(ledger_id, entry_id, data) for entry_id, data in enumerate(datas, first_entry_id)]


class EntryRun(Sequence[Entry]):
    """Entries with ids from `first_entry_id` without gaps; their bytes are `datas`."""

    __slots__ = ("_entries", "datas", "first_entry_id", "ledger_id", "summary")

    def __init__(self, ledger_id: int, first_entry_id: int, datas: Sequence[EntryBytes]) -> None:
        self.ledger_id = ledger_id
        self.first_entry_id = first_entry_id
        self.datas = datas
        # The summary that `server` gave to all entries together; as in Entry.
        self.summary: object | None = None
        self._entries: Sequence[Entry] | None = None

    @property
    def last_entry_id(self) -> int:
        """Id of the last entry; one below the first if there is none."""
        return self.first_entry_id + len(self.datas) - 1

    @property
    def is_made(self) -> bool:
        """Whether `Entry` objects were made, to which callers may refer."""
        return self._entries is not None

    def part(self, start: int, stop: int) -> EntryRun:
        """The entries at these places, the same objects if they were made."""
        part = EntryRun(self.ledger_id, self.first_entry_id + start, self.datas[start:stop])
        part.summary = self.summary
        if self._entries is not None:
            part._entries = self._entries[start:stop]
        return part

    def _made(self) -> Sequence[Entry]:
        entries = self._entries
        if entries is None:
            entries = self._entries = make_entries(self.ledger_id, self.first_entry_id, self.datas)
            if self.summary is not None:
                for entry in entries:
                    entry.summary = self.summary
        return entries

    def __len__(self) -> int:
        return len(self.datas)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._made())

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self.datas))
            return self.part(start, stop) if step == 1 else self._made()[index]
        return self._made()[index]

    def __repr__(self) -> str:
        return f"EntryRun({self.ledger_id}:{self.first_entry_id} to {self.last_entry_id})"
