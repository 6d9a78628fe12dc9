"""Journal files that are used again: what earlier lives left behind never comes back."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.journal.file_header import FILE_HEADER_BYTES, decode_file_header
from pulsar_py.storage.journal.journal_files import journal_path
from pulsar_py.testing.disk import SimulatedDisk
from pulsar_py.testing.network import run_simulated
from tests.crash.storage.harness import SETTINGS, Model, check, content, crash_run, start
from tests.unit.storage.support import turns

LAZY = replace(SETTINGS, write_cache_bytes=400_000, journal_files_count=1_000)


async def append(bookie: Bookie, model: Model, count: int) -> None:
    """A ledger whose entries are confirmed one by one."""
    writer = await bookie.create(model, LedgerOptions())
    promised = model.ledgers[writer.ledger_id]
    promised.is_created = True
    for entry_id in range(count):
        writer.append(content(writer.ledger_id, entry_id))
        promised.pushed = entry_id
        await turns(8)
    assert promised.confirmed == count - 1


async def used_again(entries_count: int = 3) -> tuple[SimulatedDisk, Model, str]:
    """A crashed disk whose newest journal file is full of blocks of an earlier life."""
    disk, model = SimulatedDisk(random.Random(3)), Model()
    bookie = await start(disk, model, LAZY)
    await append(bookie, model, 40)
    await bookie.close()
    bookie = await start(disk, model, LAZY)
    await append(bookie, model, entries_count)
    path = journal_path(bookie.journal.end[0])
    disk.bury()
    return disk.after_crash(), model, path


async def test_old_blocks_behind_the_tail_that_parse_are_no_blocks_of_this_life() -> None:
    disk, model, path = await used_again()
    data = await disk.read_whole(path)
    header = decode_file_header(data, path)
    assert header is not None
    assert header.is_used_again
    ids = Counter(
        int.from_bytes(data[at + 16 : at + 24], "big")
        for at in range(0, len(data), 512)
        if data[at : at + 4] == b"JBL2"
    )
    assert len(ids) == 2  # of this life and of the earlier one, behind it
    assert ids.total() > 5

    held = await check(disk, model)

    assert held["confirmed implies recovered"] >= 2 * 43


async def test_a_torn_block_over_an_old_one_is_cut_off() -> None:
    disk, model, path = await used_again()
    data = await disk.read_whole(path)
    header = decode_file_header(data, path)
    assert header is not None
    generation = header.generation.to_bytes(8, "big")  # type: ignore[union-attr]
    last = data.rindex(generation) - 8
    disk.flip_bit(path, last + 60)
    max(model.ledgers.items())[1].confirmed -= 1  # That group counts as never confirmed.

    await check(disk, model)


async def test_a_damaged_block_before_a_whole_one_of_the_same_life_stops_the_start() -> None:
    disk, model, path = await used_again()
    disk.flip_bit(path, FILE_HEADER_BYTES + 60)

    with pytest.raises(CorruptDataError, match=f"{path}: offset 64: .*behind it"):
        await start(disk, model, LAZY)


async def test_a_damaged_header_of_a_file_that_is_used_again_stops_the_start() -> None:
    disk, model, path = await used_again()
    disk.flip_bit(path, 20)

    with pytest.raises(CorruptDataError, match=f"{path}: offset 0"):
        await start(disk, model, LAZY)


@pytest.mark.parametrize("entries_count", [6, 12])
async def test_files_that_a_killed_process_may_still_be_writing_are_not_used_again(
    entries_count: int,
) -> None:
    """The kernel may end a write after the process: to the newest file, or the one made ahead."""
    disk, model, newest = await used_again(entries_count)
    journals = [path for path in disk.paths() if path.startswith("journal/0")]
    for path in journals:
        header = decode_file_header(await disk.read_whole(path), path)
        assert header is not None
        assert header.is_used_again

    bookie = await start(disk, model, replace(LAZY, journal_spare_files_count=100))
    await bookie.close()

    left = [path for path in journals if f"journal/spare-{path[8:]}" in disk.paths()]
    assert left == [path for path in journals if path < newest]
    assert len(journals) == 2


@pytest.mark.parametrize("length", [0, 100, 4000])
async def test_a_pool_cut_short_is_given_up(length: int) -> None:
    disk, model = SimulatedDisk(random.Random(3)), Model()
    bookie = await start(disk, model, LAZY)
    await append(bookie, model, 40)
    await bookie.close()
    spares = [path for path in disk.paths() if path.startswith("journal/spare-")]
    assert len(spares) == 2
    await disk.truncate(spares[0], length)
    await disk.remove(spares[1])

    bookie = await start(disk, model, LAZY)
    await append(bookie, model, 3)
    assert not [path for path in disk.paths() if path in spares]
    disk.bury()
    await check(disk.after_crash(), model)


def test_a_crash_at_each_step_of_taking_a_file_into_use_loses_nothing() -> None:
    """The sweep of all write points comes through here; this one counts that it does."""

    async def crash_and_check(crash_at: int) -> tuple[Counter[str], list[str]]:
        disk, model = await crash_run(1, crash_at)
        left = disk.after_crash()
        names = left.paths()
        return await check(left, model), names

    disk, _ = run_simulated(crash_run(1, None))
    left: Counter[str] = Counter()
    for crash_at in range(1, disk.write_points_count + 1):
        _, names = run_simulated(crash_and_check(crash_at))
        journal = [name for name in names if name.startswith("journal/")]
        left["spare"] += any("spare" in name for name in journal)
        left["begun"] += any("spare" not in name for name in journal)
    assert min(left["spare"], left["begun"]) > 20, left
