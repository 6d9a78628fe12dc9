"""After a rebuild the engine starts, serves what was whole, and has fillers for the rest."""

from __future__ import annotations

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import EntryNotFoundError
from pulsar_py.storage.inspection.rebuilding import Rebuilt, rebuild_storage
from pulsar_py.storage.inspection.survey import survey_storage
from tests.ledger_parts import all_ledgers
from tests.unit.storage.inspection.damaged_disk import (
    ENTRIES,
    LARGE,
    LAST,
    copy,
    cut,
    disk_of_large_entries,
    filled_disk,
    flip,
    newest,
    oldest,
)
from tests.unit.storage.support import entry, start

FILLER = b"lost"


async def rebuilt(disk: MemoryDisk, expected: dict[int, int] | None = None) -> Rebuilt:
    kept = []

    async def keep_aside(path: str) -> None:
        kept.append((path, await disk.read_whole(path)))

    survey = await survey_storage(disk)
    result = await rebuild_storage(
        disk,
        survey,
        filler=FILLER,
        keep_aside=keep_aside,
        expected=expected,
        is_expected_complete=expected is not None,
    )
    assert sorted(path for path, _ in kept) == sorted(result.replaced)
    after = await survey_storage(disk)
    assert not after.is_damaged, after.findings
    return result


async def contents(disk: MemoryDisk) -> dict[int, list[bytes]]:
    bookie = await start(copy(disk))
    found = {}
    for ledger_id in await all_ledgers(bookie):
        reader = await bookie.recover(ledger_id)
        found[ledger_id] = []
        while len(found[ledger_id]) <= reader.last_add_confirmed:
            next_id = len(found[ledger_id])
            found[ledger_id] += await reader.read(next_id, reader.last_add_confirmed, 1 << 20)
        with pytest.raises(EntryNotFoundError):
            await reader.read(len(found[ledger_id]), 1 << 40, 1)
    await bookie.close()
    return found


ALL = [entry(number) for number in range(ENTRIES)]


@pytest.mark.parametrize(
    ("directory", "offset"), [("index", 40), ("index", -40), ("entries", 20), ("MANIFEST", 40)]
)
async def test_nothing_is_lost_where_everything_stands_twice(directory: str, offset: int) -> None:
    disk = await filled_disk()
    path = directory if directory == "MANIFEST" else await oldest(disk, directory)
    await flip(disk, path, offset)
    result = await rebuilt(disk, dict.fromkeys((1, 2, 3, 4), LAST))
    assert result.lost == {}
    assert path in result.replaced
    assert await contents(disk) == dict.fromkeys((1, 2, 3, 4), ALL)


async def test_a_lost_run_is_filled() -> None:
    disk = await filled_disk()
    await flip(disk, await oldest(disk, "entries"), 200)
    result = await rebuilt(disk)
    ((first, last),) = result.lost[1]
    expected = [FILLER if first <= number <= last else ALL[number] for number in range(ENTRIES)]
    assert await contents(disk) == {1: expected} | dict.fromkeys((2, 3, 4), ALL)


async def test_a_lost_log_is_filled() -> None:
    disk = await filled_disk()
    await disk.remove(await oldest(disk, "entries"))
    result = await rebuilt(disk)
    assert result.lost == {1: [(0, LAST)]}
    assert await contents(disk) == dict.fromkeys((2, 3, 4), ALL) | {1: [FILLER] * ENTRIES}


async def test_a_damaged_block_is_filled_and_later_ones_are_kept() -> None:
    disk = await filled_disk()
    path = await newest(disk, "journal")
    data = await disk.read_whole(path)
    await flip(disk, path, data.rfind(entry(7)))
    result = await rebuilt(disk)
    ((first, last),) = result.lost[4]
    expected = [FILLER if first <= number <= last else ALL[number] for number in range(ENTRIES)]
    assert first <= 7 <= last < LAST
    assert await contents(disk) == {4: expected} | dict.fromkeys((1, 2, 3), ALL)


async def test_a_cut_journal_is_filled_up_to_what_others_know() -> None:
    disk = await filled_disk()
    await cut(disk, await newest(disk, "journal"), 40)
    result = await rebuilt(disk, {1: LAST, 4: 12, 9: 1})
    assert result.lost == {4: [(0, 12)], 9: [(0, 1)]}
    found = await contents(disk)
    assert (found[4], found[9], found[1]) == ([FILLER] * 13, [FILLER] * 2, ALL)


async def test_ledgers_without_a_record_that_nobody_wants_are_dropped() -> None:
    disk = await filled_disk()
    await disk.remove(await newest(disk, "index"))
    result = await rebuilt(disk, {1: LAST, 3: LAST})
    assert result.dropped_ledgers == [2]
    assert (await contents(disk)).keys() >= {1, 3}


async def test_the_engine_writes_on_after_a_rebuild() -> None:
    disk = await filled_disk()
    await disk.remove("MANIFEST")
    await rebuilt(disk)
    bookie = await start(disk)
    await bookie.close()
    assert (await survey_storage(disk)).findings == []


async def test_entries_that_only_the_journal_refers_to_stay() -> None:
    whole = {number: [entry(each, LARGE) for each in range(ENTRIES)] for number in (1, 2, 3, 4)}
    for broken in (None, "MANIFEST", "index", "entries"):
        disk = await disk_of_large_entries()
        if broken == "MANIFEST":
            await flip(disk, "MANIFEST", 50)
        elif broken is not None:
            await flip(disk, await newest(disk, broken), 205)

        result = await rebuilt(disk)

        found = await contents(disk)
        lost = {
            number: {place for first, last in ranges for place in range(first, last + 1)}
            for number, ranges in result.lost.items()
        }
        assert set(lost) == ({4} if broken == "entries" else set())
        for number, entries in whole.items():
            assert found[number] == [
                FILLER if place in lost.get(number, ()) else each
                for place, each in enumerate(entries)
            ]
        assert len(lost.get(4, ())) < 10
