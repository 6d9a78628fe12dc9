"""A managed ledger under any order of appends, faults, rolls and restarts.

Each append is answered exactly once; what is told to be durable is there, in the order of the
appends, at positions that are never given out again; what is told to have failed is not there.
"""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_py.common.errors import (
    DiskFullError,
    ManagedLedgerError,
    ManagedLedgerFencedError,
    StorageError,
)
from pulsar_py.common.position import Position
from pulsar_py.testing.clock import run_virtual
from tests.managed_ledger_parts import World, settle

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 9)),
        st.tuples(st.just("hold"), st.booleans()),
        st.tuples(st.just("fail"), st.integers(0, 3)),
        st.tuples(st.just("full"), st.booleans()),
        st.tuples(st.just("no creation"), st.booleans()),
        st.tuples(st.just("no closing"), st.booleans()),
        st.tuples(st.just("roll"), st.just(0)),
        st.tuples(st.just("turn"), st.integers(0, 8)),
        st.tuples(st.just("sleep"), st.integers(1, 12)),
        st.tuples(st.just("close"), st.just(0)),
        st.tuples(st.just("crash"), st.just(0)),
    ),
    max_size=25,
)


class Play:
    """Runs steps, and remembers what was told."""

    def __init__(self, max_entries):
        self.world = World()
        self.max_entries = max_entries
        self.number = 0
        self.told = {}  # position -> number
        self.failed = set()
        self.lost = set()  # unanswered when their process died
        self.ledger = None

    async def run(self, steps):
        await self.open()
        for name, value in steps:
            await getattr(self, f"do_{name.replace(' ', '_')}")(value)
        await self.calm()
        await self.check()

    async def open(self):
        self.ledger = await self.world.open(max_entries=self.max_entries)
        self.recorder = self.ledger.listener

    def take_news(self):
        for text, number in self.recorder.positions.items():
            position = Position(*number)
            assert self.told.setdefault(position, text) == text, "a position was given out twice"
        assert len(set(self.recorder.failed)) == len(self.recorder.failed)
        self.failed |= set(self.recorder.failed)

    async def do_append(self, count):
        for _ in range(count):
            self.number += 1
            self.ledger.append(b"%d" % self.number, self.number)

    async def do_hold(self, is_holding):
        if is_holding:
            self.world.store.is_holding = True
        else:
            self.world.store.release()

    async def do_fail(self, stored_count):
        self.world.store.fail_writers(StorageError("broken"), stored_count=stored_count)

    async def do_full(self, is_full):
        self.world.store.append_error = DiskFullError("full") if is_full else None

    async def do_no_creation(self, is_broken):
        self.world.store.create_error = StorageError("no") if is_broken else None

    async def do_no_closing(self, is_broken):
        self.world.store.close_error = StorageError("no") if is_broken else None

    async def do_roll(self, _):
        # On a store that holds, rolling would wait for ever.
        if not self.world.store.is_holding:
            await self.ledger.roll_ledger()

    async def do_turn(self, count):
        for _ in range(count):
            await asyncio.sleep(0)

    async def do_sleep(self, seconds):
        await asyncio.sleep(seconds)

    async def do_close(self, _):
        await self.calm()
        try:
            await self.ledger.close()
        except (StorageError, ManagedLedgerError) as error:
            raise AssertionError("closing a healthy one failed") from error
        self.take_news()
        await self.open()

    async def do_crash(self, _):
        if self.world.store.create_error is not None:
            return
        self.take_news()
        old = self.ledger
        old.listener = None
        answered = set(self.told.values()) | self.failed | self.lost
        self.lost |= set(range(1, self.number + 1)) - answered
        while True:
            try:
                await self.open()
                break
            except ManagedLedgerFencedError:
                await settle()  # the old owner is still alive, and was quicker

    async def calm(self):
        """Lift all faults, and let everything end."""
        store = self.world.store
        store.append_error = store.create_error = store.close_error = None
        store.release()
        await settle()
        await asyncio.sleep(11)
        await settle()

    async def check(self):
        self.take_news()
        told = list(self.told.values())
        assert len(set(told)) == len(told)
        assert not set(told) & self.failed
        assert set(told) | self.failed | self.lost == set(range(1, self.number + 1))
        in_order = [self.told[position] for position in sorted(self.told)]
        assert in_order == sorted(in_order)
        self.ledger.ledgers.check()
        await self.check_entries()

    async def check_entries(self):
        ledger = self.ledger
        position = ledger.first_position
        numbers = []
        while ledger.contains(position):
            number = int((await ledger.read_entry(position)).data)
            if position in self.told:
                assert self.told[position] == number
            else:
                assert number in self.lost, (position, number)
            numbers.append(number)
            position = ledger.next_valid_position(position)
        assert numbers == sorted(set(numbers))
        assert set(self.told.values()) <= set(numbers)


@settings(max_examples=200)
@given(steps=STEPS, max_entries=st.integers(1, 6))
def test_each_append_is_answered_once_and_truly(steps, max_entries):
    run_virtual(Play(max_entries).run(steps))
