from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import CorruptDataError, StorageError
from pulsar_py.storage.entry_logs import ledger_storage
from pulsar_py.storage.entry_logs.ledger_storage import LedgerStorage
from pulsar_py.storage.shared.ledger_record import TOMBSTONE, LedgerRecord
from pulsar_py.storage.shared.ledgers import Ledger
from pulsar_py.storage.shared.write_cache import Generation
from pulsar_py.testing.disk import SimulatedDisk
from tests.unit.storage.support import SMALL, entry


async def storage_on(disk: MemoryDisk) -> LedgerStorage:
    for directory in ("entries", "index"):
        await disk.make_directory(directory)
    return await LedgerStorage.open(disk, SMALL)


def generation(mark: tuple[int, int], *ledgers: tuple[Ledger, int]) -> Generation:
    """A generation with so many more entries of each ledger."""
    made = Generation(0.0, mark)
    for ledger, count in ledgers:
        first = ledger.last_add_confirmed + 1
        entries = [entry(entry_id) for entry_id in range(first, first + count)]
        made.add(ledger, entries, 100 * count)
        ledger.last_add_pushed = ledger.last_add_taken = first + count - 1
        if count:
            ledger.confirm(first + count - 1, 100 * count)
    return made


async def read(storage: LedgerStorage, ledger_id: int, entry_id: int) -> bytes:
    entries, place = await storage.load(ledger_id, entry_id, 3000)
    return entries[place]


async def test_a_flushed_generation_is_there_after_a_restart() -> None:
    disk = MemoryDisk()
    storage = await storage_on(disk)
    one, two = Ledger(1, LedgerRecord()), Ledger(2, LedgerRecord())
    await storage.flush(generation((1, 100), (one, 250), (two, 3)))
    await storage.flush(generation((1, 200), (one, 50)))
    await storage.close()

    storage = await storage_on(disk)

    assert storage.manifest.mark == (1, 200)
    assert len(storage.manifest.logs) > 1
    for entry_id in (0, 9, 10, 249, 250, 299):
        assert await read(storage, 1, entry_id) == entry(entry_id)
    record = await storage.record(1)
    assert record is not None
    assert (record.last_entry_id, record.length_bytes) == (299, 30_000)
    assert list(await storage.index.ledger_ids()) == [1, 2]
    await storage.close()


async def test_read_ahead_lands_in_the_read_cache() -> None:
    storage = await storage_on(MemoryDisk())
    await storage.flush(generation((1, 1), (Ledger(1, LedgerRecord()), 60)))

    await storage.load(1, 0, 3000)
    read_bytes = storage.readers.read_bytes

    assert storage.read_cache.find(1, 15) is not None
    assert storage.read_cache.find(1, 40) is None
    assert 2000 < read_bytes < 3500
    await storage.close()


async def test_logs_of_deleted_ledgers_go() -> None:
    disk = MemoryDisk()
    storage = await storage_on(disk)
    one, two = Ledger(1, LedgerRecord()), Ledger(2, LedgerRecord())
    await storage.flush(generation((1, 1), (one, 400), (two, 10)))
    before = set(storage.manifest.logs)
    assert len(before) > 3

    gone = Generation(0.0, (1, 2))
    one.record = TOMBSTONE
    gone.set_record(one)
    gone.touch(one)
    await storage.flush(gone)

    assert len(storage.manifest.logs) == 1
    assert await disk.list_directory("entries") == [f"{max(before):010}"]
    assert await storage.record(1) is None
    assert storage.read_cache.find(1, 0) is None
    assert await read(storage, 2, 9) == entry(9)
    # The same deletion again, as after a second call, counts nothing twice.
    await storage.flush(gone)
    await storage.close()


async def test_a_failed_flush_changes_nothing_and_can_be_repeated() -> None:
    disk = MemoryDisk(capacity_bytes=20_000)
    storage = await storage_on(disk)
    ledger = Ledger(1, LedgerRecord())
    await storage.flush(generation((1, 1), (ledger, 50)))
    before = storage.manifest
    too_much = generation((1, 2), (ledger, 150))

    with pytest.raises(StorageError):
        await storage.flush(too_much)
    assert storage.manifest == before
    assert await read(storage, 1, 49) == entry(49)

    disk._capacity_bytes = 1 << 40
    await storage.flush(too_much)
    assert await read(storage, 1, 199) == entry(199)
    await storage.close()


async def test_damage_is_reported_with_its_place() -> None:
    disk = MemoryDisk()
    storage = await storage_on(disk)
    await storage.flush(generation((1, 1), (Ledger(1, LedgerRecord()), 50)))
    data = bytearray(await disk.read_whole("entries/0000000001"))
    data[1500] ^= 1
    await storage.close()
    await disk.replace("entries/0000000001", data)

    storage = await storage_on(disk)

    assert await read(storage, 1, 30) == entry(30)
    with pytest.raises(CorruptDataError, match=r"entries/0000000001: offset \d+: "):
        await read(storage, 1, 12)
    await disk.remove("entries/0000000001")
    await storage.readers.forget(1)
    with pytest.raises(CorruptDataError, match="entries/0000000001: missing"):
        await storage.load(1, 49, 0)
    with pytest.raises(CorruptDataError, match="entry 99 is not in the index"):
        await storage.load(1, 99, 0)
    await storage.close()


async def test_tables_are_merged_and_leftovers_removed() -> None:
    disk = MemoryDisk()
    storage = await storage_on(disk)
    ledger = Ledger(1, LedgerRecord())
    for place in range(8):
        await storage.flush(generation((1, place), (ledger, 10)))
    while await storage.merge():
        pass
    assert len(storage.index.tables) < 4
    await storage.close()
    for path in ("entries/0000000099", "index/0000000099", "index/0000000098.tmp"):
        await disk.replace(path, b"left over")

    storage = await storage_on(disk)
    await storage.remove_leftover_tables()
    await storage.remove_leftover_logs()

    assert set(await disk.list_directory("index")) == {f"{t:010}" for t in storage.manifest.tables}
    assert set(await disk.list_directory("entries")) == {f"{t:010}" for t in storage.manifest.logs}
    for entry_id in range(80):
        assert await read(storage, 1, entry_id) == entry(entry_id)
    await storage.close()


async def test_a_flush_syncs_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_storage, "SLICE_BYTES", 1_000)
    disk = SimulatedDisk(random.Random(1))
    await disk.lock()
    settings = replace(SMALL, entry_log_bytes=1_000_000, flush_sync_bytes=4_000)
    for directory in ("entries", "index"):
        await disk.make_directory(directory)
    storage = await LedgerStorage.open(disk, settings)
    synced: list[str] = []

    def note(path: str) -> float:
        synced.append(path)
        return 0.0

    disk.slow = note
    await storage.flush(generation((1, 10), (Ledger(1, LedgerRecord()), 200)))

    size_bytes = sum(log.size_bytes for log in storage.manifest.logs.values())
    assert size_bytes > 20_000
    assert size_bytes // 5_000 <= synced.count("entries/0000000001") <= size_bytes // 4_000 + 1
    await storage.close()
