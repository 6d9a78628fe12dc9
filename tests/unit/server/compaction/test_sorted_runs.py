"""Runs on disk and their merge: none, empty ones, large keys, damage, a full disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.disks.disk import AppendFile, Disk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import CorruptDataError, DiskFullError
from pulsar_py.common.loops.pace import Pace
from pulsar_py.server.compaction.sorted_runs import (
    KEYS_A_TURN,
    PARTS_COUNT,
    SYNCED_BYTES,
    SortedRuns,
)
from pulsar_py.testing.clock import VirtualClock

PATH = "runs-0.run"


def new_runs(new_disk: Callable[[], Disk], merge_bytes: int) -> SortedRuns:
    return SortedRuns(new_disk, "runs", merge_bytes=merge_bytes, pace=Pace(VirtualClock()))


def runs_on(disk: MemoryDisk, merge_bytes: int = 0) -> SortedRuns:
    return new_runs(lambda: disk, merge_bytes)


def parts(items: Mapping[bytes, bytes]) -> list[dict[bytes, bytes]]:
    """Keys by their first byte, which stands for their hash."""
    found: list[dict[bytes, bytes]] = [{} for _ in range(PARTS_COUNT)]
    for key, value in items.items():
        found[key[0] if key else 0][key] = value
    return found


async def merged(runs: SortedRuns) -> list[tuple[bytes, list[bytes]]]:
    return [(key, list(values)) async for some in runs.merged() for key, values in some]


async def test_without_runs_there_are_no_keys_and_no_disk() -> None:
    def no_disk() -> MemoryDisk:
        raise AssertionError("nothing is written")

    runs = new_runs(no_disk, 0)
    assert await merged(runs) == []
    await runs.remove()


async def test_values_of_a_key_come_once_and_the_oldest_first() -> None:
    disk = MemoryDisk()
    runs = runs_on(disk)
    await runs.write(parts({b"b": b"1", b"a": b"2", b"ab": b"3"}))
    await runs.write(parts({}))
    await runs.write(parts({b"b": b"4", b"": b"5", b"a\0": b""}))
    assert len(runs) == 3
    assert await merged(runs) == [
        (b"", [b"5"]),
        (b"a", [b"2"]),
        (b"a\0", [b""]),
        (b"ab", [b"3"]),
        (b"b", [b"1", b"4"]),
    ]
    await runs.remove()
    assert (len(runs), await disk.list_directory("")) == (0, [])


async def test_blocks_that_end_in_different_places_hide_no_value() -> None:
    runs = runs_on(MemoryDisk())
    some = {b"k%04d" % number: b"x" * (number % 7 * 100) for number in range(0, 300, 2)}
    more = {b"k%04d" % number: b"y" * 50_000 for number in (3, 150, 151)}
    await runs.write(parts(some))
    await runs.write(parts(more))
    found = await merged(runs)
    assert [key for key, _ in found] == sorted(some | more)
    assert dict(found)[b"k0150"] == [some[b"k0150"], more[b"k0150"]]


async def test_a_turn_merges_a_bounded_number_of_keys() -> None:
    runs = runs_on(MemoryDisk(), merge_bytes=1 << 20)
    for first in range(3):
        await runs.write(parts({b"k%06d" % number: b"v" for number in range(first, 6000, 2)}))
    sizes = [len(some) async for some in runs.merged()]
    assert max(sizes) <= KEYS_A_TURN
    assert sum(sizes) == 6000


async def written(disk: MemoryDisk) -> tuple[SortedRuns, bytes]:
    runs = runs_on(disk)
    await runs.write(parts({b"aa": b"1", b"ab": b"22", b"b": b"333"}))
    return runs, await disk.read_whole(PATH)


@pytest.mark.parametrize("size", [0, 5, 11, 20, -1])
async def test_a_run_that_lost_its_end_is_damaged(size: int) -> None:
    disk = MemoryDisk()
    runs, data = await written(disk)
    await disk.replace(PATH, data[:size])
    with pytest.raises(CorruptDataError, match=PATH):
        await merged(runs)


@pytest.mark.parametrize("at", [0, 4])
async def test_a_size_beyond_the_part_is_damage(at: int) -> None:
    disk = MemoryDisk()
    runs, data = await written(disk)
    await disk.replace(PATH, data[:at] + b"\x7f" + data[at + 1 :])
    with pytest.raises(CorruptDataError, match="no whole key at 0"):
        await merged(runs)


async def test_a_run_that_a_full_disk_cut_short_leaves_nothing() -> None:
    disk = MemoryDisk(capacity_bytes=100)
    runs = runs_on(disk)
    await runs.write(parts({b"a": b"1"}))
    with pytest.raises(DiskFullError):
        await runs.write(parts({b"a": b"2", b"b": b"3" * 100}))
    assert await disk.list_directory("") == [PATH]
    assert await merged(runs) == [(b"a", [b"1"])]
    await runs.write(parts({b"b": b"4"}))
    assert await merged(runs) == [(b"a", [b"1"]), (b"b", [b"4"])]


class _CountedFile:
    """A file that notes the most bytes that were appended without a sync."""

    def __init__(self, file: AppendFile) -> None:
        self._file = file
        self._unsynced_bytes = 0
        self.most_unsynced_bytes = 0

    async def append(self, buffers: Sequence[Buffer]) -> None:
        await self._file.append(buffers)
        self._unsynced_bytes += sum(map(len, buffers))
        self.most_unsynced_bytes = max(self.most_unsynced_bytes, self._unsynced_bytes)

    async def sync(self) -> None:
        await self._file.sync()
        self._unsynced_bytes = 0

    async def close(self) -> None:
        await self._file.close()


async def test_a_run_is_synced_as_it_is_written() -> None:
    files: list[_CountedFile] = []

    class Counted(MemoryDisk):
        async def create(self, path: str, **options: Any) -> Any:  # Any: a stand-in
            files.append(_CountedFile(await super().create(path, **options)))
            return files[-1]

    part_bytes = SYNCED_BYTES // 5
    items = {bytes([number]): b"v" * part_bytes for number in range(30)}
    runs = runs_on(Counted())
    await runs.write(parts(items))
    assert part_bytes < files[0].most_unsynced_bytes < SYNCED_BYTES + 2 * part_bytes
    assert await merged(runs) == [(key, [value]) for key, value in items.items()]
    await runs.remove()
