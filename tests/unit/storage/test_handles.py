from __future__ import annotations

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import EntryNotFoundError, StoreBusyError
from pulsar_py.common.packed_entries import PackedEntries
from pulsar_py.storage.handles import ENOUGH_ENTRIES
from tests.unit.storage.support import entry, fill, start, write


async def test_read_cached_goes_on_over_caches_and_runs_without_waiting() -> None:
    bookie = await start(MemoryDisk(), read_ahead_bytes=10_000)
    writer, listener = await write(bookie, 30)
    await bookie.flush()
    for entry_id in range(30, 40):
        writer.append(entry(entry_id))
    await listener.until(39)

    assert writer.read_cached(0, 99, 10_000) is None
    assert writer.read_cached(25, 99, 10_000) is None
    await writer.read(0, 99, 10_000)
    cached = writer.read_cached(0, 99, 10_000)

    assert cached == [entry(entry_id) for entry_id in range(40)]
    assert writer.read_cached(5, 34, 10_000) == cached[5:35]
    assert writer.read_cached(8, 99, 450) == cached[8:12]
    assert writer.read_cached(28, 99, 1) == cached[28:29]
    assert writer.read_cached(40, 99, 1) is None
    await bookie.close()


async def test_enough_of_one_run_is_given_as_it_lies_there() -> None:
    bookie = await start(
        MemoryDisk(), run_bytes=100 * (ENOUGH_ENTRIES + 3), read_ahead_bytes=50_000
    )
    writer, _ = await write(bookie, 100)
    await bookie.flush()
    await writer.read(0, 99, 10_000)

    found = writer.read_cached(1, 99, 100_000)
    few = writer.read_cached(30, 99, 100_000)

    assert isinstance(found, PackedEntries)
    assert isinstance(few, list)
    for first, some in ((1, found), (30, few)):
        assert some == [entry(entry_id) for entry_id in range(first, first + len(some))]
    assert len(few) > ENOUGH_ENTRIES
    await bookie.close()


async def test_read_says_where_the_ledger_ends() -> None:
    bookie = await start(MemoryDisk())
    writer, _ = await write(bookie, 3)

    for first, last in ((3, 5), (-1, 2), (2, 1)):
        with pytest.raises(EntryNotFoundError, match="last confirmed one is 2"):
            await writer.read(first, last, 100)
    await bookie.close()


async def test_a_run_beyond_the_room_is_not_taken_and_costs_none() -> None:
    bookie = await start(MemoryDisk(), append_limit_bytes=200_000)
    writer, listener = await write(bookie, 1)
    await bookie.flush()

    assert writer.append_run([bytes(10_000)] * 20) == 0
    assert bookie.gate.room_bytes == 200_000
    assert writer.append_run([bytes(10_000)] * 10) == 10

    await listener.until(10)
    await bookie.flush()
    assert bookie.gate.room_bytes == 200_000
    await bookie.close()


async def test_the_room_for_appends_is_bounded_and_comes_back() -> None:
    bookie = await start(MemoryDisk(), append_limit_bytes=200_000)
    writer, listener = await write(bookie, 1)
    with pytest.raises(StoreBusyError, match="wait for the disk"):
        fill(writer, 10_000)
    pushed = writer.last_add_pushed
    await listener.until(pushed)
    await bookie.flush()

    writer.append(bytes(10_000))

    assert 15 <= pushed < 20
    await listener.until(pushed + 1)
    await bookie.flush()
    assert bookie.gate.room_bytes == 200_000
    await bookie.close()
