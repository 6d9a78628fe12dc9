"""CursorFlusher: one timer for all cursors."""

import asyncio
from contextlib import ExitStack

import pytest

from pulsar_py.managed_ledger.cursors.flusher import (
    MANY_OPENINGS,
    MAX_WAIT_SECONDS,
    WRITES_A_TURN,
    CursorFlusher,
)


class Cursor:
    def __init__(self, clock, name, seen):
        self.clock, self.name, self.seen = clock, name, seen

    def write_if_due(self):
        self.seen.append((self.name, self.clock.monotonic_seconds()))


async def test_cursors_are_called_when_due_whatever_the_order(virtual_clock):
    seen = []
    flusher = CursorFlusher(virtual_clock)
    for name, due_at in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("d", 3.0)):
        flusher.schedule(Cursor(virtual_clock, name, seen), due_at)
    await asyncio.sleep(10)
    assert seen == [("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 3.0)]


async def test_a_time_that_has_passed_is_due_at_once(virtual_clock):
    seen = []
    flusher = CursorFlusher(virtual_clock)
    await asyncio.sleep(5)
    flusher.schedule(Cursor(virtual_clock, "a", seen), 1.0)
    await asyncio.sleep(0.001)
    assert seen == [("a", 5.0)]


async def test_a_closed_one_calls_nobody(virtual_clock):
    seen = []
    flusher = CursorFlusher(virtual_clock)
    flusher.schedule(Cursor(virtual_clock, "a", seen), 1.0)
    flusher.close()
    flusher.close()
    await asyncio.sleep(5)
    assert seen == []


async def test_a_crowd_is_called_over_several_turns(virtual_clock):
    seen = []
    flusher = CursorFlusher(virtual_clock)
    for number in range(2 * WRITES_A_TURN + 1):
        flusher.schedule(Cursor(virtual_clock, number, seen), 1.0)
    turns = []
    flusher._clock.call_later(1.0, lambda: turns.append(len(seen)))
    await asyncio.sleep(1.0)
    assert turns[0] <= WRITES_A_TURN
    await asyncio.sleep(0.001)
    assert [name for name, _ in seen] == list(range(2 * WRITES_A_TURN + 1))


class Receipts:
    def __init__(self, seen, name):
        self.seen, self.name = seen, name

    def write_for_receipts(self):
        self.seen.append(self.name)


async def test_those_with_receipts_are_called_together_in_the_next_turn(virtual_clock):
    seen = []
    flusher = CursorFlusher(virtual_clock)
    for name in ("a", "b"):
        flusher.soon(Receipts(seen, name))
    assert seen == []
    await asyncio.sleep(0.001)
    assert seen == ["a", "b"]
    flusher.soon(Receipts(seen, "c"))
    flusher.close()
    await asyncio.sleep(1)
    assert seen == ["a", "b"]


async def waited_seconds(flusher, clock):
    began = clock.monotonic_seconds()
    await flusher.until_few_openings()
    return clock.monotonic_seconds() - began


async def test_nobody_waits_while_few_managed_ledgers_are_opened(virtual_clock):
    flusher = CursorFlusher(virtual_clock)
    with ExitStack() as few:
        for _ in range(MANY_OPENINGS - 1):
            few.enter_context(flusher.opening())
        assert await waited_seconds(flusher, virtual_clock) == 0


async def test_new_cursor_ledgers_wait_while_many_are_opened(virtual_clock):
    flusher = CursorFlusher(virtual_clock)
    with ExitStack() as few:
        for _ in range(MANY_OPENINGS - 1):
            few.enter_context(flusher.opening())
        last = few.enter_context(ExitStack())
        last.enter_context(flusher.opening())
        virtual_clock.call_later(2, last.close)
        assert await waited_seconds(flusher, virtual_clock) == pytest.approx(2)
        assert await waited_seconds(flusher, virtual_clock) == 0, "there are few again"


async def test_they_do_not_wait_for_long_and_not_for_one_that_is_closed(virtual_clock):
    flusher = CursorFlusher(virtual_clock)
    with ExitStack() as many:
        for _ in range(MANY_OPENINGS):
            many.enter_context(flusher.opening())
        assert await waited_seconds(flusher, virtual_clock) == pytest.approx(MAX_WAIT_SECONDS)
        virtual_clock.call_later(1, flusher.close)
        assert await waited_seconds(flusher, virtual_clock) == pytest.approx(1)


async def test_an_opening_that_fails_counts_no_more(virtual_clock):
    flusher = CursorFlusher(virtual_clock)
    for _ in range(MANY_OPENINGS):
        with pytest.raises(ZeroDivisionError), flusher.opening():
            1 / 0  # noqa: B018
    with flusher.opening():
        assert await waited_seconds(flusher, virtual_clock) == 0
