"""Any order of calls gives what a dictionary of lists would give, over restarts too."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import LedgerNotFoundError
from pulsar_py.ledgers.store import LedgerOptions, LedgerReader, LedgerWriter
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from tests.ledger_parts import all_ledgers

SETTINGS = BookieSettings(
    write_cache_bytes=4_000,
    append_limit_bytes=100_000_000,
    journal_group_bytes=1_500,
    journal_file_bytes=4_000,
    journal_block_bytes=512,
    entry_log_bytes=3_000,
    run_bytes=500,
    read_ahead_bytes=1_200,
    read_cache_bytes=2_500,
    index_cache_bytes=5_000,
    minimum_free_bytes=0,
)

STEPS = st.lists(
    st.sampled_from(
        ["create", "append", "append", "append", "read", "read", "close", "recover", "delete",
         "flush", "collect", "restart", "settle"]
    ),
    max_size=60,
)  # fmt: skip


class Machine:
    """The engine and its model side by side."""

    def __init__(self, seed: int, *, is_volatile: bool) -> None:
        self._chance = random.Random(seed)
        self._settings = replace(SETTINGS, is_volatile=is_volatile)
        self._disk = MemoryDisk()
        self._bookie: Bookie | None = None
        self._next_id = 0
        self._writers: dict[int, LedgerWriter] = {}
        self._readers: dict[int, LedgerReader] = {}
        self._model: dict[int, list[bytes]] = {}

    @property
    def bookie(self) -> Bookie:
        assert self._bookie is not None
        return self._bookie

    async def run(self, steps: list[str]) -> None:
        await self._start()
        for step in steps:
            await getattr(self, f"step_{step}")()
        await self.step_settle()
        await self._check_all()
        await self.bookie.close()

    async def next(self) -> int:
        """Ids grow, with gaps."""
        self._next_id += self._chance.randint(1, 3)
        return self._next_id

    async def _start(self) -> None:
        self._bookie = await Bookie.start(
            self._disk, clock=VirtualClock(), ledger_ids=self, settings=self._settings
        )

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        assert last_add_confirmed < len(self._model[ledger_id])

    def on_failed(self, ledger_id: int, error: Exception) -> None:
        self._writers.pop(ledger_id, None)

    def _some(self, among: dict[int, object]) -> int | None:
        return self._chance.choice(sorted(among)) if among else None

    async def step_create(self) -> None:
        writer = await self.bookie.create(self, LedgerOptions())
        self._model[writer.ledger_id] = []
        self._writers[writer.ledger_id] = self._readers[writer.ledger_id] = writer

    async def step_append(self) -> None:
        for ledger_id, writer in self._writers.items():
            for _ in range(self._chance.randint(0, 8)):
                data = self._chance.randbytes(self._chance.choice((0, 1, 50, 200, 1500)))
                assert writer.append(data) == len(self._model[ledger_id])
                self._model[ledger_id].append(data)
        await asyncio.sleep(0)

    async def step_settle(self) -> None:
        for ledger_id, writer in self._writers.items():
            while writer.last_add_confirmed < writer.last_add_pushed:  # noqa: ASYNC110
                await asyncio.sleep(0)
            assert writer.last_add_confirmed == len(self._model[ledger_id]) - 1

    async def step_read(self) -> None:
        if (ledger_id := self._some(self._readers)) is None:
            return
        reader, entries = self._readers[ledger_id], self._model[ledger_id]
        if reader.last_add_confirmed < 0:
            return
        first = self._chance.randint(0, reader.last_add_confirmed)
        last = self._chance.randint(first, reader.last_add_confirmed + 3)
        max_bytes = self._chance.choice((0, 100, 1000, 100_000))
        read = await reader.read(first, last, max_bytes)
        assert read == entries[first : first + len(read)]
        assert 1 <= len(read) <= last - first + 1
        assert len(read) == 1 or sum(map(len, read)) <= max_bytes

    async def step_close(self) -> None:
        if (ledger_id := self._some(self._writers)) is not None:
            writer = self._writers.pop(ledger_id)
            await writer.close()
            del self._model[ledger_id][writer.last_add_confirmed + 1 :]

    async def step_recover(self) -> None:
        if (ledger_id := self._some(self._readers)) is not None:
            confirmed = self._readers[ledger_id].last_add_confirmed
            reader = self._readers[ledger_id] = await self.bookie.recover(ledger_id)
            assert confirmed <= reader.last_add_confirmed < len(self._model[ledger_id])
            del self._model[ledger_id][reader.last_add_confirmed + 1 :]

    async def step_delete(self) -> None:
        if (ledger_id := self._some(self._readers)) is not None:
            await self.bookie.delete(ledger_id)
            self._writers.pop(ledger_id, None)
            reader = self._readers.pop(ledger_id)
            del self._model[ledger_id]
            try:
                await reader.read(0, 0, 100)
            except LedgerNotFoundError:
                return
            raise AssertionError("read from a deleted ledger")

    async def step_flush(self) -> None:
        await self.bookie.flush()

    async def step_collect(self) -> None:
        await self.bookie.collect_garbage(threshold=self._chance.choice((0.3, 0.9, 1.1)))

    async def step_restart(self) -> None:
        if self._settings.is_volatile:
            return
        await self.step_settle()
        await self.bookie.close()
        self._writers.clear()
        await self._start()
        for ledger_id in self._model:
            self._readers[ledger_id] = await self.bookie.open(ledger_id)

    async def _check_all(self) -> None:
        assert await all_ledgers(self.bookie) == sorted(self._model)
        for ledger_id, entries in self._model.items():
            reader = self._readers[ledger_id]
            read: list[bytes] = []
            while len(read) <= reader.last_add_confirmed:
                read += await reader.read(len(read), len(entries), 700)
            assert read == entries
            assert reader.length_bytes == sum(map(len, entries))


@given(STEPS, st.integers(0, 2**32), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_engine_is_a_dictionary_of_lists(
    steps: list[str],
    seed: int,
    is_volatile: bool,  # noqa: FBT001 - hypothesis gives positions
) -> None:
    run_simulated(Machine(seed, is_volatile=is_volatile).run(["create", *steps]))
