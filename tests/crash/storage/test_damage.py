"""Damaged bytes are reported with file and offset, and never served; torn ends are cut off."""

from __future__ import annotations

import asyncio
import random

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.journal.file_header import FILE_HEADER_BYTES
from pulsar_py.testing.disk import SimulatedDisk
from tests.crash.storage.harness import SETTINGS, Model, check, content, end_tasks, start

LAZY = replace(SETTINGS, write_cache_bytes=400_000, journal_files_count=1_000)
"""Flushes only when asked."""


async def written(entries_count: int, *, flushed: bool) -> tuple[SimulatedDisk, Model]:
    """A disk as a crash leaves it, with a ledger of which all entries were confirmed one by one."""
    before = asyncio.all_tasks()
    disk, model = SimulatedDisk(random.Random(1)), Model()
    bookie = await start(disk, model, LAZY)
    writer = await bookie.create(model, LedgerOptions())
    promised = model.ledgers[writer.ledger_id]
    promised.is_created = True
    for entry_id in range(entries_count):
        writer.append(content(writer.ledger_id, entry_id))
        promised.pushed = entry_id
        while promised.confirmed < entry_id:  # noqa: ASYNC110 - one turn of the loop at a time
            await asyncio.sleep(0)
    if flushed:
        await bookie.flush()
    disk.bury()
    await end_tasks(before)
    return disk.after_crash(), model


async def test_a_damaged_block_with_a_whole_one_behind_it_stops_the_start() -> None:
    disk, model = await written(5, flushed=False)
    disk.flip_bit("journal/0000000001", FILE_HEADER_BYTES + 60)

    with pytest.raises(CorruptDataError, match=r"journal/0000000001: offset 64: .*behind it"):
        await start(disk, model)


async def test_a_damaged_file_header_stops_the_start() -> None:
    disk, model = await written(5, flushed=False)
    disk.flip_bit("journal/0000000001", 20)

    with pytest.raises(CorruptDataError, match="journal/0000000001: offset 0"):
        await start(disk, model)


async def test_a_damaged_block_before_the_next_file_stops_the_start() -> None:
    disk, model = await written(60, flushed=False)
    first, second, *_ = disk.paths()
    assert second.startswith("journal/")
    data = await disk.read_whole(first)
    disk.flip_bit(first, data.rindex(b"JBL2") + 70)

    with pytest.raises(CorruptDataError, match=f"{first}: offset .* next file says"):
        await start(disk, model)


async def test_a_missing_journal_file_stops_the_start() -> None:
    disk, model = await written(60, flushed=False)
    await disk.remove(disk.paths()[0])

    with pytest.raises(CorruptDataError, match="journal file 1 is missing"):
        await start(disk, model)


async def test_a_torn_end_is_cut_off() -> None:
    disk, model = await written(5, flushed=False)
    data = await disk.read_whole("journal/0000000001")
    disk.flip_bit("journal/0000000001", data.rindex(b"JBL2") + 60)
    ledger = next(iter(model.ledgers.values()))
    ledger.confirmed -= 1  # The last group now counts as never confirmed.

    await check(disk, model)


@pytest.mark.parametrize("directory", ["entries", "index"])
async def test_every_flipped_bit_of_stored_entries_is_reported(directory: str) -> None:
    reports = []
    for seed in range(40):
        disk, model = await written(30, flushed=True)
        chance = random.Random(seed)
        path = chance.choice([path for path in disk.paths() if path.startswith(directory)])
        size = len(await disk.read_whole(path))
        offset = chance.randrange(size)
        disk.flip_bit(path, offset, chance.randrange(8))
        try:
            await check(disk, model)
        except CorruptDataError as error:
            reports.append((path, str(error)))

    # Flips in a log's header change nothing that is read.
    assert len(reports) >= 30
    assert not [report for path, report in reports if f"{path}: " not in report]


async def test_a_damaged_manifest_stops_the_start() -> None:
    disk, model = await written(5, flushed=True)
    disk.flip_bit("MANIFEST", 50)

    with pytest.raises(CorruptDataError, match="MANIFEST"):
        await start(disk, model)


async def test_a_lost_manifest_stops_the_start_once_journals_are_gone() -> None:
    disk, model = await written(60, flushed=True)
    await disk.remove("MANIFEST")
    await disk.remove("journal/0000000001")

    with pytest.raises(CorruptDataError):
        await start(disk, model)
