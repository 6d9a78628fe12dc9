"""`Position`: the place of an entry in a topic (values).

A position is a ledger id and an entry id, ordered first by ledger. `EARLIEST` sorts before every
entry and `LATEST` after; on the wire their -1 travels as 2^64-1. An entry id of -1 means "before
the first entry of this ledger". Other kinds of id (batch index, partition, chunk) belong to
`message_id`.

Source: Position and PositionFactory in Pulsar's managed-ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import NamedTuple, overload

MAX_LONG = 2**63 - 1


class Position(NamedTuple):
    """One entry of a topic, or the gap before a ledger's first one (`entry_id` -1)."""

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        """Pulsar's text form, `ledger:entry`."""
        return f"{self.ledger_id}:{self.entry_id}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read the `ledger:entry` form.

        Raises:
            ValueError: The text is not two integers around one colon.
        """
        ledger, separator, entry = text.partition(":")
        if not separator:
            raise ValueError(f"position {text!r} is not of the form ledger:entry")
        return cls(int(ledger), int(entry))


EARLIEST = Position(-1, -1)
LATEST = Position(MAX_LONG, MAX_LONG)


class LedgerPositions(Sequence[Position]):
    """The positions of entries of one ledger, in any order, perhaps with repetitions.

    A group of acknowledgements names a hundred, most often neighbours. What takes them as they are
    has no `Position` to make for each.

    Invariant: entry ids are not negative, and below 2^32; a range ascends by one.
    """

    __slots__ = ("entry_ids", "ledger_id")

    def __init__(self, ledger_id: int, entry_ids: range | list[int]) -> None:
        self.ledger_id = ledger_id
        self.entry_ids = entry_ids

    @property
    def highest_entry_id(self) -> int:
        """The highest entry id; there must be one."""
        entry_ids = self.entry_ids
        return entry_ids[-1] if type(entry_ids) is range else max(entry_ids)

    def covers(self, entry_id: int) -> bool:
        """Whether they are neighbours, and that entry is one of them."""
        return type(self.entry_ids) is range and entry_id in self.entry_ids

    def keys(self) -> Iterator[tuple[int, int]]:
        """The positions as plain tuples, which are equal to them and cost less."""
        return zip(repeat(self.ledger_id), self.entry_ids)

    def __len__(self) -> int:
        return len(self.entry_ids)

    def __iter__(self) -> Iterator[Position]:
        return map(Position, repeat(self.ledger_id), self.entry_ids)

    @overload
    def __getitem__(self, index: int) -> Position: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Position]: ...

    def __getitem__(self, index: int | slice) -> Position | Sequence[Position]:
        if isinstance(index, slice):
            return [Position(self.ledger_id, entry_id) for entry_id in self.entry_ids[index]]
        return Position(self.ledger_id, self.entry_ids[index])

    def __repr__(self) -> str:
        return f"LedgerPositions({self.ledger_id}, {self.entry_ids})"
