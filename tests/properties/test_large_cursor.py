"""Cursors with very many acknowledgement holes against a naive model: a byte an entry.

Bounds are asserted here: of memory, of what a save writes, of the processor time of its steps; and
that all of it comes back. The large scale is `slow`; a fiftieth of it runs always. Steps take up to
3 ms; the bound of 20 ms tells one that does everything at once, also where others share the caches.
"""

from __future__ import annotations

import random

import pytest

from benchmarks.micro_cursor import Owner, Stepped, ledgers_of, stored_bytes
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.memory import CursorMemory
from pulsar_py.managed_ledger.cursors.persister import CursorPersister
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.managed_ledger.cursors.store import CursorStore
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.ledger_ids import CountedLedgerIds

PATH = "/managed-ledgers/t/n/persistent/a/sub"
MEGABYTE = 1_000_000
SCALES = [
    pytest.param(4, 200_000, id="a-fiftieth"),
    pytest.param(200, 10_000_000, id="ten-million", marks=pytest.mark.slow),
    pytest.param(1, 10_000_000, id="ten-million-in-one-ledger", marks=pytest.mark.slow),
]


async def nobody_asks():
    """Ownership is not in question here."""


class Place:
    """A cursor on a real engine in memory, and the naive model of it."""

    def __init__(self, ledgers_count, entries_count, *, memory_bytes=1 << 30):
        self.ledgers = ledgers_of(ledgers_count, entries_count)
        self.entries_count = entries_count
        self.per_ledger = entries_count // ledgers_count
        self.model = bytearray(entries_count)  # 1: acknowledged
        self.owner = Owner()
        self.owner.cursor_memory = CursorMemory(memory_bytes)
        self.metadata = MemoryMetadataStore(self.owner.clock)
        self.state = CursorState(self.ledgers, Position(1, -1))

    async def start(self):
        self.bookie = await Bookie.start(
            MemoryDisk(),
            clock=self.owner.clock,
            ledger_ids=CountedLedgerIds(1001),
            settings=BookieSettings(),
        )
        self.store = CursorStore(
            PATH,
            self.metadata,
            self.bookie,
            self.owner.clock,
            prove_ownership=nobody_asks,
            confirm_newest=nobody_asks,
        )
        await self.store.create(self.state)
        self.persister = CursorPersister("sub", self.owner, self.state, self.store)

    async def restart(self):
        """The cursor as another process finds it."""
        store = CursorStore(
            PATH,
            self.metadata,
            self.bookie,
            self.owner.clock,
            prove_ownership=nobody_asks,
            confirm_newest=nobody_asks,
        )
        snapshot = await store.recover(
            self.owner.config, room_bytes=self.owner.cursor_memory.room_bytes
        )
        self.store = store
        self.state = CursorState(self.ledgers, snapshot.mark_delete_position)
        self.state.restore(snapshot)
        self.persister = CursorPersister("sub", self.owner, self.state, store)

    def position(self, place):
        return Position(place // self.per_ledger + 1, place % self.per_ledger)

    def acknowledge(self, places):
        self.state.acknowledge([self.position(place) for place in places], None, 0.0)
        for place in places:
            self.model[place] = 1

    def acknowledge_every_second(self):
        for start in range(1, self.entries_count, 20_000):
            self.acknowledge(range(start, min(start + 20_000, self.entries_count), 2))

    def check(self):
        assert self.state.backlog_count() == self.model.count(0)
        first = self.model.find(0)
        following = self.ledgers.next_valid_position(self.state.mark_delete_position)
        assert following == self.position(first)

    def check_every_entry(self):
        deleted = self.state.individual_deleted_messages
        mark_delete = self.state.mark_delete_position
        for ledger_id in self.ledgers.ledger_ids:
            start = (ledger_id - 1) * self.per_ledger
            found = bytearray(self.per_ledger)
            for entry_id in deleted.present_in(ledger_id, 0, self.per_ledger - 1):
                found[entry_id] = 1
            if ledger_id <= mark_delete.ledger_id:
                end = self.per_ledger
                if ledger_id == mark_delete.ledger_id:
                    end = mark_delete.entry_id + 1
                found[:end] = b"\x01" * end
            assert found == self.model[start : start + self.per_ledger], ledger_id

    async def stored(self):
        return await stored_bytes(self.bookie, self.store.ledger_id)


@pytest.mark.parametrize(("ledgers_count", "entries_count"), SCALES)
async def test_every_second_entry_acknowledged(ledgers_count, entries_count):
    place = Place(ledgers_count, entries_count)
    await place.start()
    place.acknowledge_every_second()
    deleted = place.state.individual_deleted_messages
    assert deleted.ranges_count() == entries_count // 2
    assert deleted.size_bytes() <= 4 * MEGABYTE * entries_count / 10_000_000 + 50_000
    save = Stepped(place.persister.flush())
    await save
    assert sum(save.steps_seconds) < 0.2
    assert max(save.steps_seconds) < 0.02
    before = await place.stored()
    place.acknowledge([entries_count // 2])
    await place.persister.flush()
    after = await place.stored()
    assert after[0] - before[0] <= 2
    assert after[1] - before[1] <= 64 * 1024
    await place.restart()
    place.check()
    place.check_every_entry()
    await place.bookie.close()


@pytest.mark.parametrize(("ledgers_count", "entries_count"), SCALES)
@pytest.mark.parametrize("memory_share", [1, 20])
async def test_random_acknowledgements_among_the_holes(ledgers_count, entries_count, memory_share):
    chance = random.Random(entries_count + memory_share)
    memory_bytes = entries_count // 6 // memory_share
    place = Place(ledgers_count, entries_count, memory_bytes=memory_bytes)
    await place.start()
    place.acknowledge_every_second()
    await place.persister.flush()
    for _ in range(8):
        place.acknowledge([chance.randrange(entries_count) for _ in range(500)])
        target = place.model.find(0) + chance.randrange(entries_count // 50)
        place.state.acknowledge_cumulative(place.position(target), None, None, 0.0)
        place.model[: target + 1] = b"\x01" * (target + 1)
        await place.persister.flush()
        await place.persister.load()
        place.check()
        if chance.random() < 0.4:
            place.owner.cursor_memory = CursorMemory(memory_bytes)
            await place.restart()
            await place.persister.load()
            place.check()
    await place.persister.load_all()
    place.state.check()
    place.check_every_entry()
    await place.bookie.close()


async def test_half_acknowledged_batches_are_packed_and_come_back():
    count = 20_000
    place = Place(1, count)
    await place.start()
    for start in range(0, count, 1000):
        positions = [place.position(each) for each in range(start, start + 1000)]
        place.state.acknowledge(positions, [[0b0101010101]] * 1000, 0.0)
    await place.persister.flush()
    before = place.state.batch_deleted_indexes
    await place.restart()
    after = place.state.batch_deleted_indexes
    assert len(after) == count
    assert list(after.items()) == list(before.items())
    await place.bookie.close()


@pytest.mark.slow
def test_a_million_half_acknowledged_batches_take_little_memory():
    import tracemalloc  # noqa: PLC0415 - only here

    ledgers = ledgers_of(20, 1_000_000)
    state = CursorState(ledgers, Position(1, -1))
    tracemalloc.start()
    for ledger_id in ledgers.ledger_ids:
        for entry_id in range(50_000):
            state.acknowledge([Position(ledger_id, entry_id)], [[0b0101010101]], 0.0)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(state.batch_deleted_indexes) == 1_000_000
    assert used <= 48 * MEGABYTE
