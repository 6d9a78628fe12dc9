from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from pathlib import Path

import pytest

from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import (
    DirectoryLockedError,
    DiskFullError,
    LedgerClosedError,
    LedgerFencedError,
    StorageError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.ledgers.store import LedgerOptions, LedgerWriter
from pulsar_py.storage import bookie as bookie_module
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.journal import journal
from pulsar_py.storage.journal.journal import Group, Journal
from pulsar_py.testing.clock import run_virtual
from pulsar_py.testing.disk import SimulatedDisk
from tests.ledger_parts import all_ledgers
from tests.unit.storage.support import Ids, Listener, entry, fill, start, turns, write

LARGE_ONCE: dict[str, object] = {
    "once_group_bytes": 1_000,
    "once_section_bytes": 400,
    "once_entry_bytes": 300,
    "journal_group_bytes": 20_000,
}
"""Settings with which entries from 300 bytes on are large."""


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    ids = Ids()
    bookie = await start(LocalDisk(tmp_path), ids)
    closed, _ = await write(bookie, 300)
    await closed.close()
    left_open, _ = await write(bookie, 20)
    deleted, _ = await write(bookie, 20)
    await bookie.delete(deleted.ledger_id)
    await bookie.close()

    bookie = await start(LocalDisk(tmp_path), ids)

    assert await all_ledgers(bookie) == [closed.ledger_id, left_open.ledger_id]
    assert not (await bookie.info(left_open.ledger_id)).is_closed
    for writer, count in ((closed, 300), (left_open, 20)):
        reader = await bookie.recover(writer.ledger_id)
        assert reader.last_add_confirmed == count - 1
        assert reader.length_bytes == 100 * count
        assert await reader.read(count - 1, count, 1000) == [entry(count - 1)]
    for writer, is_fenced in ((left_open, True), (closed, False)):
        found = await bookie._find(writer.ledger_id)
        assert found.record.is_fenced is is_fenced
    await bookie.close()


async def test_a_second_process_is_refused(tmp_path: Path) -> None:
    bookie = await start(LocalDisk(tmp_path))

    with pytest.raises(DirectoryLockedError, match="in use by another process"):
        await start(LocalDisk(tmp_path))

    await bookie.close()
    await (await start(LocalDisk(tmp_path))).close()


async def test_a_write_error_fails_its_ledgers_once_and_life_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    disk = SimulatedDisk(random.Random(1))
    bookie = await start(disk)
    hurt, hurt_listener = await write(bookie, 3)
    spared, spared_listener = await write(bookie, 3)
    failures = iter([StorageError("Input/output error")])
    disk.fault = lambda kind, path: next(failures, None) if kind == "sync" else None

    for _ in range(3):
        hurt.append(b"lost")
    await turns()
    spared.append(b"after")
    await spared_listener.until(3)

    assert [str(error) for error in hurt_listener.failures] == ["Input/output error"]
    assert not spared_listener.failures
    with pytest.raises(StorageError, match="Input/output"):
        hurt.append(b"refused")
    assert bookie.gate.room_bytes == 1_000_000 - 6 * 164 - (5 + 64)
    reader = await bookie.recover(hurt.ledger_id)
    assert reader.last_add_confirmed == 2
    await bookie.close()


async def test_what_failed_does_not_come_back_after_a_crash(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    for seed in range(20):
        disk, ids = SimulatedDisk(random.Random(seed)), Ids()
        bookie = await start(disk, ids)
        writer, _ = await write(bookie, 3)
        failures = iter([StorageError("Input/output error")])
        disk.fault = lambda kind, path, left=failures: next(left, None) if kind == "sync" else None
        writer.append(b"in doubt")
        await turns()
        reader = await bookie.recover(writer.ledger_id)
        assert reader.last_add_confirmed == 2
        before = asyncio.all_tasks()
        disk.bury()
        bookie._housekeeper.stop()

        again = await start(disk.after_crash(), ids)
        assert (await again.info(writer.ledger_id)).last_entry_id == 2
        await again.close()
        assert asyncio.all_tasks() <= before


async def test_a_full_disk_refuses_quickly_and_recovers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    disk = SimulatedDisk(random.Random(1))
    bookie = await start(disk, disk_check_interval_seconds=0.5)
    first, listener = await write(bookie, 3)
    failures = iter([DiskFullError("No space left on device")])
    disk.fault = lambda kind, path: next(failures, None) if kind == "append" else None
    first.append(b"lost")
    await turns()

    assert [type(error) for error in listener.failures] == [DiskFullError]
    with pytest.raises(DiskFullError):
        await bookie.create(Listener(), LedgerOptions())
    assert await first.read(0, 0, 100) == [entry(0)]
    async with asyncio.timeout(60):
        while not bookie.statistics().is_taking_writes:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0)
    second, _ = await write(bookie, 3)
    assert second.last_add_confirmed == 2
    await bookie.close()


async def test_a_listener_that_fails_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Listener):
        def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
            raise ValueError("broken")

        on_failed = on_confirmed  # type: ignore[assignment]

    bookie = await start(MemoryDisk())
    writer = await bookie.create(Broken(), LedgerOptions())
    other, listener = await write(bookie, 1)

    writer.append(b"x")
    other.append(b"y")
    await listener.until(1)

    assert "listener failed" in caplog.text
    await bookie.recover(writer.ledger_id)
    await bookie.close()


async def test_an_id_that_was_used_is_refused() -> None:
    class Sevens:
        async def next(self) -> int:
            return 7

    bookie = await start(MemoryDisk(), Sevens())
    await bookie.create(Listener(), LedgerOptions())

    with pytest.raises(StorageError, match="ledger 7 exists already"):
        await bookie.create(Listener(), LedgerOptions())
    await bookie.close()


async def test_a_closed_store_refuses_everything() -> None:
    bookie = await start(MemoryDisk())
    writer, _ = await write(bookie, 1)
    await bookie.close()
    await bookie.close()

    with pytest.raises(StorageError, match="the store is closed"):
        writer.append(b"x")
    with pytest.raises(StorageError, match="the store is closed"):
        await bookie.open(writer.ledger_id)
    with pytest.raises(StorageError, match="the store is closed"):
        await bookie.create(Listener(), LedgerOptions())


async def test_what_is_pending_is_written_on_close() -> None:
    disk, ids = MemoryDisk(), Ids()
    bookie = await start(disk, ids)
    writer, listener = await write(bookie, 1)
    writer.append(b"pending")

    await bookie.close()

    assert listener.confirmed == 1
    bookie = await start(disk, ids)
    assert (await bookie.open(writer.ledger_id)).last_add_confirmed == 1
    await bookie.close()


async def test_two_owners_may_end_a_ledger_at_once() -> None:
    bookie = await start(MemoryDisk())
    writer, listener = await write(bookie, 5)
    writer.append(b"in flight")

    *readers, closed = await asyncio.gather(
        bookie.recover(writer.ledger_id),
        bookie.recover(writer.ledger_id),
        writer.close(),
        return_exceptions=True,
    )

    assert isinstance(closed, LedgerFencedError)
    assert readers[0].last_add_confirmed == readers[1].last_add_confirmed
    assert [type(error) for error in listener.failures] == [LedgerFencedError]
    with pytest.raises((LedgerFencedError, LedgerClosedError)):
        writer.append(b"x")
    await bookie.close()


async def test_a_volatile_engine_writes_nothing_and_frees_deleted_ledgers() -> None:
    disk = MemoryDisk()
    bookie = await start(disk, is_volatile=True, volatile_limit_bytes=100_000)
    writer, _ = await write(bookie, 500)

    assert disk._files == {}
    assert await writer.read(499, 499, 1000) == [entry(499)]
    with pytest.raises(DiskFullError):
        fill(writer, 1000)
    await bookie.delete(writer.ledger_id)

    assert bookie.gate.room_bytes == 100_000
    assert bookie.statistics().write_cache_bytes == 0
    assert await all_ledgers(bookie) == []
    await bookie.flush()
    assert await bookie.collect_garbage() == 0
    await bookie.close()


async def test_a_long_journal_is_replayed_in_bounded_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk, ids = SimulatedDisk(random.Random(3)), Ids()
    bookie = await start(disk, ids, write_cache_bytes=500_000, journal_file_bytes=30_000)
    writer, _ = await write(bookie, 2000)
    disk.bury()
    bookie._housekeeper.stop()

    bookie = await start(disk.after_crash(), ids, write_cache_bytes=50_000)

    assert bookie.statistics().write_cache_bytes < 100_000
    reader = await bookie.recover(writer.ledger_id)
    assert reader.last_add_confirmed == 1999
    read: list[bytes] = []
    while len(read) < 2000:
        read += await reader.read(len(read), 1999, 5000)
    assert read == [entry(entry_id) for entry_id in range(2000)]
    await bookie.close()


async def test_many_ledgers_are_cut_into_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "GROUP_LEDGERS_COUNT", 10)
    bookie = await start(MemoryDisk())
    owners = [Listener() for _ in range(25)]
    writers = await asyncio.gather(*(bookie.create(each, LedgerOptions()) for each in owners))
    assert bookie.statistics().journal_groups_count >= 3
    groups_count = bookie.statistics().journal_groups_count

    for number, writer in enumerate(writers):
        writer.append(entry(number))
    for owner in owners:
        await owner.until(0)

    assert bookie.statistics().journal_groups_count >= groups_count + 3
    assert not any(owner.failures for owner in owners)
    await bookie.close()


async def test_listing_many_ledgers_lets_others_have_their_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bookie_module, "LISTED_LEDGERS_COUNT", 10)
    bookie = await start(MemoryDisk())
    for _ in range(100):
        await bookie.create(Listener(), LedgerOptions())
    await bookie.flush()
    pages, turns_count, is_done = [], 0, False

    async def others() -> None:
        nonlocal turns_count
        while not is_done:
            turns_count += 1
            await asyncio.sleep(0)

    other = TaskOwner("test").spawn(others(), "others")
    pages += [list(page) async for page in bookie.list_ledgers()]
    is_done = True
    await other
    assert [len(page) for page in pages] == [10] * 10
    assert sum(pages, []) == sorted(sum(pages, []))  # noqa: RUF017
    assert turns_count >= 10
    await bookie.close()


async def test_a_chosen_ledger_goes_on_behind_what_was_written_of_it(tmp_path: Path) -> None:
    options = LedgerOptions(custom_metadata={"a": b"1"})
    bookie = await start(LocalDisk(tmp_path))
    listener = Listener()
    writer = await bookie.create_chosen(77, listener, options)
    for number in range(5):
        writer.append(entry(number))
    await listener.until(4)
    await bookie.close()

    bookie = await start(LocalDisk(tmp_path))
    listener = Listener()
    again = await bookie.create_chosen(77, listener, options)
    assert again.last_add_confirmed == 4
    for number in range(5, 9):
        again.append(entry(number))
    await listener.until(8)
    await again.close()

    reader = await bookie.open(77)
    assert (reader.is_closed, reader.last_add_confirmed) == (True, 8)
    for number in range(9):
        assert await reader.read(number, number, 1000) == [entry(number)]
    with pytest.raises(StorageError, match="ledger 77 exists already, and has ended"):
        await bookie.create_chosen(77, Listener(), options)
    await bookie.create_chosen(78, Listener(), options)
    with pytest.raises(StorageError, match="belongs to something else"):
        await bookie.create_chosen(78, Listener(), LedgerOptions())
    await bookie.close()


def _broken(kind: str, path: str) -> StorageError | None:
    """A new error each time: one that is raised again and again has an ever longer traceback."""
    return StorageError(f"{path} is broken") if kind in {"sync", "append"} else None


class Writers:
    """Writers of large entries beside a disk that is slow and fails now and then."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.ids = Ids()
        self.disk = SimulatedDisk(random.Random(seed))
        self.disk.slow = lambda path: self.chance.random() / 10
        # Each ledger with its last confirmed entry and its entries' size, as its owner knows them.
        self.known: list[tuple[int, int, int]] = []
        self.aheads_count = 0

    async def write(self, bookie: Bookie, size: int) -> None:
        """Fill ledgers until one has all its entries."""
        listener = Listener()
        while listener.confirmed < 29:
            listener = Listener()
            await asyncio.sleep(0.01)
            with suppress(StorageError):
                writer = await bookie.create(listener, LedgerOptions())
                await self.fill(writer, listener, size)
                self.known.append((writer.ledger_id, listener.confirmed, size))

    async def fill(self, writer: LedgerWriter, listener: Listener, size: int) -> None:
        with suppress(StorageError):
            for entry_id in range(30):
                writer.append(entry(entry_id, size))
                if self.chance.random() < 0.3:
                    await asyncio.sleep(self.chance.random() / 20)
        await listener.until(29)

    async def fail_now_and_then(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0.1)
            self.disk.fault = _broken
            await asyncio.sleep(0.08)
            self.disk.fault = None

    def count_aheads(self, journal: Journal) -> None:
        taken_ahead = journal._take_ahead

        def counted(group: Group) -> None:
            taken_ahead(group)
            self.aheads_count += bool(journal._ahead)

        journal._take_ahead = counted  # type: ignore[method-assign]

    async def check(self, bookie: Bookie) -> None:
        for ledger_id, confirmed, size in self.known:
            reader = await bookie.recover(ledger_id)
            assert reader.last_add_confirmed >= confirmed
            for entry_id in range(reader.last_add_confirmed + 1):
                (found,) = await reader.read(entry_id, entry_id, size)
                assert found == entry(entry_id, size)


@pytest.mark.parametrize("seed", range(12))
def test_large_groups_that_overlap_lose_nothing_whatever_the_disk_does(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    async def scenario() -> None:
        writers = Writers(seed)
        disk = writers.disk
        bookie = await start(disk, writers.ids, **LARGE_ONCE)
        writers.count_aheads(bookie.journal)
        await asyncio.gather(
            writers.fail_now_and_then(),
            *(writers.write(bookie, size) for size in (400, 600, 800, 1200)),
        )
        assert writers.aheads_count
        assert any(confirmed < 29 for _, confirmed, _ in writers.known)
        disk.bury()
        bookie._watch.stop()
        bookie._housekeeper.stop()
        bookie = await start(disk.after_crash(), writers.ids, **LARGE_ONCE)
        await writers.check(bookie)
        await bookie.close()

    run_virtual(scenario())
