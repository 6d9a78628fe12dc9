"""`Survivors`: which messages a compaction keeps, a bit each (pure).

Both phases read the same entries and number them the same way: an entry has the number after the
last one of the entry before it, and the messages of a batch have those behind its own. So the bits
lie close to each other, whatever the positions are and however small the batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Final

from pyroaring import BitMap64

WHOLE: Final[frozenset[int]] = frozenset()
"""What is kept of an entry that stays as it is."""


class Survivors:
    """The entries and messages that stay; made by phase one, asked by phase two."""

    def __init__(self) -> None:
        self._numbers = BitMap64()

    def add(self, numbers: Iterable[int]) -> None:
        """Keep the entries and messages with these numbers."""
        self._numbers.update(numbers)

    def kept_of(self, first: int, count: int) -> frozenset[int] | None:
        """What stays of an entry with `count` numbers from `first` on.

        None: nothing; `WHOLE`: all of it, as it is; else these indexes of the batch.
        """
        if first in self._numbers:
            return WHOLE
        if count == 1:
            return None
        end = first + count
        own = takewhile(lambda number: number < end, self._numbers.iter_equal_or_larger(first))
        return frozenset(number - first - 1 for number in own) or None
