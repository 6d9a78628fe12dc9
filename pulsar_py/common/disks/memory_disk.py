"""`MemoryDisk`: a Disk in memory, for in-memory brokers and tests.

Everything is durable at once, nothing survives the object. Contents outlive `close`, so that an
engine can be reopened on the same disk. No threads: completions come through the loop, in order.

A file is a list of chunks while it grows and one `bytes`-like buffer once it is read; its handles
share it, so an open reader keeps what was removed.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Sequence

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.disks.disk import AppendFile, Disk, OnSynced, ReadFile
from pulsar_py.common.errors import DirectoryLockedError, DiskFullError, StorageError

DEFAULT_CAPACITY_BYTES = 1 << 40


class MemoryDisk(Disk):
    """A directory tree in memory, bounded by `capacity_bytes`."""

    def __init__(self, capacity_bytes: int = DEFAULT_CAPACITY_BYTES) -> None:
        self._capacity_bytes = capacity_bytes
        self._files: dict[str, _Content] = {}
        self._directories: set[str] = {""}
        self._is_locked = False
        self._drawn_count = 0

    async def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        while path not in self._directories:
            self._directories.add(path)
            path = posixpath.dirname(path)

    async def list_directory(self, path: str) -> list[str]:
        """Sorted names of the files in a directory."""
        return sorted(
            posixpath.basename(name) for name in self._files if posixpath.dirname(name) == path
        )

    async def create(
        self,
        path: str,
        *,
        reserve_bytes: int = 0,
        is_direct: bool = False,  # noqa: ARG002 - there is no cache
    ) -> AppendFile:
        """Create an empty file; a reservation is only counted against the capacity."""
        if path in self._files:
            raise StorageError(f"{path}: exists already")
        if posixpath.dirname(path) not in self._directories:
            raise StorageError(f"{path}: no such directory")
        self.claim(reserve_bytes)
        content = _Content(reserve_bytes)
        self._files[path] = content
        return _MemoryAppendFile(self, path, content)

    async def open_again(
        self,
        path: str,
        *,
        is_direct: bool = False,  # noqa: ARG002 - there is no cache
    ) -> AppendFile:
        """Open a file to be written again from its start."""
        content = self._content(path)
        content.end = 0
        return _MemoryAppendFile(self, path, content)

    async def rename(self, path: str, new_path: str) -> None:
        """Give a file another name."""
        content = self._content(path)
        del self._files[path]
        self._files[new_path] = content

    def random_number(self) -> int:
        """A count: nobody else writes to this memory."""
        self._drawn_count += 1
        return self._drawn_count

    async def open_read(self, path: str) -> ReadFile:
        """Open a file for reading."""
        return _MemoryReadFile(path, self._content(path))

    async def read_whole(self, path: str) -> bytes:
        """All bytes of a file."""
        return bytes(self._content(path).data)

    async def replace(self, path: str, data: Buffer) -> None:
        """Put a whole file in place."""
        content = _Content(0)
        content.data += data
        self._files[path] = content

    async def truncate(self, path: str, length: int) -> None:
        """Cut a file."""
        content = self._content(path)
        del content.data[length:]
        content.end = min(content.end, length)

    async def sync_file(self, path: str) -> None:
        """Nothing to do but to look whether it is there."""
        self._content(path)

    async def remove(self, path: str) -> None:
        """Remove a file's name."""
        self._files.pop(path, None)

    async def sync_directory(self, path: str) -> None:
        """Nothing to do."""

    async def free_bytes(self) -> int:
        """The bytes of the capacity that are left."""
        return self._capacity_bytes - sum(len(content.data) for content in self._files.values())

    async def lock(self) -> None:
        """Take the tree."""
        if self._is_locked:
            raise DirectoryLockedError("memory disk: in use already; close its other user first")
        self._is_locked = True

    async def close(self) -> None:
        """Give up the lock."""
        self._is_locked = False

    def claim(self, growth_bytes: int) -> None:
        """Check that `growth_bytes` more fit into the capacity; callers write them afterwards.

        Raises:
            DiskFullError: There is no room for `growth_bytes` more.
        """
        if self._capacity_bytes < DEFAULT_CAPACITY_BYTES and growth_bytes > 0:
            used = sum(len(content.data) for content in self._files.values())
            if used + growth_bytes > self._capacity_bytes:
                raise DiskFullError(
                    f"memory disk: no room for {growth_bytes} bytes more, "
                    f"{used} of {self._capacity_bytes} bytes are used"
                )

    def _content(self, path: str) -> _Content:
        try:
            return self._files[path]
        except KeyError:
            raise FileNotFoundError(path) from None


class _Content:
    """A file's bytes; `end` is where the next append goes, `data` may be longer (reserved)."""

    __slots__ = ("data", "end")

    def __init__(self, reserve_bytes: int) -> None:
        self.data = bytearray(reserve_bytes)
        self.end = 0

    def append(self, buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            end = self.end + len(buffer)
            self.data[self.end : end] = buffer
            self.end = end


class _MemoryAppendFile(AppendFile):
    def __init__(self, disk: MemoryDisk, path: str, content: _Content) -> None:
        self.path = path
        self._disk = disk
        self._content = content

    @property
    def size_bytes(self) -> int:
        return self._content.end

    def append_and_sync(self, buffers: Sequence[Buffer], on_synced: OnSynced) -> None:
        error: BaseException | None = None
        try:
            self._append(buffers)
        except StorageError as failure:
            error = failure
        asyncio.get_running_loop().call_soon(on_synced, error)

    async def append(self, buffers: Sequence[Buffer]) -> None:
        self._append(buffers)

    def _append(self, buffers: Sequence[Buffer]) -> None:
        end = self._content.end + sum(map(len, buffers))
        self._disk.claim(end - len(self._content.data))
        self._content.append(buffers)

    async def sync(self) -> None:
        pass

    async def close(self) -> None:
        pass


class _MemoryReadFile(ReadFile):
    def __init__(self, path: str, content: _Content) -> None:
        self.path = path
        self._content = content

    @property
    def size_bytes(self) -> int:
        return len(self._content.data)

    async def read_at(self, offset: int, length: int) -> bytes:
        return bytes(memoryview(self._content.data)[offset : offset + length])

    async def close(self) -> None:
        pass
