"""Each record of each kind of file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from pulsar_py.storage.inspection.dumping import (
    Record,
    dump_entries,
    dump_index,
    dump_journal,
    dump_manifest,
)
from tests.unit.storage.inspection.damaged_disk import (
    disk_of_large_entries,
    filled_disk,
    flip,
    newest,
    oldest,
)


async def all_of(records: AsyncIterator[Record]) -> list[Record]:
    found = [record async for record in records]
    json.dumps(found)
    return found


async def test_everything_is_there() -> None:
    disk = await filled_disk()
    (manifest,) = await all_of(dump_manifest(disk))
    assert manifest["next_table"] == 2
    journal = await all_of(dump_journal(disk, shown_bytes=2))
    assert {each["kind"] for each in journal} == {"header", "section", "ledger"}
    section = next(each for each in journal if each["kind"] == "section")
    assert section["data"][0] == "0000"  # type: ignore[index]
    runs = await all_of(dump_entries(disk))
    assert {each["ledger"] for each in runs} == {1, 2, 3}
    index = await all_of(dump_index(disk))
    assert [each["ledger"] for each in index if each["kind"] == "ledger"] == [1, 2, 3]
    assert sum(each["entries"] for each in index if each["kind"] == "location") == 300  # type: ignore[misc]


async def test_what_is_damaged_says_so() -> None:
    disk = await filled_disk()
    for directory, offset in (("entries", 205), ("index", 205), ("journal", 100)):
        await flip(disk, await oldest(disk, directory), offset)
    await flip(disk, "MANIFEST", 50)
    for dump in (dump_manifest, dump_journal, dump_entries, dump_index):
        assert any(each["kind"] == "damaged" for each in await all_of(dump(disk))), dump


async def test_a_disk_with_nothing() -> None:
    disk = await filled_disk()
    await disk.remove("MANIFEST")
    assert await all_of(dump_manifest(disk)) == []
    assert await newest(disk, "index")


async def test_sections_of_large_entries_say_where_these_are() -> None:
    disk = await disk_of_large_entries()
    sections = [
        each
        for each in await all_of(dump_journal(disk, shown_bytes=2))
        if each["kind"] == "section"
    ]
    places = {
        (place["log"], place["at"], place["bytes"])
        for each in sections
        for place in each["runs"]  # type: ignore[attr-defined]
    }
    runs = await all_of(dump_entries(disk))
    there = {(int(str(each["file"]).rpartition("/")[2]), each["offset"]) for each in runs}

    assert sum(each["entries"] for each in sections if each["ledger"] == 4) == 100  # type: ignore[misc]
    assert {place[:2] for place in places} <= there
