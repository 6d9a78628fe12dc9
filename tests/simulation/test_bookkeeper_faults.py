"""Ledgers on bookies that die, hang, refuse and answer late, in virtual time from a seed.

Bookies keep what they stored. Whatever happens: what a writer was told is confirmed is in the
ledger that others recover, entries are what was appended, and all who recover agree on its end,
beyond which the writer confirms nothing, however long it goes on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from pulsar_py.bookkeeper.protocol.frames import BookieCode
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.errors import StorageError, StoreUnavailableError
from pulsar_py.ledgers.store import LedgerOptions, LedgerReader, LedgerWriter
from pulsar_py.testing.network import run_simulated
from tests.unit.bookkeeper.scripted_bookie import ScriptedBookie
from tests.unit.bookkeeper.scripted_cluster import SETTINGS, Listener, ScriptedCluster

BATCHED = replace(SETTINGS, batch_read_bytes=200)
SEEDS = range(60)
QUORUMS = [(3, 3, 2), (3, 2, 2), (3, 3, 3), (2, 2, 1), (4, 3, 2)]
FAULTS = ("dies", "hangs", "refuses", "is late", "hangs up", "loses")


def data(entry_id: int) -> bytes:
    return b"%d." % entry_id * (entry_id % 7)


class World:
    """One run: a writer, those who recover its ledger, and bookies with faults."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.cluster = ScriptedCluster(bookies_count=self.chance.choice((4, 5)))
        for bookie in self.cluster.bookies:
            bookie.takes_batches = self.chance.random() < 0.7  # the others close connections
        self.broken: dict[int, str] = {}  # by port: what is wrong with a bookie
        self.fault_share = self.chance.choice((0.1, 0.3, 0.6))
        self.seen: Counter[str] = Counter()

    async def break_one(self) -> None:
        bookie = self.chance.choice(self.cluster.bookies)
        if bookie.port in self.broken:
            await self.mend(bookie)
            return
        fault = self.broken[bookie.port] = self.chance.choice(FAULTS)
        self.seen[fault] += 1
        match fault:
            case "dies":
                bookie.stop()
            case "hangs":
                bookie.is_mute = True
            case "refuses":
                codes = (BookieCode.EIO, BookieCode.ETOOMANYREQUESTS, BookieCode.EREADONLY)
                code = self.chance.choice(codes)
                bookie.says = lambda _operation, _ledger, _entry: code
            case "is late":
                bookie.is_holding = True
            case "loses":
                bookie.loses = lambda: self.chance.random() < 0.6
            case "hangs up":
                bookie.cut()

    async def mend(self, bookie: ScriptedBookie) -> None:
        fault = self.broken.pop(bookie.port, None)
        bookie.is_mute = False
        bookie.loses = lambda: False
        bookie.says = lambda _operation, _ledger, _entry: None
        bookie.release()
        if fault == "dies":
            await bookie.start()

    async def mend_all(self) -> None:
        for bookie in self.cluster.bookies:
            await self.mend(bookie)

    async def write(self, writer: LedgerWriter, listener: Listener) -> None:
        """Append and let things happen, until the writer fails or it is enough."""
        for _ in range(self.chance.randrange(5, 40)):
            try:
                for _ in range(self.chance.randrange(1, 10)):
                    writer.append(data(writer.last_add_pushed + 1))
            except StorageError:
                self.seen["the writer failed"] += 1
                return
            if self.chance.random() < self.fault_share:
                await self.break_one()
            await asyncio.sleep(self.chance.choice((0, 0.001, 0.01, 0.5, 5)))

    async def leave_a_hole(self, writer: LedgerWriter) -> None:
        """Confirm entries that one bookie never got, which is back before anybody knows."""
        if self.chance.random() < 0.5:
            return
        await self.mend_all()
        record = await self.cluster.record(writer.ledger_id)
        bookie = self.cluster.bookie(self.chance.choice(record.last_segment.bookie_ids))
        bookie.is_mute = True
        try:
            for _ in range(self.chance.randrange(1, 6)):
                writer.append(data(writer.last_add_pushed + 1))
                await asyncio.sleep(self.chance.choice((0, 0.1)))
        except StorageError:
            return
        await asyncio.sleep(0.1)
        bookie.is_mute = False

    async def go_on(self, writer: LedgerWriter) -> None:
        """A writer that does not know that it lost its ledger."""
        try:
            for _ in range(100):
                writer.append(data(writer.last_add_pushed + 1))
                await asyncio.sleep(self.chance.choice((0.001, 0.01, 0.3)))
        except StorageError:
            self.seen["the writer was stopped"] += 1

    async def recover(self, store: BookKeeperLedgerStore, ledger_id: int) -> LedgerReader:
        """Try until it ends, with fewer and fewer faults."""
        for _ in range(3):
            try:
                return await store.recover(ledger_id)
            except StoreUnavailableError:
                self.seen["a recovery failed"] += 1
                await self.break_one()
        await self.mend_all()
        await asyncio.sleep(15)  # what was never answered is given up
        return await store.recover(ledger_id)

    async def run(self) -> None:
        cluster = self.cluster
        await cluster.start()
        store = await cluster.connect(is_deaf=True, settings=BATCHED)
        other, third = [await cluster.connect(settings=BATCHED) for _ in range(2)]
        listener = Listener()
        writer = await store.create(listener, LedgerOptions(*self.chance.choice(QUORUMS)))
        await self.write(writer, listener)
        await self.leave_a_hole(writer)
        confirmed = listener.last
        going_on = asyncio.get_running_loop().create_task(self.go_on(writer))
        recovering = asyncio.gather(
            self.recover(other, writer.ledger_id), self.recover(third, writer.ledger_id)
        )
        for _ in range(self.chance.randrange(6)):
            await asyncio.sleep(self.chance.choice((0.001, 0.1, 3)))
            await self.break_one()
        readers = await recovering
        end = readers[0].last_add_confirmed
        self.seen["entries"] += end + 1
        await going_on
        await asyncio.sleep(60)
        assert confirmed <= listener.last <= end <= writer.last_add_pushed
        figures = store.figures()
        self.seen["a bookie was replaced"] += int(figures["ensemble_changes_count"])
        self.seen["a bookie was tried again"] += int(figures["same_bookie_retries_count"])
        await self.mend_all()
        await asyncio.sleep(15)
        for reader in (*readers, await store.recover(writer.ledger_id)):
            assert reader.is_closed
            assert reader.last_add_confirmed == end
            await self.check_entries(reader, end)
        await cluster.close()

    async def check_entries(self, reader: LedgerReader, end: int) -> None:
        wanted = [data(entry_id) for entry_id in range(end + 1)]
        assert reader.length_bytes == sum(map(len, wanted))
        read: list[bytes] = []
        while len(read) <= end:
            read += map(bytes, await reader.read(len(read), end, 1000))
        assert read == wanted


@cache
def seen_in(seed: int) -> Counter[str]:
    """Run a seed, once in this process."""
    world = World(seed)
    run_simulated(world.run(), latency_seconds=0.0005)
    return world.seen


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_confirmed_is_recovered(seed: int) -> None:
    assert seen_in(seed)


def test_the_seeds_see_everything() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        seen += seen_in(seed)
    for each in (
        *FAULTS, "the writer failed", "the writer was stopped", "a recovery failed",
        "a bookie was replaced", "a bookie was tried again",
    ):  # fmt: skip
        assert seen[each], each
    assert seen["entries"] > 1000
