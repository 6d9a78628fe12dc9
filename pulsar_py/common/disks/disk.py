"""`Disk`: the interface to files, so that simulations can lose, tear and flip what was written.

Paths are relative to the disk's root, with `/`. A write is durable when `sync` of its file has
returned, a created, renamed or removed name when `sync_directory` of its directory has. The journal
uses `AppendFile.append_and_sync`: a plain call that reports back once, on the loop, when all its
bytes are on disk. Implementations: `local_disk.LocalDisk` (threads inside),
`memory_disk.MemoryDisk`, and `testing.disk.SimulatedDisk`. One contract suite covers all of them.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.errors import StorageError

OnSynced = Callable[[BaseException | None], None]
"""Called on the loop, once: with None when everything is durable, else with what went wrong."""


class AppendFile(ABC):
    """A file that grows at its end; one owner, one outstanding call at a time."""

    path: str

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Bytes appended so far (reserved space beyond them does not count)."""

    @abstractmethod
    def append_and_sync(self, buffers: Sequence[Buffer], on_synced: OnSynced) -> None:
        """Write all buffers in order at the end, sync, then call back on the loop.

        The buffers have to stay unchanged until then. The error is a `DiskFullError` or another
        `StorageError`; after one, how much of the write is on disk is unknown.
        """

    @abstractmethod
    async def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all buffers in order at the end; not durable before `sync`.

        Raises:
            DiskFullError: There is no room; part of it may have been written.
            StorageError: The write failed.
        """

    @abstractmethod
    async def sync(self) -> None:
        """Return when everything appended so far is durable."""

    @abstractmethod
    async def close(self) -> None:
        """Release the file; does not sync."""


class ReadFile(ABC):
    """A file open for reading; stays readable after its name is removed."""

    path: str

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """The file's size when asked."""

    @abstractmethod
    async def read_at(self, offset: int, length: int) -> bytes:
        """The bytes at `offset`; fewer than `length` only at the end of the file."""

    async def read_several(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        """As `read_at` at each of the places, which are offsets and lengths."""
        return [await self.read_at(offset, length) for offset, length in places]

    async def read_into(self, offset: int, memory: memoryview) -> int:
        """Read the bytes at `offset` into `memory`; returns how many were read.

        They are fewer than `memory` holds only at the end of the file. `memory` belongs to this
        call until it returns. After a cancellation a thread may go on writing to it, until the
        buffer has no other view. Bytes in the system's page cache may be read without waiting.
        """
        data = await self.read_at(offset, len(memory))
        memory[: len(data)] = data
        return len(data)

    async def next_data(self, offset: int) -> tuple[int, int] | None:
        """Start and end of the next bytes from `offset` on that may be other than zero, if any.

        Where a disk can tell reserved space from written space, callers need not read the former.
        """
        size = self.size_bytes
        return (offset, size) if offset < size else None

    @abstractmethod
    async def close(self) -> None:
        """Release the file."""


class LentFile:
    """A file that is open for reading in a description of its own, for another process.

    The descriptor can be sent there; here it is closed with the object, at the latest when nobody
    has that any more.
    """

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        """The descriptor."""
        assert self._descriptor >= 0, "closed"
        return self._descriptor

    def close(self) -> None:
        """Close the descriptor here. May be called again."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    __del__ = close


async def read_fully(file: ReadFile, offset: int, length: int) -> bytes:
    """The bytes at `offset`; fewer than `length` only where the file ends.

    Raises:
        StorageError: The disk returned fewer bytes than the file has there. This is neither damage
            nor the file's end; the read may be repeated.
    """
    data = await file.read_at(offset, length)
    _check_length(file, offset, length, len(data))
    return data


async def read_fully_into(file: ReadFile, offset: int, memory: memoryview) -> memoryview:
    """As `read_fully`, into `memory`; returns a read-only view of the part that was filled."""
    size = await file.read_into(offset, memory)
    _check_length(file, offset, len(memory), size)
    return memory[:size].toreadonly()


def _check_length(file: ReadFile, offset: int, length: int, got: int) -> None:
    if got < length and offset + got < file.size_bytes:
        raise StorageError(f"{file.path}: offset {offset}: {got} of {length} bytes read")


class Disk(ABC):
    """A directory tree."""

    @abstractmethod
    async def make_directory(self, path: str) -> None:
        """Create a directory and its parents; fine if it is there."""

    @abstractmethod
    async def list_directory(self, path: str) -> list[str]:
        """Sorted names of the files in a directory; empty if there is no such directory."""

    @abstractmethod
    async def create(
        self, path: str, *, reserve_bytes: int = 0, is_direct: bool = False
    ) -> AppendFile:
        """Create an empty file for appending, with space reserved (which reads as zeros).

        Args:
            path: The file.
            reserve_bytes: Space that appending then need not ask for.
            is_direct: Write past the system's cache of files, if there is one and that can be
                done. What is durable when stays the same, but what was not synced may not be read.

        Raises:
            StorageError: The file exists, or cannot be created.
        """

    @abstractmethod
    async def open_again(self, path: str, *, is_direct: bool = False) -> AppendFile:
        """Open a file to be written again from its start; it keeps what is not overwritten.

        `is_direct` is as for `create`.

        Raises:
            FileNotFoundError: There is none.
        """

    @abstractmethod
    async def rename(self, path: str, new_path: str) -> None:
        """Give a file another name in the same directory; a file of that name is replaced.

        A crash before `sync_directory` leaves one of the two names.

        Raises:
            FileNotFoundError: There is none.
        """

    @abstractmethod
    def random_number(self) -> int:
        """64 bits that nobody can foresee; from the seed where chance has one."""

    @abstractmethod
    async def open_read(self, path: str) -> ReadFile:
        """Open a file for reading.

        Raises:
            FileNotFoundError: There is none.
        """

    async def lend(self, path: str) -> LentFile | None:
        """A file to be read by another process; None where the system has no such files.

        Raises:
            FileNotFoundError: There is none.
            StorageError: It can't be opened.
        """
        del path
        return None

    @abstractmethod
    async def read_whole(self, path: str) -> bytes:
        """All bytes of a file.

        Raises:
            FileNotFoundError: There is none.
        """

    @abstractmethod
    async def replace(self, path: str, data: Buffer) -> None:
        """Put a whole file in place, durably and at once: a crash leaves the old or the new."""

    @abstractmethod
    async def truncate(self, path: str, length: int) -> None:
        """Cut a file to `length` bytes, durably."""

    @abstractmethod
    async def sync_file(self, path: str) -> None:
        """Make durable what a file has, whoever wrote it; from then on readers get what is stored.

        A process that was killed leaves what it did not sync to those that read the file after it,
        until the machine stops; and so it leaves what a failed sync has lost.

        Raises:
            FileNotFoundError: There is none.
            StorageError: It can't be made durable.
        """

    @abstractmethod
    async def remove(self, path: str) -> None:
        """Remove a file's name; fine if it is gone already."""

    async def remove_slowly(self, path: str) -> None:
        """As `remove`, for a large file: a disk may give back its space soon after, in pieces.

        So that nobody waits for the device meanwhile. Where the space is wanted, use `remove`.
        """
        await self.remove(path)

    async def free_removed(self) -> None:  # noqa: B027 - most have given it back already
        """Return when the space of what was removed slowly is back, unless others have it open."""

    @abstractmethod
    async def sync_directory(self, path: str) -> None:
        """Make creations and removals in a directory durable."""

    @abstractmethod
    async def free_bytes(self) -> int:
        """Bytes that can still be written."""

    @abstractmethod
    async def lock(self) -> None:
        """Take the whole tree for this process, until `close`.

        Raises:
            DirectoryLockedError: Another process has it.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give up the lock and stop the threads."""
