"""Sorted runs of keys on disk, and their merge, within bounded memory (edge).

One file for each run. A run is cut into the same parts by a hash of the keys, so that a part can be
sorted in one short turn of the loop:

    for each part, for each of its keys in ascending order:
        key_size     u32  big endian
        value_size   u32
        key, value

The files belong to one compaction: they are not found again after a crash. Yet they are synced
every few megabytes while they are written: else the system writes them to the disk in a burst,
behind which the groups of the journal wait (ADR 35).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from struct import Struct
from typing import Final

from pulsar_py.common.disks.disk import AppendFile, Disk, ReadFile, read_fully
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.loops.pace import Pace

PARTS_COUNT: Final = 256

SYNCED_BYTES: Final = 2 * 1024 * 1024
"""The most that is written of a run without a sync, but for one part."""

_SIZES: Final = Struct(">II")
KEYS_A_TURN: Final = 500
"""Keys that are merged before others have a turn: about a millisecond."""

_LARGEST_BLOCK: Final = 32 * 1024
_SMALLEST_BLOCK: Final = 4 * 1024

Items = Mapping[bytes, bytes]


class _Run:
    """One run: its file, and where each part begins in it, the end last."""

    def __init__(self, path: str, starts: Sequence[int]) -> None:
        self.path = path
        self.starts = starts


class SortedRuns:
    """The runs of one compaction, oldest first."""

    def __init__(
        self, new_disk: Callable[[], Disk], name: str, *, merge_bytes: int, pace: Pace
    ) -> None:
        """`name` begins the names of its files; the disk is asked for with the first one.

        `merge_bytes` bounds what a merge reads ahead of all runs together.
        """
        self._new_disk = new_disk
        self._disk: Disk | None = None
        self._name = name
        self._merge_bytes = merge_bytes
        self._pace = pace
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return len(self._runs)

    async def write(self, parts: Sequence[Items]) -> None:
        """Write one more run; `parts` are `PARTS_COUNT` mappings, by the hash of their keys.

        Raises:
            DiskFullError, StorageError: It is not written.
        """
        if self._disk is None:
            self._disk = self._new_disk()
            await self._disk.make_directory("")
        path = f"{self._name}-{len(self._runs)}.run"
        await self._disk.remove(path)
        file = await self._disk.create(path)
        try:
            try:
                run = _Run(path, await self._write_parts(file, parts))
            finally:
                await file.close()
        except BaseException:  # whatever it was: a full disk needs the room
            await self._disk.remove(path)
            raise
        self._runs.append(run)

    async def _write_parts(self, file: AppendFile, parts: Sequence[Items]) -> list[int]:
        starts = [0]
        unsynced_bytes = 0
        for items in parts:
            self._pace.resume()
            data = b"".join(
                piece
                for key, value in sorted(items.items())
                for piece in (_SIZES.pack(len(key), len(value)), key, value)
            )
            await self._pace.rest()
            if data:
                await file.append([data])
            unsynced_bytes += len(data)
            if unsynced_bytes >= SYNCED_BYTES:
                await file.sync()
                unsynced_bytes = 0
            starts.append(starts[-1] + len(data))
        return starts

    async def merged(self) -> AsyncIterator[Sequence[tuple[bytes, Sequence[bytes]]]]:
        """Yield all keys with their values, the oldest run's first, some at a time.

        Raises:
            StorageError: A run can't be read.
            CorruptDataError: One is shorter than it was, or its sizes do not fit.
        """
        room = self._merge_bytes // max(len(self._runs), 1)
        block_bytes = min(max(room, _SMALLEST_BLOCK), _LARGEST_BLOCK)
        async with AsyncExitStack() as stack:
            files = []
            for run in self._runs:
                assert self._disk is not None, "there are runs"
                file = await self._disk.open_read(run.path)
                stack.push_async_callback(file.close)
                files.append(file)
            for part in range(PARTS_COUNT):
                readers = [
                    _PartReader(file, run.starts[part], run.starts[part + 1], block_bytes)
                    for file, run in zip(files, self._runs, strict=True)
                ]
                async for items in _merge(readers, self._pace):
                    yield items
                    await self._pace.rest()

    async def remove(self) -> None:
        """Remove the files; the runs can't be read any more."""
        runs, self._runs = self._runs, []
        for run in runs:
            assert self._disk is not None, "there were runs"
            await self._disk.remove(run.path)


class _PartReader:
    """Reads one part of one run, block by block."""

    def __init__(self, file: ReadFile, start: int, end: int, block_bytes: int) -> None:
        self._file = file
        self._at = start
        self._end = end
        self._block_bytes = block_bytes
        self.keys: list[bytes] = []  # of the block, ascending
        self.values: list[bytes] = []

    @property
    def is_at_end(self) -> bool:
        """Whether there is nothing behind the block."""
        return self._at >= self._end

    async def fill(self) -> None:
        """Read the next block, if this one is used up."""
        size = self._block_bytes
        while not self.keys and not self.is_at_end:
            wanted = min(size, self._end - self._at)
            data = await read_fully(self._file, self._at, wanted)
            if len(data) < wanted:
                raise CorruptDataError(
                    f"{self._file.path}: {len(data)} of {wanted} bytes are left at {self._at}"
                )
            self._parse(data)
            size *= 2  # a key larger than a block

    def _parse(self, data: bytes) -> None:
        at = 0
        while at + _SIZES.size <= len(data):
            key_size, value_size = _SIZES.unpack_from(data, at)
            middle = at + _SIZES.size + key_size
            end = middle + value_size
            if end > len(data):
                break
            self.keys.append(data[at + _SIZES.size : middle])
            self.values.append(data[middle:end])
            at = end
        if not at and self._at + len(data) >= self._end:
            raise CorruptDataError(f"{self._file.path}: no whole key at {self._at}")
        self._at += at

    def take(self, last: bytes) -> list[tuple[bytes, bytes]]:
        """Take the keys up to `last`, included."""
        count = bisect_right(self.keys, last)
        taken = list(zip(self.keys[:count], self.values[:count], strict=True))
        del self.keys[:count], self.values[:count]
        return taken


async def _merge(
    readers: Sequence[_PartReader], pace: Pace
) -> AsyncIterator[Sequence[tuple[bytes, Sequence[bytes]]]]:
    """Merge one part of all runs.

    Up to the smallest of the blocks' last keys, no key can follow in any run; nor can it up to a
    smaller one, which is taken where the blocks together have more than the keys of one turn.
    """
    while True:
        for reader in readers:
            await reader.fill()
        pace.resume()
        filled = [reader for reader in readers if reader.keys]
        if not filled:
            return
        share = max(KEYS_A_TURN // len(filled), 1)
        last = min(reader.keys[:share][-1] for reader in filled)
        merged: dict[bytes, list[bytes]] = {}
        for reader in filled:
            for key, value in reader.take(last):
                merged.setdefault(key, []).append(value)
        yield list(merged.items())
