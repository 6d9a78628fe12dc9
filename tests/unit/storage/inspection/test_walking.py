"""Walks go on behind damage."""

from __future__ import annotations

from msgspec.structs import replace
from pyroaring import BitMap64

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.entry_logs.entry_log_format import encode_log_header, encode_run
from pulsar_py.storage.index.index_format import FOOTER_BYTES, Footer, encode_ledger_set
from pulsar_py.storage.inspection.walking import FoundRun, Gap, walk_blocks, walk_pages, walk_runs
from pulsar_py.storage.journal.file_header import FILE_HEADER_BYTES, decode_file_header
from tests.unit.storage.inspection.damaged_disk import cut, filled_disk, flip, newest

RUNS = [b"".join(encode_run(7, first, [b"abc", b"defg"])) for first in (0, 2, 4)]
START = len(encode_log_header(1))
LENGTH = len(RUNS[0])


async def walked(*parts: bytes) -> list[tuple[int, int | None]]:
    disk = MemoryDisk()
    await disk.replace("log", encode_log_header(1) + b"".join(parts))
    file = await disk.open_read("log")
    found = []
    async for each in walk_runs(file):
        if isinstance(each, Gap):
            found.append((each.offset - START, each.end and each.end - START))
        else:
            assert isinstance(each, FoundRun)
            found.append((each.offset - START, -each.run.first_entry_id))
    return found


async def test_whole_runs_follow_each_other() -> None:
    assert await walked(*RUNS) == [(0, 0), (LENGTH, -2), (2 * LENGTH, -4)]


async def test_a_damaged_run_is_a_gap_up_to_the_next() -> None:
    damaged = bytearray(RUNS[1])
    damaged[-1] ^= 1
    assert await walked(RUNS[0], bytes(damaged), RUNS[2]) == [
        (0, 0),
        (LENGTH, 2 * LENGTH),
        (2 * LENGTH, -4),
    ]


async def test_lengths_that_lead_beyond_the_end_are_a_gap() -> None:
    damaged = bytearray(RUNS[0])
    damaged[24:28] = b"\xff" * 4
    assert await walked(bytes(damaged), RUNS[1]) == [(0, LENGTH), (LENGTH, -2)]


async def test_the_end_of_a_log_that_was_cut_is_a_gap() -> None:
    assert await walked(RUNS[0], RUNS[1][:-1]) == [(0, 0), (LENGTH, None)]


async def test_blocks_behind_a_damaged_one_are_found() -> None:
    disk = await filled_disk()
    path = await newest(disk, "journal")
    file = await disk.open_read(path)
    life = decode_file_header(await file.read_at(0, FILE_HEADER_BYTES), path)
    assert life is not None
    whole = [each async for each in walk_blocks(file, life, life.first_offset, None)]
    assert len(whole) > 3
    await flip(disk, path, whole[1].offset + 60)
    file = await disk.open_read(path)
    found = [each async for each in walk_blocks(file, life, life.first_offset, None)]
    assert found[1] == Gap(whole[1].offset, whole[2].offset)
    assert [each.offset for each in found] == [each.offset for each in whole]


async def test_pages_are_found_without_the_footer() -> None:
    disk = await filled_disk()
    path = await newest(disk, "index")
    table_id = int(path[-10:])
    errors: list[CorruptDataError] = []
    file = await disk.open_read(path)
    whole = [offset async for offset, _ in walk_pages(file, table_id, errors.append)]
    assert (whole[0], errors) == (0, [])
    await cut(disk, path, file.size_bytes - 1)
    file = await disk.open_read(path)
    assert [offset async for offset, _ in walk_pages(file, table_id, errors.append)] == whole
    assert path in str(errors[0])


async def test_a_damaged_page_is_told_with_its_offset() -> None:
    disk = await filled_disk()
    path = await newest(disk, "index")
    await flip(disk, path, 30)
    errors: list[CorruptDataError] = []
    file = await disk.open_read(path)
    assert [each async for each in walk_pages(file, int(path[-10:]), errors.append)] == []
    assert str(errors[0]).startswith(f"{path}: offset 0: ")


async def test_a_ledger_that_the_set_of_a_table_lacks_is_told() -> None:
    disk = await filled_disk()
    path = await newest(disk, "index")
    data = await disk.read_whole(path)
    footer = Footer.decode(data[-FOOTER_BYTES:], path)
    lacking = encode_ledger_set(BitMap64())
    footer = replace(footer, ledger_set_bytes=len(lacking))
    await disk.replace(path, data[: footer.ledger_set_offset] + lacking + footer.encode())
    errors: list[CorruptDataError] = []
    file = await disk.open_read(path)
    assert [each async for each in walk_pages(file, int(path[-10:]), errors.append)]
    at = footer.ledger_set_offset
    assert str(errors[0]) == f"{path}: offset {at}: the set of ledgers lacks ledger 1"
