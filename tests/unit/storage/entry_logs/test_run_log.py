"""Large entries are written once, to an entry log, which lives as long as anything needs it."""

from __future__ import annotations

import asyncio
import random
from array import array
from typing import Any

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import CorruptDataError, StorageError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.entry_logs.entry_log import log_path
from pulsar_py.storage.entry_logs.entry_log_format import decode_run
from pulsar_py.storage.entry_logs.run_log import RunLog
from pulsar_py.storage.journal.journal_format import Section
from pulsar_py.storage.shared.lent import Lent
from pulsar_py.testing.disk import SimulatedDisk
from tests.unit.storage.inspection.damaged_disk import copy, flip
from tests.unit.storage.support import SMALL, Ids, Listener, entry, start, write

ONCE: dict[str, Any] = {
    "once_group_bytes": 1500,
    "once_section_bytes": 500,
    "once_entry_bytes": 200,
}


def section(entries: list[bytes | Lent], ledger_id: int = 7, first: int = 3) -> Section:
    lengths = array("I", map(len, entries))
    return Section(ledger_id, first, entries, lengths, sum(lengths))


async def opened(disk: MemoryDisk) -> RunLog:
    await disk.make_directory("entries")
    ids = iter(range(1, 99))
    return RunLog(disk, SMALL, lambda: next(ids))


async def read_all(bookie: Bookie, ledger_id: int, count: int) -> list[bytes]:
    reader = await bookie.open(ledger_id)
    found: list[bytes] = []
    while len(found) < count:
        found += map(bytes, await reader.read(len(found), count - 1, 1 << 20))
    return found


async def test_runs_have_their_places_and_end_at_the_devices_blocks() -> None:
    disk = MemoryDisk()
    log = await opened(disk)
    lent = Lent((b"x" * 300, b"y" * 400), 700)
    sections = [section([b"a" * 800, lent, b"c" * 100]), section([b"d" * 600], 8, 0)]

    await log.write(sections)

    data = await disk.read_whole(log_path(1))
    assert len(data) % SMALL.journal_block_bytes == 0
    found = [
        (run.ledger_id, run.first_entry_id, [bytes(each) for each in run.entries])
        for each in sections
        for place in each.runs
        for run in [decode_run(data[place.offset : place.offset + place.length], "", 0)]
    ]
    assert found == [
        (7, 3, [b"a" * 800]),
        (7, 4, [b"x" * 300 + b"y" * 400, b"c" * 100]),
        (8, 0, [b"d" * 600]),
    ]
    await log.close()


async def test_a_log_is_busy_until_the_mark_has_passed_all_blocks_that_refer_to_it() -> None:
    log = await opened(MemoryDisk())
    sections = [section([b"a" * 800])]
    for end in (100, 200):
        await log.write(sections)
        log.refer(sections, (1, end))
    await log.release()
    length = sections[0].runs[0].length

    assert log.passed_bytes((1, 100)) == {1: length}
    assert log.pass_mark((1, 199)) == set()
    assert (log.busy_ids, log.busy_at((1, 200))) == ({1}, set())
    assert log.passed_bytes((2, 0)) == {1: length}
    assert log.pass_mark((1, 200)) == {1}
    assert log.busy_ids == set()


async def test_a_log_is_not_given_up_between_a_write_and_its_block() -> None:
    log = await opened(MemoryDisk())
    sections = [section([b"a" * 800])]
    await log.write(sections)

    await log.release()
    assert log.busy_ids == {1}
    log.refer(sections, (1, 100))
    await log.release()
    await log.write(sections)

    assert sections[0].runs[0].log_id == 2
    await log.close()


async def test_groups_that_are_written_at_once_go_to_logs_of_their_own() -> None:
    log = await opened(MemoryDisk())
    first, second = [section([b"a" * 800])], [section([b"b" * 800], 8, 0)]
    await asyncio.gather(log.write(first), log.write(second))
    assert [each[0].runs[0].log_id for each in (first, second)] == [1, 2]
    assert log.busy_ids == {1, 2}

    log.refer(first, (1, 100))
    await log.release()  # log 1, to whose runs a block refers
    log.refer(second, (1, 200))
    third = [section([b"c" * 800])]
    await log.write(third)
    assert third[0].runs[0].log_id == 2

    log.refer(third, (1, 300))
    await log.release()
    assert log.pass_mark((1, 250)) == {1}
    assert log.pass_mark((1, 300)) == {2}
    assert log.busy_ids == set()


async def test_a_failed_write_gives_up_no_log_with_runs_that_wait_for_their_block() -> None:
    disk = SimulatedDisk(random.Random(1))
    await disk.lock()
    await disk.make_directory("entries")
    ids = iter(range(1, 99))
    log = RunLog(disk, SMALL, lambda: next(ids))
    waiting = [section([b"a" * 800])]
    await log.write(waiting)
    disk.fault = lambda kind, _: StorageError("broken") if kind == "sync" else None
    with pytest.raises(StorageError, match="broken"):
        await log.write([section([b"b" * 800])])

    assert log.pass_mark((1, 50)) == {2}  # a flush may remove that one
    assert log.busy_ids == {1}
    log.refer(waiting, (1, 100))
    assert log.pass_mark((1, 100)) == set()  # log 1 takes the next group
    await log.close()


async def test_a_group_takes_no_log_that_is_being_given_up() -> None:
    disk = SimulatedDisk(random.Random(1))
    await disk.lock()
    await disk.make_directory("entries")
    ids = iter(range(1, 99))
    log = RunLog(disk, SMALL, lambda: next(ids))
    first, second = [section([b"a" * 800])], [section([b"b" * 800], 8, 0)]
    await asyncio.gather(log.write(first), log.write(second))
    log.refer(first, (1, 100))
    log.refer(second, (1, 100))
    following = [section([b"c" * 800])]
    await asyncio.gather(log.give_up(), log.write(following))

    assert following[0].runs[0].log_id == 3
    assert log.pass_mark((1, 100)) == {1, 2}
    assert log.busy_ids == {3}
    await log.close()


async def test_a_log_that_is_given_up_while_it_is_written_is_released_afterwards() -> None:
    disk = SimulatedDisk(random.Random(1))
    await disk.lock()
    await disk.make_directory("entries")
    ids = iter(range(1, 99))
    log = RunLog(disk, SMALL, lambda: next(ids))
    first = [section([b"a" * 800])]
    await log.write(first)
    log.refer(first, (1, 100))
    await asyncio.gather(log.write([section([b"b" * 800])]), log.give_up())

    assert log.busy_ids == {1}  # until a mark has passed
    sections = [section([b"c" * 800])]
    await log.write(sections)
    assert sections[0].runs[0].log_id == 2
    await log.close()


async def test_after_a_failed_write_the_next_one_begins_another_log() -> None:
    disk = SimulatedDisk(random.Random(1))
    await disk.lock()
    await disk.make_directory("entries")
    ids = iter(range(1, 99))
    log = RunLog(disk, SMALL, lambda: next(ids))
    disk.fault = lambda kind, _: StorageError("broken") if kind == "sync" else None
    sections = [section([b"a" * 800])]
    with pytest.raises(StorageError, match="broken"):
        await log.write(sections)
    disk.fault = None

    await log.write(sections)
    log.refer(sections, (1, 100))

    assert sections[0].runs[0].log_id == 2
    assert log.pass_mark((1, 100)) == {1}
    await log.close()


async def test_large_entries_are_in_an_entry_log_alone_and_flushing_writes_no_second_copy() -> None:
    disk = MemoryDisk()
    bookie = await start(disk, **ONCE)
    writer, _ = await write(bookie, 40, 400)
    sizes = [len(await disk.read_whole(f"entries/{name}")) for name in await names(disk, "entries")]
    assert sum(sizes) >= 40 * 400
    journal = b"".join(
        [await disk.read_whole(f"journal/{n}") for n in await names(disk, "journal")]
    )
    assert entry(20, 400) not in journal

    await bookie.flush()

    assert [len(await disk.read_whole(f"entries/{n}")) for n in await names(disk, "entries")] == (
        sizes
    )
    state = bookie.statistics()
    assert state.entry_log_live_bytes == state.entry_log_bytes > 40 * 400
    assert await read_all(bookie, writer.ledger_id, 40) == [entry(n, 400) for n in range(40)]
    await bookie.close()


async def test_small_and_large_entries_of_a_ledger_come_back_in_order() -> None:
    disk = MemoryDisk()
    bookie = await start(disk, **ONCE)
    writer, listener = await write(bookie, 10, 40)
    for size in (400, 40, 400):
        first = listener.confirmed + 1
        for entry_id in range(first, first + 10):
            writer.append(entry(entry_id, size))
        await listener.until(first + 9)
    expected = [entry(n, 400 if n // 10 % 2 else 40) for n in range(40)]
    image = copy(disk)

    assert await read_all(bookie, 1, 40) == expected
    await bookie.flush()
    assert await read_all(bookie, 1, 40) == expected
    await bookie.close()
    again = await start(image, **ONCE)  # as after a kill
    assert await read_all(again, 1, 40) == expected
    await again.close()


async def test_a_start_keeps_logs_that_the_journal_alone_refers_to_and_removes_others() -> None:
    disk = MemoryDisk()
    bookie = await start(disk, **ONCE)
    await write(bookie, 40, 400)
    image = copy(disk)
    await bookie.close()
    await image.replace("entries/0000000090", b"left over")
    before = await names(image, "entries")

    again = await start(image, Ids(5), **ONCE)
    after = await names(image, "entries")
    await write(again, 40, 400)

    assert after == [name for name in before if name != "0000000090"]
    assert min(set(await names(image, "entries")) - set(after)) == "0000000091"
    await again.close()


async def test_a_flush_of_a_replay_removes_no_log_that_a_later_block_refers_to() -> None:
    disk = MemoryDisk()
    lazy: dict[str, Any] = {**ONCE, "entry_log_bytes": 1_000_000, "journal_file_bytes": 1_000_000}
    bookie = await start(disk, **lazy)
    await write(bookie, 20, 400)
    await bookie.delete(1)
    await write(bookie, 600, 40)
    await write(bookie, 20, 400)
    image = copy(disk)
    await bookie.close()

    again = await start(image, Ids(4), write_cache_bytes=2_000, **lazy)

    assert again.storage.manifest.mark > (1, 0)  # It was flushed meanwhile.
    assert await read_all(again, 3, 20) == [entry(n, 400) for n in range(20)]
    await again.close()


async def test_a_damaged_run_that_the_journal_refers_to_stops_the_start() -> None:
    disk = MemoryDisk()
    bookie = await start(disk, **ONCE)
    await write(bookie, 40, 400)
    for path, place in (("entries/0000000001", 200), ("entries/0000000002", None)):
        image = copy(disk)
        if place is None:
            await image.remove(path)
        else:
            await flip(image, path, place)
        with pytest.raises(CorruptDataError, match=path):
            await start(image, **ONCE)
    await bookie.close()


async def test_logs_of_deleted_ledgers_go_once_the_journal_needs_them_no_more() -> None:
    disk = MemoryDisk()
    bookie = await start(disk, **ONCE)
    await write(bookie, 40, 400)
    await bookie.delete(1)
    await write(bookie, 40, 400)
    assert "0000000001" in await names(disk, "entries")  # a start would replay the first ledger

    await bookie.flush()

    assert "0000000001" not in await names(disk, "entries")
    assert await read_all(bookie, 2, 40) == [entry(n, 400) for n in range(40)]
    await bookie.close()


async def test_a_log_of_mostly_deleted_ledgers_is_compacted() -> None:
    disk = MemoryDisk()
    bookie = await start(disk, **ONCE, entry_log_bytes=1_000_000)
    for _ in range(4):
        await write(bookie, 20, 400)
    for ledger_id in (1, 2, 4):
        await bookie.delete(ledger_id)
    await bookie.flush()
    before = bookie.statistics()

    assert await bookie.collect_garbage(threshold=0.5) == 1

    after = bookie.statistics()
    assert after.entry_log_bytes == after.entry_log_live_bytes == before.entry_log_live_bytes
    assert before.entry_log_bytes >= 4 * 20 * 400
    assert await read_all(bookie, 3, 20) == [entry(n, 400) for n in range(20)]
    await bookie.close()


async def test_a_failed_write_fails_the_appends_and_confirms_nothing() -> None:
    disk = SimulatedDisk(random.Random(1))
    bookie = await start(disk, disk_check_interval_seconds=3600.0, **ONCE)
    listener = Listener()
    writer = await bookie.create(listener, LedgerOptions())
    disk.fault = lambda kind, path: (
        StorageError("broken") if (kind, path[:8]) == ("sync", "entries/") else None
    )
    for entry_id in range(10):
        writer.append(entry(entry_id, 400))
    await listener.until(9)
    disk.fault = None

    assert (listener.confirmed, [str(each) for each in listener.failures]) == (-1, ["broken"])
    await write(bookie, 10, 400)
    await bookie.close()


async def names(disk: MemoryDisk, directory: str) -> list[str]:
    return await disk.list_directory(directory)
