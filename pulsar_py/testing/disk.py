"""`SimulatedDisk`: a `Disk` with the crashes and faults of real ones, replayed from a seed.

Written data is there for readers at once, save the last bytes of a file that is written past the
cache, and durable only after its sync. A crash leaves of each
unsynced write nothing, all, a beginning, or some of its sectors, and of unsynced names at most the
older ones. Writes of one file survive independently of each other, which amounts to reordering
them. A failed write leaves a beginning of its data; a failed sync loses some of the data it had to
save, and a later sync does not bring that back.

Each step at which a crash makes a difference is counted, so that a test can crash at each of them.
Syncs can be skipped by name, to show that a test would notice; reads and writes can be made to
fail, reads to come back short, stored bits to be flipped, room to be limited, and syncs to take
time.

A crash ends the process that uses the disk: its calls never return and its callbacks never come.
Then `after_crash` is the disk that the next process finds, and `after_kill` if only the process
has died: what it wrote and did not sync is there for that one, and may be lost in a later crash.
Call `bury` before the first process's tasks are cancelled: from then on its calls raise instead of
waiting for ever.

Names of syncs: `data:<directory>` for file contents, `found:<directory>` for those of an earlier
process, `names:<directory>` for directories (the root is ``), `replace-data:<path>` and
`replace-name:<path>` for the two inside `replace`.
"""

from __future__ import annotations

import asyncio
import posixpath
import random
from collections.abc import Callable, Collection, Sequence

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.disks.disk import AppendFile, Disk, OnSynced, ReadFile
from pulsar_py.common.errors import DirectoryLockedError, DiskFullError, StorageError

SECTOR_BYTES = 512
"""Bytes that a disk writes as a whole or not at all."""


class SimulatedDisk(Disk):
    """A directory tree in memory with a durable and a volatile side."""

    def __init__(
        self,
        chance: random.Random,
        *,
        crash_at: int | None = None,
        ignored_syncs: Collection[str] = (),
        capacity_bytes: int | None = None,
        sync_seconds: float = 0.0,
    ) -> None:
        """Make an empty disk.

        Args:
            chance: Decides what survives a crash; owned by the disk.
            crash_at: The write point at which to crash, counted from 1; None for never.
            ignored_syncs: Names of syncs that do nothing.
            capacity_bytes: Room for contents and reservations; None for no limit.
            sync_seconds: How long each `append_and_sync` takes, on the running loop.
        """
        self._chance = chance
        self.crash_at = crash_at
        self.ignored_syncs = frozenset(ignored_syncs)
        self.capacity_bytes = capacity_bytes
        self.sync_seconds = sync_seconds
        self.write_points_count = 0
        self.syncs_seen: set[str] = set()
        # Called before each write with its path; returns an error to raise, or None.
        self.fault: Callable[[str, str], BaseException | None] | None = None
        # Called before each read with its path and length; returns the most bytes it gets.
        self.shorten: Callable[[str, int], int] | None = None
        # Called before each sync of a file with its path; returns the seconds that it takes beyond
        # `sync_seconds`, on the running loop.
        self.slow: Callable[[str], float] | None = None
        # Called once, when the crash happens.
        self.on_crash: Callable[[], None] | None = None
        self.is_crashed = False
        self._is_buried = False
        self._is_locked = False
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        self._directories = {""}
        self._durable_directories = {""}
        # Changes of names that are not durable: directory, and the paths that change at once, each
        # with its inode, or None for a removal.
        self._pending_names: list[_NameChange] = []

    def after_crash(self) -> SimulatedDisk:
        """The disk as the next process finds it; nothing on it is volatile."""
        survivor = SimulatedDisk(self._chance, capacity_bytes=self.capacity_bytes)
        survivor._durable_directories = set(self._durable_directories)
        survivor._directories = set(self._durable_directories)
        names = dict(self._durable_names)
        for _, changes in _prefix(self._chance, self._pending_names):
            _change_names(names, changes)
        names = {
            path: inode
            for path, inode in names.items()
            if posixpath.dirname(path) in self._durable_directories
        }
        left = {id(inode): inode.after_crash(self._chance) for inode in names.values()}
        survivor._names = {path: left[id(inode)] for path, inode in names.items()}
        survivor._durable_names = dict(survivor._names)
        return survivor

    def after_kill(self) -> SimulatedDisk:
        """The disk as the next process on the same machine finds it; call `bury` before."""
        assert self._is_buried
        heir = SimulatedDisk(self._chance, capacity_bytes=self.capacity_bytes)
        heir._names, heir._durable_names = self._names, self._durable_names
        heir._directories = self._directories
        heir._durable_directories = self._durable_directories
        heir._pending_names = self._pending_names
        for inode in [*self._names.values(), *self._durable_names.values()]:
            inode.forget_tail()
        return heir

    def crash(self) -> None:
        """Crash now."""
        if not self.is_crashed:
            self.is_crashed = True
            if self.on_crash is not None:
                self.on_crash()

    def bury(self) -> None:
        """Let calls of the dead process raise instead of wait, so that its tasks can be ended."""
        self.is_crashed = True
        self._is_buried = True

    def flip_bit(self, path: str, offset: int, bit: int = 0) -> None:
        """Change one stored bit, durably."""
        inode = self._names[path]
        inode.data[offset] ^= 1 << bit
        inode.durable[:] = inode.data
        inode.unsynced.clear()

    def paths(self) -> list[str]:
        """All files, sorted."""
        return sorted(self._names)

    async def make_directory(self, path: str) -> None:
        """Create a directory and its parents; durable after a sync of the parent."""
        await self.write_point("make_directory", path)
        while path not in self._directories:
            self._directories.add(path)
            path = posixpath.dirname(path)

    async def list_directory(self, path: str) -> list[str]:
        """Sorted names of the files in a directory."""
        await self.alive()
        return sorted(
            posixpath.basename(name) for name in self._names if posixpath.dirname(name) == path
        )

    async def create(
        self,
        path: str,
        *,
        reserve_bytes: int = 0,
        is_direct: bool = False,
    ) -> AppendFile:
        """Create an empty file; its name is durable after `sync_directory`."""
        await self.write_point("create", path)
        if path in self._names:
            raise StorageError(f"{path}: exists already")
        if posixpath.dirname(path) not in self._directories:
            raise StorageError(f"{path}: no such directory")
        self.claim(reserve_bytes)
        inode = _Inode(reserve_bytes)
        self._set_name(path, inode)
        return _SimulatedAppendFile(self, path, inode, is_direct=is_direct)

    async def open_again(
        self,
        path: str,
        *,
        is_direct: bool = False,
    ) -> AppendFile:
        """Open a file to be written again from its start."""
        await self.alive()
        inode = self._inode(path)
        inode.end = inode.synced_end = 0
        return _SimulatedAppendFile(self, path, inode, is_direct=is_direct)

    async def rename(self, path: str, new_path: str) -> None:
        """Give a file another name; durable after `sync_directory`, at once for both names."""
        await self.write_point("rename", new_path)
        inode = self._inode(path)
        del self._names[path]
        self._names[new_path] = inode
        changes = {path: None, new_path: inode}
        self._pending_names.append((posixpath.dirname(path), changes))

    def random_number(self) -> int:
        """64 bits from the seed."""
        return self._chance.getrandbits(64)

    async def open_read(self, path: str) -> ReadFile:
        """Open a file for reading."""
        await self.alive()
        return _SimulatedReadFile(self, path, self._inode(path))

    async def read_whole(self, path: str) -> bytes:
        """All bytes of a file."""
        await self.alive()
        return bytes(self._inode(path).data)

    async def replace(self, path: str, data: Buffer) -> None:
        """Put a whole file in place: write aside, sync, rename, sync the directory."""
        await self.write_point("replace", path)
        inode = _Inode(0)
        self.claim(len(data))
        inode.append([data])
        if self.takes_sync(f"replace-data:{path}"):
            inode.sync()
        await self.write_point("rename", path)
        self._set_name(path, inode)
        await self.write_point("sync_directory", path)
        if self.takes_sync(f"replace-name:{path}"):
            self._sync_names(posixpath.dirname(path))
        await self.write_point("replaced", path)

    async def truncate(self, path: str, length: int) -> None:
        """Cut a file, durably."""
        await self.write_point("truncate", path)
        self._inode(path).cut(length)

    async def sync_file(self, path: str) -> None:
        """Make durable what a file has, whoever wrote it."""
        await self.write_point("sync", path)
        inode = self._inode(path)
        if self.takes_sync(f"found:{posixpath.dirname(path)}"):
            inode.sync()
            inode.data[:] = inode.durable

    async def remove(self, path: str) -> None:
        """Remove a file's name; durable after `sync_directory`."""
        await self.write_point("remove", path)
        if self._names.pop(path, None) is not None:
            self._pending_names.append((posixpath.dirname(path), {path: None}))

    async def sync_directory(self, path: str) -> None:
        """Make creations and removals in a directory durable."""
        await self.write_point("sync_directory", path)
        if self.takes_sync(f"names:{path}"):
            self._sync_names(path)

    async def free_bytes(self) -> int:
        """The bytes of room left."""
        await self.alive()
        return (1 << 40) if self.capacity_bytes is None else self.capacity_bytes - self._used()

    async def lock(self) -> None:
        """Lock the directory tree.

        Raises:
            DirectoryLockedError: It is locked already.
        """
        await self.alive()
        if self._is_locked:
            raise DirectoryLockedError("the simulated disk is in use")
        self._is_locked = True

    async def close(self) -> None:
        """Give up the lock."""
        await self.alive()
        self._is_locked = False

    async def alive(self) -> None:
        """Wait a moment, or for ever once the process is dead.

        Raises:
            StorageError: The process is dead, and `bury` was called.
        """
        if self._is_buried:
            raise StorageError("the simulated machine has crashed")
        if self.is_crashed:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(0)

    async def write_point(self, kind: str, path: str) -> None:
        """A step of an operation: it may fail, and the disk may crash before it."""
        await self.alive()
        self.raise_fault(kind, path)
        if self.count_write_point():
            await self.alive()

    def count_write_point(self) -> bool:
        """Count a step; returns whether the disk has crashed at it or before."""
        if not self.is_crashed:
            self.write_points_count += 1
            if self.write_points_count == self.crash_at:
                self.crash()
        return self.is_crashed

    def raise_fault(self, kind: str, path: str) -> None:
        """Raise the error that `fault` returns, if any."""
        error = self.fault(kind, path) if self.fault is not None else None
        if error is not None:
            raise error

    def slowness_seconds(self, path: str) -> float:
        """Seconds that a sync of that file takes."""
        return self.sync_seconds + (0.0 if self.slow is None else self.slow(path))

    def part(self, buffers: Sequence[Buffer]) -> bytes:
        """The part that a failed write leaves: a random beginning that fits the room left."""
        data = b"".join(buffers)
        if self.capacity_bytes is not None:
            data = data[: max(self.capacity_bytes - self._used(), 0)]
        return data[: self._chance.randint(0, len(data))]

    def lose_unsynced(self, inode: _Inode) -> None:
        """Make a random part of the unsynced data durable; no later sync saves the rest."""
        inode.durable[:] = inode.after_crash(self._chance).data
        inode.unsynced.clear()

    def takes_sync(self, name: str) -> bool:
        """Whether the sync of that name is done, not ignored."""
        self.syncs_seen.add(name)
        return name not in self.ignored_syncs

    def _set_name(self, path: str, inode: _Inode) -> None:
        self._names[path] = inode
        self._pending_names.append((posixpath.dirname(path), {path: inode}))

    def _sync_names(self, directory: str) -> None:
        for _, changes in (found for found in self._pending_names if found[0] == directory):
            _change_names(self._durable_names, changes)
        self._pending_names = [found for found in self._pending_names if found[0] != directory]
        self._durable_directories |= {
            name for name in self._directories if posixpath.dirname(name) == directory
        }

    def _inode(self, path: str) -> _Inode:
        try:
            return self._names[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def _used(self) -> int:
        return sum(len(inode.data) for inode in self._names.values())

    def claim(self, size_bytes: int) -> None:
        """Check that there is room for `size_bytes` more.

        Raises:
            DiskFullError: There is not.
        """
        if self.capacity_bytes is not None and self._used() + size_bytes > self.capacity_bytes:
            raise DiskFullError(f"{self._used()} of {self.capacity_bytes} bytes are used")


class _Inode:
    """A file's content: what readers see, what is durable, and the writes in between."""

    def __init__(self, reserve_bytes: int) -> None:
        self.data = bytearray(reserve_bytes)
        self.durable = bytearray(reserve_bytes)
        self.unsynced: list[tuple[int, bytes]] = []
        self.end = 0
        # The end as of the last sync.
        self.synced_end = 0
        # Offset and bytes of what was written and readers don't see before the next sync.
        self.hidden = (0, b"")

    def append(self, buffers: Sequence[Buffer]) -> None:
        data = b"".join(buffers)
        self.put(data)
        self.end += len(data)

    def put(self, data: bytes) -> None:
        """Write at the end without moving it: the next write begins at the same offset."""
        self.reveal()
        self.unsynced.append((self.end, data))
        self.data[self.end : self.end + len(data)] = data

    def hide_tail(self) -> None:
        """Keep unsynced bytes behind the last whole sector from readers, as direct writes do."""
        start = max(self.end - self.end % SECTOR_BYTES, self.synced_end)
        self.hidden = (start, bytes(self.data[start : self.end]))
        self.data[start : self.end] = self.durable[start : self.end]

    def forget_tail(self) -> None:
        """Drop the bytes that readers don't see: they were in the memory of a dead process."""
        start, hidden = self.hidden
        self.hidden = (0, b"")
        if hidden:
            self.unsynced = [
                (offset, data[: max(start - offset, 0)]) for offset, data in self.unsynced
            ]

    def reveal(self) -> None:
        """Let readers see everything."""
        _place(self.data, *self.hidden)
        self.hidden = (0, b"")

    def sync(self) -> None:
        for offset, data in self.unsynced:
            _place(self.durable, offset, data)
        self.unsynced.clear()
        self.synced_end = self.end

    def cut(self, length: int) -> None:
        """Truncate to `length`, durably."""
        self.sync()
        del self.data[length:]
        del self.durable[length:]

    def after_crash(self, chance: random.Random) -> _Inode:
        content = bytearray(self.durable)
        for offset, data in self.unsynced:
            for start, end in _surviving(chance, offset, len(data)):
                _place(content, offset + start, data[start:end])
        left = _Inode(0)
        left.data[:] = content
        left.durable[:] = content
        left.end = len(content)
        return left


class _SimulatedAppendFile(AppendFile):
    def __init__(self, disk: SimulatedDisk, path: str, inode: _Inode, *, is_direct: bool) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode
        self._is_direct = is_direct

    @property
    def size_bytes(self) -> int:
        return self._inode.end

    def append_and_sync(self, buffers: Sequence[Buffer], on_synced: OnSynced) -> None:
        disk = self._disk
        loop = asyncio.get_running_loop()
        try:
            if disk.count_write_point():
                return
            self._write(buffers)
        except (StorageError, OSError) as error:
            loop.call_soon(on_synced, error)
            return
        seconds = disk.slowness_seconds(self.path)
        if seconds:
            loop.call_later(seconds, self._sync_and_report, on_synced)
        else:
            loop.call_soon(self._sync_and_report, on_synced)

    def _sync_and_report(self, on_synced: OnSynced) -> None:
        disk = self._disk
        try:
            disk.raise_fault("sync", self.path)
        except (StorageError, OSError) as error:
            disk.lose_unsynced(self._inode)
            on_synced(error)
            return
        if disk.count_write_point():
            return
        self._sync("group")
        if not disk.count_write_point():
            on_synced(None)

    async def append(self, buffers: Sequence[Buffer]) -> None:
        await self._disk.alive()
        if self._disk.count_write_point():
            await self._disk.alive()
        self._write(buffers)

    def _write(self, buffers: Sequence[Buffer]) -> None:
        end = self._inode.end + sum(map(len, buffers))
        try:
            self._disk.raise_fault("append", self.path)
            self._disk.claim(max(end - len(self._inode.data), 0))
        except (StorageError, OSError):
            self._inode.put(self._disk.part(buffers))
            raise
        self._inode.append(buffers)
        if self._is_direct:
            self._inode.hide_tail()

    async def sync(self) -> None:
        disk = self._disk
        await disk.alive()
        seconds = disk.slow(self.path) if disk.slow is not None else 0.0
        if seconds:
            await asyncio.sleep(seconds)
        try:
            disk.raise_fault("sync", self.path)
        except (StorageError, OSError):
            disk.lose_unsynced(self._inode)
            raise
        if disk.count_write_point():
            await disk.alive()
        self._sync("data")
        await self._disk.write_point("synced", self.path)

    def _sync(self, kind: str) -> None:
        self._inode.reveal()
        if self._disk.takes_sync(f"{kind}:{posixpath.dirname(self.path)}"):
            self._inode.sync()

    async def close(self) -> None:
        await self._disk.alive()


class _SimulatedReadFile(ReadFile):
    def __init__(self, disk: SimulatedDisk, path: str, inode: _Inode) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode

    @property
    def size_bytes(self) -> int:
        return len(self._inode.data)

    async def read_at(self, offset: int, length: int) -> bytes:
        await self._disk.alive()
        self._disk.raise_fault("read", self.path)
        if self._disk.shorten is not None:
            length = self._disk.shorten(self.path, length)
        return bytes(self._inode.data[offset : offset + length])

    async def close(self) -> None:
        await self._disk.alive()


def _place(content: bytearray, offset: int, data: bytes) -> None:
    """Write bytes at an offset; a gap before them reads as zeros."""
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


_NameChange = tuple[str, dict[str, _Inode | None]]


def _change_names(names: dict[str, _Inode], changes: dict[str, _Inode | None]) -> None:
    for path, inode in changes.items():
        if inode is None:
            names.pop(path, None)
        else:
            names[path] = inode


def _prefix(chance: random.Random, pending: list[_NameChange]) -> list[_NameChange]:
    """The changes of names that survive a crash: a random beginning of them, often none."""
    kept = chance.choice((0, 0, len(pending), chance.randint(0, len(pending))))
    return pending[:kept]


def _surviving(chance: random.Random, offset: int, length: int) -> list[tuple[int, int]]:
    """The parts of an unsynced write that are on disk: whole sectors, in any choice."""
    fate = chance.choice(("nothing", "all", "beginning", "sectors"))
    if fate == "nothing":
        return []
    if fate == "all":
        return [(0, length)]
    parts = []
    start = 0
    while start < length:
        end = min(length, (offset + start) // SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES - offset)
        parts.append((start, end))
        start = end
    if fate == "beginning":
        return parts[: chance.randint(0, len(parts))]
    return [part for part in parts if chance.random() < 0.5]  # noqa: PLR2004 - a fair coin
