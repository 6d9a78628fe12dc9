"""Settings of the storage engine, in the files it writes and removes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pulsar_py.common.disks.disk import AppendFile
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.ledgers.store import LedgerWriter
from pulsar_py.server.config import BrokerConfig
from pulsar_py.standalone import bookie_settings
from pulsar_py.storage.bookie import Bookie
from pulsar_py.testing.clock import VirtualClock
from tests.unit.storage.support import Ids, write


@asynccontextmanager
async def bookie(
    clock: VirtualClock, disk: MemoryDisk | None = None, **settings: object
) -> AsyncIterator[Bookie]:
    started = await Bookie.start(
        disk or MemoryDisk(),
        clock=clock,
        ledger_ids=Ids(),
        settings=bookie_settings(BrokerConfig(**settings), is_volatile=False),
    )
    try:
        yield started
    finally:
        await started.close()


async def ledger(store: Bookie, kilobytes: int) -> LedgerWriter:
    """A ledger of so many kilobytes, confirmed, in entries that are written twice."""
    writer, _ = await write(store, max(kilobytes // 5, 1), 1000 * min(kilobytes, 5))
    return writer


class Noting(MemoryDisk):
    """Notes the directories with files that are written past the page cache."""

    def __init__(self) -> None:
        super().__init__()
        self.direct: set[str] = set()

    async def create(
        self, path: str, *, reserve_bytes: int = 0, is_direct: bool = False
    ) -> AppendFile:
        self.direct |= {path.split("/", maxsplit=1)[0]} if is_direct else set()
        return await super().create(path, reserve_bytes=reserve_bytes, is_direct=is_direct)

    async def open_again(self, path: str, *, is_direct: bool = False) -> AppendFile:
        self.direct |= {path.split("/", maxsplit=1)[0]} if is_direct else set()
        return await super().open_again(path, is_direct=is_direct)


def log_bytes(store: Bookie) -> int:
    return store.statistics().entry_log_bytes


@pytest.mark.setting("dbStorage_writeCacheMaxSizeMb")
async def test_entries_not_yet_in_an_entry_log(virtual_clock: VirtualClock) -> None:
    async with bookie(virtual_clock, dbStorage_writeCacheMaxSizeMb=1) as store:
        await ledger(store, 2000)
        await asyncio.sleep(0.1)
        assert log_bytes(store)


@pytest.mark.setting("dbStorage_readAheadCacheMaxSizeMb")
async def test_entries_read_from_entry_logs(virtual_clock: VirtualClock) -> None:
    async with bookie(virtual_clock, dbStorage_readAheadCacheMaxSizeMb=0) as store:
        writer = await ledger(store, 1)
        await store.flush()
        await writer.read(0, 0, 1000)
        assert store.statistics().read_cache_bytes == 0


@pytest.mark.setting("journalMaxSizeMB")
async def test_how_long_a_journal_file_gets(virtual_clock: VirtualClock) -> None:
    disk = MemoryDisk()
    async with bookie(virtual_clock, disk, journalMaxSizeMB=1) as store:
        await ledger(store, 2000)
        await ledger(store, 1)
        assert len(await disk.list_directory("journal")) > 1


@pytest.mark.setting("journalReuseFiles", "journalMaxBackups")
@pytest.mark.parametrize(
    ("reused", "backups", "kept"), [(True, 1, 1), (True, 2, 2), (True, 0, 0), (False, 2, 0)]
)
async def test_how_many_journal_files_are_kept_to_be_used_again(
    virtual_clock: VirtualClock, *, reused: bool, backups: int, kept: int
) -> None:
    disk = MemoryDisk()
    settings = {"journalReuseFiles": reused, "journalMaxBackups": backups, "journalMaxSizeMB": 1}
    async with bookie(virtual_clock, disk, **settings) as store:
        for _ in range(3):
            await ledger(store, 2000)
        await store.flush()
        names = await disk.list_directory("journal")
        assert sum(name.startswith("spare-") for name in names) == kept


@pytest.mark.setting("journalDirectIO", "dbStorage_directIOEntryLogger")
@pytest.mark.parametrize(("journal", "logs"), [(True, False), (False, True)])
async def test_which_files_are_written_past_the_page_cache(
    virtual_clock: VirtualClock, *, journal: bool, logs: bool
) -> None:
    disk = Noting()
    settings = {"journalDirectIO": journal, "dbStorage_directIOEntryLogger": logs}
    async with bookie(virtual_clock, disk, journalMaxSizeMB=1, **settings) as store:
        for _ in range(3):
            await ledger(store, 2000)
            await store.flush()
    assert ("journal" in disk.direct, "entries" in disk.direct) == (journal, logs)


@pytest.mark.setting("journalDirectIO")
@pytest.mark.parametrize("journal", [True, False])
async def test_large_entries_are_written_as_the_journal_is(
    virtual_clock: VirtualClock, *, journal: bool
) -> None:
    disk = Noting()
    async with bookie(virtual_clock, disk, journalDirectIO=journal) as store:
        await write(store, 20, 100_000)
    assert disk.direct == ({"entries"} if journal else set())


@pytest.mark.setting("flushInterval")
async def test_when_entries_are_in_an_entry_log(virtual_clock: VirtualClock) -> None:
    async with bookie(virtual_clock, flushInterval=5000) as store:
        await ledger(store, 1)
        await asyncio.sleep(4)
        assert not log_bytes(store)
        await asyncio.sleep(2.1)
        assert log_bytes(store)


@pytest.mark.setting("logSizeLimit")
async def test_how_long_an_entry_log_gets(virtual_clock: VirtualClock) -> None:
    async with bookie(virtual_clock, logSizeLimit=262_144) as store:
        for _ in range(3):
            await ledger(store, 200)
        await store.flush()
        assert len(store.storage.manifest.logs) > 1


@pytest.mark.setting("gcWaitTime")
async def test_entry_logs_of_which_nothing_is_left_go(virtual_clock: VirtualClock) -> None:
    disk = MemoryDisk()
    async with bookie(virtual_clock, disk, gcWaitTime=10_000) as store:
        writer = await ledger(store, 1)
        await store.flush()
        await store.delete(writer.ledger_id)
        await store.flush()
        assert len(await disk.list_directory("entries")) == 1
        await asyncio.sleep(12)
        assert log_bytes(store) == 0
        assert await disk.list_directory("entries") == []
        writer = await ledger(store, 1)
        await store.flush()
        assert log_bytes(store)


@pytest.mark.setting(
    "minorCompactionInterval",
    "minorCompactionThreshold",
    "majorCompactionInterval",
    "majorCompactionThreshold",
)
@pytest.mark.parametrize(("kind", "threshold", "live"), [("minor", 0.5, 0.4), ("major", 0.95, 0.9)])
async def test_when_entry_logs_are_rewritten(
    virtual_clock: VirtualClock, kind: str, threshold: float, live: float
) -> None:
    settings = {f"{kind}CompactionInterval": 60, f"{kind}CompactionThreshold": threshold}
    async with bookie(virtual_clock, **settings) as store:
        gone = await ledger(store, round(1000 * (1 - live)))
        await ledger(store, round(1000 * live))
        await store.flush()
        await store.delete(gone.ledger_id)
        await store.flush()
        await asyncio.sleep(59)
        assert log_bytes(store) > 1_000_000
        await asyncio.sleep(3)
        assert log_bytes(store) < 1_000_000


async def test_an_interval_of_0_is_never() -> None:
    settings = bookie_settings(
        BrokerConfig(minorCompactionInterval=0, majorCompactionInterval=0), is_volatile=False
    )
    assert settings.minor_compaction_interval_seconds == float("inf")
    assert settings.major_compaction_interval_seconds == float("inf")
