from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.entry_logs.entry_log import log_path
from pulsar_py.storage.entry_logs.garbage import compact_logs
from pulsar_py.storage.entry_logs.ledger_storage import Copy
from pulsar_py.storage.handles import BookieLedger
from tests.unit.storage.support import SMALL, Listener, entry, start, write


async def all_entries(reader: object, count: int) -> list[bytes]:
    assert isinstance(reader, BookieLedger)
    read: list[bytes] = []
    while len(read) < count:
        read += await reader.read(len(read), count - 1, 2000)
    return read


async def test_compaction_leaves_little_more_than_what_lives() -> None:
    disk = MemoryDisk()
    bookie = await start(disk)
    writers = [(await write(bookie, 40))[0] for _ in range(20)]
    await bookie.flush()
    for writer in writers[2:]:
        await bookie.delete(writer.ledger_id)

    assert await bookie.collect_garbage() > 0
    await bookie.collect_garbage()

    statistics = bookie.statistics()
    stored = sum([len(await disk.read_whole(log_path(n))) for n in bookie.storage.manifest.logs])
    assert statistics.entry_log_live_bytes < stored < 1.3 * statistics.entry_log_live_bytes
    for writer in writers[:2]:
        assert await all_entries(writer, 40) == [entry(entry_id) for entry_id in range(40)]
    await bookie.close()


async def used_bytes(disk: Disk) -> int:
    paths = [
        f"{directory}/{name}"
        for directory in ("journal", "entries", "index")
        for name in await disk.list_directory(directory)
    ]
    return sum([len(await disk.read_whole(path)) for path in [*paths, "MANIFEST"]])


async def test_all_files_together_shrink_after_nine_of_ten_interleaved_ledgers_went() -> None:
    disk = MemoryDisk()
    bookie = await start(
        disk,
        entry_log_bytes=400_000,
        run_bytes=20_000,
        write_cache_bytes=300_000,
        journal_spare_files_count=0,
        journal_files_count=1_000,
    )
    owners = [Listener() for _ in range(100)]
    writers = [await bookie.create(owner, LedgerOptions()) for owner in owners]
    for entry_id in range(40):
        for writer in writers:
            writer.append(entry(entry_id, 1000))
        for owner in owners:
            await owner.until(entry_id)
    await asyncio.gather(
        *(bookie.delete(each.ledger_id) for n, each in enumerate(writers) if n % 10)
    )

    for _ in range(2):
        await bookie.collect_garbage()

    live_bytes = 10 * 40 * 1000
    assert live_bytes < await used_bytes(disk) < 1.4 * live_bytes
    for writer in writers[::10]:
        assert await all_entries(writer, 40) == [entry(number, 1000) for number in range(40)]
    await bookie.close()


async def test_reads_and_deletions_go_on_meanwhile() -> None:
    bookie = await start(MemoryDisk(), read_cache_bytes=0)
    writers = [(await write(bookie, 100))[0] for _ in range(12)]
    await bookie.flush()
    for writer in writers[4:]:
        await bookie.delete(writer.ledger_id)
    await bookie.flush()

    reading = [asyncio.ensure_future(all_entries(writer, 100)) for writer in writers[:3]]  # noqa: TID251 - a test's own
    _, *read = await asyncio.gather(
        bookie.collect_garbage(threshold=1.0), *reading, bookie.delete(writers[3].ledger_id)
    )

    assert read[:3] == [[entry(entry_id) for entry_id in range(100)]] * 3
    await bookie.flush()
    await bookie.collect_garbage(threshold=1.0)
    assert bookie.statistics().entry_log_live_bytes < 3 * 100 * 100 * 1.2
    await bookie.close()


@pytest.mark.parametrize("goes_before", ["header", "runs", "publication"])
async def test_a_log_may_go_while_it_is_copied(
    monkeypatch: pytest.MonkeyPatch, goes_before: str
) -> None:
    bookie = await start(MemoryDisk(), entry_log_bytes=100_000, read_cache_bytes=0)
    storage = bookie.storage
    one, two = [(await write(bookie, 60))[0] for _ in range(2)]
    await bookie.flush()
    await storage.roll_log()
    (log_id,) = storage.manifest.logs
    read, publish = storage.readers.read, storage.publish_copies
    reads_count = 0

    async def let_it_go() -> None:
        for writer in (one, two):
            await bookie.delete(writer.ledger_id)
        await bookie.flush()
        assert log_id not in storage.manifest.logs

    async def read_log(number: int, offset: int, length: int) -> bytes:
        nonlocal reads_count
        reads_count += 1
        if reads_count == {"header": 1, "runs": 2}.get(goes_before):
            await let_it_go()
        return await read(number, offset, length)

    async def publish_late(number: int, copies: Mapping[int, list[Copy]]) -> None:
        if goes_before == "publication":
            await let_it_go()
        await publish(number, copies)

    monkeypatch.setattr(storage.readers, "read", read_log)
    monkeypatch.setattr(storage, "publish_copies", publish_late)
    await compact_logs(storage, [log_id])

    assert log_id not in storage.manifest.logs
    three, _ = await write(bookie, 60)
    await bookie.flush()
    assert await all_entries(three, 60) == [entry(entry_id) for entry_id in range(60)]
    await bookie.close()


async def test_the_logs_of_a_collection_become_few() -> None:
    disk = MemoryDisk()
    bookie = await start(disk)
    writers = [(await write(bookie, 40))[0] for _ in range(20)]
    await bookie.flush()
    for writer in writers[::2]:
        await bookie.delete(writer.ledger_id)

    assert await bookie.collect_garbage(threshold=0.9) > 5

    live_bytes = bookie.statistics().entry_log_live_bytes
    full_logs = live_bytes // SMALL.entry_log_bytes
    assert len(await disk.list_directory("entries")) <= full_logs + 2
    for writer in writers[1::2]:
        assert await all_entries(writer, 40) == [entry(entry_id) for entry_id in range(40)]
    await bookie.close()


async def test_a_log_that_is_copied_to_stays_when_all_in_it_is_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bookie = await start(MemoryDisk(), entry_log_bytes=100_000, read_cache_bytes=0)
    storage = bookie.storage
    writers = []
    for _ in range(2):
        writers.append((await write(bookie, 60))[0])
        await bookie.flush()
        await storage.roll_log()
    one, two = writers
    publish = storage.publish_copies
    deleted: list[int] = []

    async def publish_and_delete(log_id: int, copies: Mapping[int, list[Copy]]) -> None:
        await publish(log_id, copies)
        if not deleted and {*copies} == {one.ledger_id}:
            deleted.append(one.ledger_id)
            await bookie.delete(one.ledger_id)
            await bookie.flush()

    monkeypatch.setattr(storage, "publish_copies", publish_and_delete)
    await compact_logs(storage, list(storage.manifest.logs))

    assert deleted
    assert await all_entries(two, 60) == [entry(entry_id) for entry_id in range(60)]
    await bookie.close()


async def test_a_damaged_living_run_keeps_its_log() -> None:
    disk = MemoryDisk()
    bookie = await start(disk)
    await write(bookie, 50)
    await bookie.flush()
    data = bytearray(await disk.read_whole(log_path(1)))
    data[700] ^= 1
    await disk.replace(log_path(1), data)

    with pytest.raises(CorruptDataError, match="entries/0000000001: offset"):
        await compact_logs(bookie.storage, [1])

    data[700] ^= 1
    data[data.index(b"RUN1", 1000)] ^= 1  # Where a run should begin, its magic is gone.
    await disk.replace(log_path(1), data)
    await bookie.storage.readers.forget(1)
    with pytest.raises(CorruptDataError, match="bytes of live runs, expected"):
        await compact_logs(bookie.storage, [1])
    assert 1 in bookie.storage.manifest.logs
    await bookie.close()
