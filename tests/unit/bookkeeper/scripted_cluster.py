"""A store on scripted bookies in virtual time, for tests of what uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from pulsar_py.bookkeeper.bookies.connection import ConnectionLimits
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata, decode
from pulsar_py.bookkeeper.metadata.ledger_paths import ledger_path
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore, BookKeeperSettings
from pulsar_py.common.errors import StorageError
from pulsar_py.ledgers.store import LedgerOptions, LedgerWriter
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_ids import CountedLedgerIds
from pulsar_py.testing.network import run_simulated
from tests.unit.bookkeeper.recorded import RECORDED
from tests.unit.bookkeeper.scripted_bookie import ScriptedBookie

SETTINGS = BookKeeperSettings(
    max_entry_bytes=1_000_000,
    max_pinned_bytes=3_000_000,
    answer_timeout_seconds=30.0,
    connection=ConnectionLimits(connect_timeout_seconds=4.0, request_timeout_seconds=8.0),
    batch_read_bytes=0,  # what each entry is asked of can be counted
)
THREE = LedgerOptions(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2)


class Listener:
    """Remembers what a writer's owner is told."""

    def __init__(self) -> None:
        self.confirmed: list[int] = []
        self.failures: list[StorageError] = []

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        assert not self.failures
        assert last_add_confirmed > self.last
        self.confirmed.append(last_add_confirmed)

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        assert not self.failures
        self.failures.append(error)

    @property
    def last(self) -> int:
        return self.confirmed[-1] if self.confirmed else -1


class ScriptedCluster:
    """Bookies, their registrations, and clients of them."""

    def __init__(self, bookies_count: int) -> None:
        self.clock = VirtualClock()
        self.metadata = MemoryMetadataStore(self.clock)
        self.bookies = [ScriptedBookie(3180 + number) for number in range(1, bookies_count + 1)]
        self.ids = CountedLedgerIds()
        self.stores: list[BookKeeperLedgerStore] = []

    async def start(self) -> None:
        layout = bytes.fromhex(RECORDED["bookies"]["LAYOUT"])
        await self.metadata.put("/ledgers/LAYOUT", layout)
        for bookie in self.bookies:
            await bookie.start()
            await self.register(bookie)

    async def register(self, bookie: ScriptedBookie) -> None:
        await self.metadata.put(f"/ledgers/available/{bookie.bookie_id}", b"")

    async def unregister(self, *bookies: ScriptedBookie) -> None:
        for bookie in bookies:
            await self.metadata.delete(f"/ledgers/available/{bookie.bookie_id}")

    async def connect(
        self, *, is_deaf: bool = False, settings: BookKeeperSettings = SETTINGS
    ) -> BookKeeperLedgerStore:
        """One more client; a deaf one hears nothing of what others do to the metadata."""
        metadata = self.metadata.connect()
        if is_deaf:
            metadata._shared.watches.remove(metadata._watches)
        store = await BookKeeperLedgerStore.connect(
            metadata, self.clock, self.ids, chance=Random(1), settings=settings
        )
        self.stores.append(store)
        return store

    async def close(self) -> None:
        for store in self.stores:
            await store.close()
            assert store.figures()["pinned_bytes"] == 0
            assert store.figures()["open_writers"] == 0
        for bookie in self.bookies:
            bookie.stop()

    async def record(self, ledger_id: int) -> LedgerMetadata:
        path = ledger_path("/ledgers", ledger_id)
        found = await self.metadata.get(path)
        assert found is not None
        return decode(path, found.value)

    async def put_record(self, ledger_id: int, metadata: bytes) -> None:
        await self.metadata.put(ledger_path("/ledgers", ledger_id), metadata)

    def bookie(self, bookie_id: str) -> ScriptedBookie:
        return next(each for each in self.bookies if each.bookie_id == bookie_id)

    async def ensemble(self, ledger_id: int) -> list[ScriptedBookie]:
        """The bookies of a ledger's last segment, in their places."""
        record = await self.record(ledger_id)
        return [self.bookie(bookie_id) for bookie_id in record.last_segment.bookie_ids]

    def others(self, ensemble: list[ScriptedBookie]) -> list[ScriptedBookie]:
        return [bookie for bookie in self.bookies if bookie not in ensemble]


Test = Callable[[ScriptedCluster, BookKeeperLedgerStore], Awaitable[None]]


def with_cluster(test: Test, bookies_count: int = 3) -> None:
    async def work() -> None:
        cluster = ScriptedCluster(bookies_count)
        await cluster.start()
        await test(cluster, await cluster.connect())
        await cluster.close()

    run_simulated(work())


async def filled(
    store: BookKeeperLedgerStore, count: int, options: LedgerOptions = THREE
) -> tuple[LedgerWriter, Listener]:
    """A ledger with so many confirmed entries."""
    listener = Listener()
    writer = await store.create(listener, options)
    for entry_id in range(count):
        writer.append(payload(entry_id))
    await asyncio.sleep(0.1)
    assert listener.last == count - 1
    return writer, listener


def payload(entry_id: int) -> bytes:
    return b"%d " % entry_id * (entry_id % 5 + 1)


def length_of(count: int) -> int:
    return sum(len(payload(entry_id)) for entry_id in range(count))
