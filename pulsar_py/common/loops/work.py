"""Bounds the work that a command does before it yields to the loop, and asserts the bound.

A *unit* is an item that a handler processes one by one: an id, a word of an ack set, a pair of
texts, a hash range, a topic name. A handler passes `check_units` the number of units that it is
about to process, and yields in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

MAX_UNITS: Final = 10_000
"""Units between two yields; they cost about 30 ms of CPU at the worst."""

NAMES_A_TURN: Final = 1_000
"""Names of topics that are made of text between two yields; one takes longer than other units."""

MAX_IDS_A_TURN: Final = 1_000
"""Message ids of a large ACK or REDELIVER between two yields; one takes longer than other units."""

MAX_HOLDERS_A_TURN: Final = 200_000
"""Look-ups of an acknowledged entry in a consumer's pending acks, between two yields."""


def check_units(count: int) -> None:
    """Assert that `count` units may be processed without a yield."""
    assert count <= MAX_UNITS, f"{count} units at once, allowed are {MAX_UNITS}"


def ids_a_turn(consumers_count: int) -> int:
    """Acknowledged ids between two yields, if each may be pending at any of so many consumers."""
    return max(1, min(MAX_IDS_A_TURN, MAX_HOLDERS_A_TURN // max(consumers_count, 1)))


async def in_turns(items: Sequence[T], size: int = MAX_UNITS // 2) -> AsyncIterator[Sequence[T]]:
    """Slices of `items` of at most `size`, in order; the loop runs other tasks between two."""
    check_units(size)
    for start in range(0, len(items), size):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + size]


class Turns:
    """Lets others have a turn whenever enough units of one piece of work have been processed.

    For work that is nested, or whose items cost unlike much; `in_turns` is for plain sequences.
    """

    def __init__(self, size: int = MAX_UNITS // 2) -> None:
        check_units(size)
        self._size = size
        self._count = 0  # since the last turn of others

    async def take(self, units: int = 1) -> None:
        """To be awaited before so many units are processed in one go."""
        check_units(units)
        if self._count and self._count + units > self._size:
            self._count = 0
            await asyncio.sleep(0)
        self._count += units
