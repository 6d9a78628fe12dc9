from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from functools import partial
from itertools import pairwise

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import DiskFullError, LedgerNotFoundError, StorageError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.store import LedgerOptions, LedgerWriter
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.housekeeper import (
    FLUSH_REST_SECONDS,
    RELEASE_ENTRIES_COUNT,
    disk_room_bytes,
    has_time_to_rest,
)
from pulsar_py.storage.shared.write_cache import Generation
from pulsar_py.testing.disk import SimulatedDisk
from tests.unit.storage.support import Ids, Listener, entry, fill, start, turns, write


async def until_flushed(bookie: Bookie) -> None:
    async with asyncio.timeout(60):
        while bookie.statistics().write_cache_bytes:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0)


async def test_a_full_generation_is_flushed_and_journals_go() -> None:
    disk = MemoryDisk()
    bookie = await start(disk, write_cache_bytes=30_000)
    writer, listener = await write(bookie, 1)
    for entry_id in range(1, 1000):
        writer.append(entry(entry_id))
    await listener.until(999)
    await turns()

    assert bookie.statistics().write_cache_bytes < 80_000
    assert bookie.storage.manifest.mark[0] > 1
    assert "0000000001" not in await disk.list_directory("journal")
    await bookie.close()


@pytest.mark.parametrize("is_asked_for", [False, True])
async def test_a_flush_that_nobody_waits_for_rests(
    monkeypatch: pytest.MonkeyPatch, *, is_asked_for: bool
) -> None:
    rests: list[float] = []

    async def rest(_: SystemClock, delay_seconds: float) -> None:
        rests.append(delay_seconds)

    monkeypatch.setattr(SystemClock, "sleep", rest)
    cache_bytes = 10_000_000 if is_asked_for else 400_000
    bookie = await start(
        MemoryDisk(),
        write_cache_bytes=cache_bytes,
        append_limit_bytes=2 * cache_bytes,
        journal_files_count=10**6,
        disk_check_interval_seconds=3600.0,
    )
    writer, listener = await write(bookie, 1)
    for _ in range(400):  # a run each, of which 200 are a piece
        last = writer.append(bytes(1000))
    await listener.until(last)
    if is_asked_for:
        await bookie.flush()
        assert not rests
    else:
        await turns(500)
        assert bookie.storage.manifest.logs
        assert rests
        assert set(rests) == {FLUSH_REST_SECONDS}
    await bookie.close()


def test_a_flush_rests_while_it_is_ahead_of_what_fills_the_cache() -> None:
    def has_time(written: int, filled: int) -> bool:
        return has_time_to_rest(
            written_bytes=written, sealed_bytes=100, filled_bytes=filled, write_cache_bytes=100
        )

    assert has_time(1, 0)
    assert has_time(50, 24)
    assert not has_time(50, 25)
    assert not has_time(0, 0)
    assert not has_time(99, 100)


async def test_the_entries_of_a_flushed_generation_are_freed_in_steps() -> None:
    bookie = await start(MemoryDisk(), write_cache_bytes=10_000_000, append_limit_bytes=20_000_000)
    writer, listener = await write(bookie, 1)
    for _ in range(3 * RELEASE_ENTRIES_COUNT):
        writer.append(b"x")
    await listener.until(3 * RELEASE_ENTRIES_COUNT)
    (cached,) = bookie.cache.current.ledgers.values()
    counts = {len(cached.entries)}
    flush = asyncio.get_running_loop().create_task(bookie.flush())
    while not flush.done():
        await asyncio.sleep(0)
        counts.add(len(cached.entries))

    found = sorted(counts)
    assert found[0] == 0
    assert max(more - less for less, more in pairwise(found)) <= RELEASE_ENTRIES_COUNT
    await bookie.close()


async def test_an_old_generation_is_flushed() -> None:
    bookie = await start(MemoryDisk(), flush_interval_seconds=0.0)
    await write(bookie, 5)

    await until_flushed(bookie)

    assert bookie.storage.manifest.logs
    await bookie.close()


async def test_what_is_sealed_while_a_flush_goes_on_is_flushed_with_it() -> None:
    disk = MemoryDisk()
    bookie = await start(
        disk,
        write_cache_bytes=20_000,
        journal_file_bytes=2_000,
        journal_spare_files_count=0,
        journal_files_count=1_000,
        disk_check_interval_seconds=3600.0,
    )
    for _ in range(3):
        writer, listener = await write(bookie, 20)
    flush, remove = bookie.storage.flush, disk.remove

    async def refuse(_: Generation) -> None:
        raise StorageError("Input/output error")

    async def fill_up(path: str) -> None:
        """One generation is flushed and gone: fill the next one, and begin with a third."""
        disk.remove = remove  # type: ignore[method-assign]
        await remove(path)
        while bookie.cache.sealed is None:
            writer.append(entry(0))
            await asyncio.sleep(0)
        await listener.until(writer.append(entry(0)))

    bookie.storage.flush = refuse  # type: ignore[method-assign]
    with pytest.raises(StorageError):
        await bookie.flush()
    bookie.storage.flush = flush  # type: ignore[method-assign]
    disk.remove = fill_up  # type: ignore[method-assign]
    await bookie.flush()

    assert bookie.cache.sealed is None
    assert 0 < bookie.statistics().write_cache_bytes < 5_000
    assert not listener.failures
    await bookie.close()


async def test_a_failed_flush_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    disk = SimulatedDisk(random.Random(1))
    bookie = await start(disk, flush_interval_seconds=0.0)
    failures = iter([StorageError("Input/output error")] * 3)
    disk.fault = lambda kind, path: next(failures, None) if path.startswith("entries") else None
    writer, _ = await write(bookie, 5)

    await until_flushed(bookie)

    assert next(failures, None) is None
    assert await writer.read(0, 4, 10_000) == [entry(entry_id) for entry_id in range(5)]
    await bookie.close()


async def test_too_little_room_shuts_the_gate_and_room_opens_it() -> None:
    disk = SimulatedDisk(random.Random(1), capacity_bytes=1_000_000)
    bookie = await start(disk, minimum_free_bytes=100_000)
    writer, listener = await write(bookie, 5)
    disk.capacity_bytes = 100_000
    async with asyncio.timeout(60):
        while bookie.statistics().is_taking_writes:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0)

    with pytest.raises(DiskFullError, match="bytes are free on the disk, the minimum is 100000"):
        writer.append(b"refused")
    assert await writer.read(0, 0, 100) == [entry(0)]

    disk.capacity_bytes = 1_000_000
    async with asyncio.timeout(60):
        while not bookie.statistics().is_taking_writes:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0)
    writer.append(b"taken")
    await listener.until(5)
    await bookie.close()


def test_what_waits_is_counted_for_the_journal_and_for_its_entry_log() -> None:
    room = partial(disk_room_bytes, 1000, kept_bytes=200)

    assert room(waiting_bytes=0, journaled_bytes=0) == 400
    assert room(waiting_bytes=300, journaled_bytes=0) == 100
    assert room(waiting_bytes=300, journaled_bytes=300) == 250
    assert room(waiting_bytes=500, journaled_bytes=0) == -100


async def test_between_two_looks_no_more_is_let_in_than_the_disk_takes() -> None:
    disk = SimulatedDisk(random.Random(1), capacity_bytes=500_000)
    bookie = await start(disk, minimum_free_bytes=100_000, disk_check_interval_seconds=3600.0)
    writer, listener = await write(bookie, 1)
    with pytest.raises(DiskFullError, match="wait for the disk, which has room for"):
        fill(writer, 1000)
    assert writer.last_add_pushed > 150

    await listener.until(writer.last_add_pushed)
    await bookie.flush()

    assert not listener.failures
    assert await disk.free_bytes() > 0
    await bookie.close()


async def fill_disk(bookie: Bookie) -> list[LedgerWriter]:
    """Write until nothing is taken any more; returns the ledgers.

    How many that takes depends on when room is looked at, and what was removed by then.
    """
    writers: list[LedgerWriter] = []
    async with asyncio.timeout(60):
        while bookie.statistics().is_taking_writes:
            listener = Listener()
            with suppress(DiskFullError):
                writers.append(await bookie.create(listener, LedgerOptions()))
                for entry_id in range(100):
                    writers[-1].append(entry(entry_id))
                await listener.until(99)
            await asyncio.sleep(0)
    return writers


async def test_deleting_frees_a_full_disk() -> None:
    disk = SimulatedDisk(random.Random(1), capacity_bytes=300_000)
    bookie = await start(disk, minimum_free_bytes=200_000, flush_interval_seconds=0.0)
    writers = await fill_disk(bookie)

    for writer in writers:
        await bookie.delete(writer.ledger_id)

    async with asyncio.timeout(60):
        while not bookie.statistics().is_taking_writes:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0)
    await bookie.close()


async def test_a_full_disk_gets_the_space_of_removed_files_at_once() -> None:
    class SlowDisk(SimulatedDisk):
        """The space of a removed file is given back when somebody asks for it."""

        held_bytes = 0

        async def remove_slowly(self, path: str) -> None:
            before = await self.free_bytes()
            await self.remove(path)
            self.held_bytes += await self.free_bytes() - before

        async def free_bytes(self) -> int:
            return await super().free_bytes() - self.held_bytes

        async def free_removed(self) -> None:
            self.held_bytes = 0

    disk = SlowDisk(random.Random(1), capacity_bytes=300_000)
    bookie = await start(
        disk,
        minimum_free_bytes=200_000,
        flush_interval_seconds=0.0,
        journal_spare_files_count=0,
    )
    writers = await fill_disk(bookie)

    for writer in writers:
        await bookie.delete(writer.ledger_id)

    async with asyncio.timeout(60):
        while not bookie.statistics().is_taking_writes:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0)
    await bookie.close()


async def test_a_ledger_deleted_while_its_flush_waits_takes_no_room() -> None:
    disk, ids = SimulatedDisk(random.Random(1)), Ids()
    bookie = await start(disk, ids, disk_check_interval_seconds=3600.0)
    kept, _ = await write(bookie, 20)
    gone, listener = await write(bookie, 500)
    disk.fault = lambda kind, path: DiskFullError("full") if path.startswith("entries") else None
    with pytest.raises(DiskFullError):
        await bookie.flush()
    gone.append(entry(500))  # Follows the generation that waits.
    await listener.until(500)
    await bookie.delete(gone.ledger_id)
    disk.fault = None
    assert bookie.cache.sealed is not None
    await bookie.storage.flush(bookie.cache.sealed)  # And a crash, before the deletion's own turn.
    assert sum(log.size_bytes for log in bookie.storage.manifest.logs.values()) < 10_000
    disk.bury()
    disk = disk.after_crash()

    bookie = await start(disk, ids, disk_check_interval_seconds=3600.0)
    reader = await bookie.open(kept.ledger_id)
    assert await reader.read(19, 19, 1000) == [entry(19)]
    with pytest.raises(LedgerNotFoundError):
        await bookie.open(gone.ledger_id)
    await bookie.flush()
    await bookie.close()


async def test_compaction_comes_by_itself() -> None:
    disk, ids = MemoryDisk(), Ids()
    bookie = await start(disk, ids)
    kept, _ = await write(bookie, 20)
    gone, _ = await write(bookie, 20)
    await bookie.close()  # Both are in the same log now.
    changes: dict[str, object] = {
        "minor_compaction_interval_seconds": 0.0,
        "minor_compaction_threshold": 0.9,
    }
    bookie = await start(disk, ids, **changes)
    assert 1 in bookie.storage.manifest.logs

    await bookie.delete(gone.ledger_id)

    async with asyncio.timeout(60):
        while 1 in bookie.storage.manifest.logs:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0)
    reader = await bookie.open(kept.ledger_id)
    assert await reader.read(19, 19, 1000) == [entry(19)]
    await bookie.close()


async def test_confirmations_wait_while_both_generations_are_full() -> None:
    disk = SimulatedDisk(random.Random(1))
    bookie = await start(disk, write_cache_bytes=20_000, append_limit_bytes=10_000_000)
    writer, listener = await write(bookie, 1)
    highest = 0
    for entry_id in range(1, 2000):
        writer.append(entry(entry_id))
    while listener.confirmed < 1999:
        await asyncio.sleep(0)
        highest = max(highest, bookie.statistics().write_cache_bytes)

    # Two generations, each with the groups of 50 entries that were on their way; not all 2,000.
    assert highest < 2 * (20_000 + 1_024 + 3 * 50 * 164)
    assert not listener.failures
    await bookie.close()


async def test_an_interrupted_flush_does_not_keep_the_engine_from_closing() -> None:
    disk, ids = SimulatedDisk(random.Random(1)), Ids()
    bookie = await start(disk, ids, write_cache_bytes=5_000, disk_check_interval_seconds=3600.0)
    writer, _ = await write(bookie, 10)
    flushing = asyncio.ensure_future(bookie.flush())  # noqa: TID251 - a test's own
    await turns(3)
    for entry_id in range(10, 200):
        writer.append(entry(entry_id))
    flushing.cancel()
    await asyncio.gather(flushing, return_exceptions=True)
    await turns()
    assert bookie.cache.sealed is not None
    assert writer.last_add_confirmed < 199

    async with asyncio.timeout(60):
        await bookie.close()

    bookie = await start(disk, ids)
    assert (await bookie.open(writer.ledger_id)).last_add_confirmed == 199
    await bookie.close()
