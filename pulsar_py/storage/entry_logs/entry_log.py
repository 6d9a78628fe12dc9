"""Entry logs on disk: one writer each for flush and compaction, and a set of readers (edge).

A log is written once from its start and never changed; it rolls at a size. A reader's file stays
open while it is in use, even when the log was removed meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.disks.disk import (
    AppendFile,
    Disk,
    OnSynced,
    ReadFile,
    read_fully,
    read_fully_into,
)
from pulsar_py.common.disks.reused_memory import ReusedMemory
from pulsar_py.storage.entry_logs.entry_log_format import (
    LOG_HEADER_BYTES,
    RUN_HEADER_BYTES,
    check_log_version,
    encode_log_header,
    head_bytes,
    padding,
)
from pulsar_py.storage.shared.location import Location

DIRECTORY = "entries"


def log_path(log_id: int) -> str:
    """Path of an entry log."""
    return f"{DIRECTORY}/{log_id:010}"


async def check_log_versions(disk: Disk, log_ids: Iterable[int]) -> None:
    """Refuse entry logs of another version, before anything is written beside them.

    A log that is missing or has no header passes here; reading its runs reports the damage.

    Raises:
        FormatVersionError: A log has another version.
    """
    for log_id in log_ids:
        path = log_path(log_id)
        try:
            file = await disk.open_read(path)
        except FileNotFoundError:
            continue
        try:
            check_log_version(await read_fully(file, 0, LOG_HEADER_BYTES), path)
        finally:
            await file.close()


class EntryLogWriter:
    """Adds runs to one log. Nothing is durable before `sync`."""

    def __init__(self, log_id: int, file: AppendFile) -> None:
        self.log_id = log_id
        self._file = file
        # Runs that have their places in the file and wait for `write`.
        self._held: list[Buffer] = [encode_log_header(log_id)]
        self.held_bytes = LOG_HEADER_BYTES
        # The offset of the next run.
        self.end = LOG_HEADER_BYTES
        # Bytes that were written since the last sync.
        self.unsynced_bytes = 0

    @classmethod
    async def create(cls, disk: Disk, log_id: int, *, is_direct: bool = False) -> EntryLogWriter:
        """Begin a log; its name is not durable yet. `is_direct` is as for `Disk.create`."""
        return cls(log_id, await disk.create(log_path(log_id), is_direct=is_direct))

    def add(self, run: list[Buffer], count: int) -> Location:
        """Give a run its place in the file; it stays in memory until `write`."""
        length = sum(map(len, run))
        assert 0 < count <= (length - RUN_HEADER_BYTES) // 4, (count, length)
        location = Location(self.log_id, self.end, length, count)
        self._held += run
        self.held_bytes += length
        self.end += length
        return location

    async def write(self) -> None:
        """Write the runs that are in memory."""
        held, self._held = self._held, []
        self.unsynced_bytes += self.held_bytes
        self.held_bytes = 0
        await self._file.append(held)
        # The index gets the places that `add` gave, so the runs must be at exactly those.
        assert self._file.size_bytes == self.end - self.held_bytes, f"entry log {self.log_id}"

    def pad(self, block_bytes: int) -> None:
        """Let what follows begin at a multiple of `block_bytes`."""
        run = padding(self.end, block_bytes)
        length = sum(map(len, run))
        self._held += run
        self.held_bytes += length
        self.end += length

    def write_and_sync(self, on_synced: OnSynced) -> None:
        """Write the runs that are in memory, sync, and call back; see `AppendFile`."""
        held, self._held = self._held, []
        self.held_bytes = 0
        self._file.append_and_sync(held, on_synced)
        assert self._file.size_bytes == self.end, f"entry log {self.log_id}"

    async def sync(self) -> None:
        """Write the runs that are in memory, and make the log durable."""
        if self._held:
            await self.write()
        await self._file.sync()
        self.unsynced_bytes = 0

    async def close(self) -> None:
        """Release the file."""
        await self._file.close()


class _Reader:
    __slots__ = ("file", "is_retired", "users_count")

    def __init__(self, file: ReadFile) -> None:
        self.file = file
        self.users_count = 0
        self.is_retired = False


class EntryLogReaders:
    """Logs open for reading, the most recently used ones."""

    def __init__(self, disk: Disk, limit_count: int) -> None:
        self._disk = disk
        self._limit_count = limit_count
        self._readers: OrderedDict[int, _Reader] = OrderedDict()
        self.read_bytes = 0

    async def read(self, log_id: int, offset: int, length: int) -> bytes:
        """Bytes of a log; fewer only at its end.

        Raises:
            FileNotFoundError: The log was removed.
        """
        async with self._use(log_id) as file:
            data = await read_fully(file, offset, length)
        self.read_bytes += len(data)
        return data

    async def read_heads(self, locations: Sequence[Location]) -> list[bytes]:
        """The bytes of runs of one log, of each those before its first entry.

        Raises:
            FileNotFoundError: The log was removed.
        """
        places = [(each.offset, head_bytes(each.count)) for each in locations]
        async with self._use(locations[0].log_id) as file:
            heads = await file.read_several(places)
        self.read_bytes += sum(map(len, heads))
        return heads

    async def read_lent(
        self, log_id: int, offset: int, length: int, memory: ReusedMemory
    ) -> memoryview:
        """As `read`, as a read-only view of a buffer from `memory`."""
        async with self._use(log_id) as file:
            size_bytes = max(min(length, file.size_bytes - offset), 0)
            data = await read_fully_into(file, offset, memory.take(size_bytes))
        self.read_bytes += len(data)
        return data

    @asynccontextmanager
    async def _use(self, log_id: int) -> AsyncIterator[ReadFile]:
        """A log, open as long as the context is."""
        superfluous: ReadFile | None = None
        reader = self._readers.get(log_id)
        if reader is None:
            file = await self._disk.open_read(log_path(log_id))
            reader = self._readers.get(log_id)  # another may have opened it meanwhile
            if reader is None:
                reader = self._readers[log_id] = _Reader(file)
            else:
                superfluous = file
        else:
            self._readers.move_to_end(log_id)
        reader.users_count += 1  # before the first await: otherwise `forget` could close the file
        try:
            if superfluous is not None:
                await superfluous.close()
            while len(self._readers) > self._limit_count:
                await self.forget(next(iter(self._readers)))
            yield reader.file
        finally:
            reader.users_count -= 1
            await self._maybe_close(reader)

    async def forget(self, log_id: int) -> None:
        """Close a removed log as soon as no read of it is under way."""
        reader = self._readers.pop(log_id, None)
        if reader is not None:
            reader.is_retired = True
            await self._maybe_close(reader)

    async def close(self) -> None:
        """Close all logs, each as soon as no read of it is under way."""
        for log_id in list(self._readers):
            await self.forget(log_id)

    async def _maybe_close(self, reader: _Reader) -> None:
        if reader.is_retired and not reader.users_count:
            await reader.file.close()
