"""`LocalDisk`: a Disk in a directory of the machine (edge).

Calls that would block run in threads: each file has one of its own for `append_and_sync`, so that a
journal never queues behind anything else, and a small pool serves the rest. Each job wakes the loop
once.
The threads touch files only, never the broker's state. A file that is written again past the page
cache needs no thread for up to `RING_BYTES`, where the system has `io_uring`: all its blocks are
there, so that the kernel seldom has to wait, and does not do so on the loop.

Data is synced with `fdatasync` (the size is data, too), directories with `fsync`. Reserved space is
`posix_fallocate`d, which saves the file system an allocation at each sync: 0.18 against 0.23 ms for
4 KB, measured on ext4. The lock is `flock` on the file LOCK, which the system releases with the
process, however that ends.
"""

# ruff: noqa: TID251 - this is one of the two places that sync files.

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.disks.disk import AppendFile, Disk, LentFile, OnSynced, ReadFile
from pulsar_py.common.disks.file_writes import DirectWriter, DirectWrites, write_cached
from pulsar_py.common.disks.io_uring import IoUring
from pulsar_py.common.disks.slow_removal import SlowRemoval
from pulsar_py.common.errors import DirectoryLockedError, DiskFullError, StorageError

logger = logging.getLogger(__name__)

LOCK_NAME = "LOCK"
POOL_THREADS_COUNT = 4

RING_BYTES = 1024 * 1024
"""The most bytes that are copied on the loop to be written without a thread: about 0.1 ms."""

CACHED_PLACES_COUNT = 32
"""The most places of a file that are looked for in the page cache without a thread: 0.1 ms."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_BY_RING = (
    errno.EINVAL,
    errno.EOPNOTSUPP,
    errno.EAGAIN,
    errno.EINTR,
    errno.ECANCELED,  # the kernel could not start a thread for it
    errno.ENOMEM,
)
"""What says that a write has to be done in another way, not that it can't be done."""
_NO_WAIT: int | None = getattr(os, "RWF_NOWAIT", None)
"""The flag of `preadv` for reading from the page cache only; None where the system has none."""

P = ParamSpec("P")
T = TypeVar("T")


class LocalDisk(Disk):
    """A directory tree below `root`; belongs to one event loop."""

    def __init__(self, root: Path | str) -> None:
        self._root = str(root)
        self._pool: ThreadPoolExecutor | None = None
        self._syncers: list[SyncThread] = []
        # Those that no file uses now.
        self._idle_syncers: list[SyncThread] = []
        self._lock_descriptor: int | None = None
        self._direct_writes = DirectWrites()
        self._slow_removal = SlowRemoval()
        self._ring: IoUring | None = None
        self._has_asked_for_ring = False

    def full_path(self, path: str) -> str:
        """Where a path of this disk is on the machine."""
        return f"{self._root}/{path}" if path else self._root

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in the pool.

        Raises:
            FileNotFoundError: The file does not exist.
            DiskFullError: There is no room.
            StorageError: Any other OSError, or a number that is too large for the system.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(POOL_THREADS_COUNT, "pulsar-disk")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, _translated, lambda: work(*args, **kwargs))

    def take_syncer(self) -> SyncThread:
        """A thread for one file, until it is given back."""
        if self._idle_syncers:
            return self._idle_syncers.pop()
        syncer = SyncThread()
        self._syncers.append(syncer)
        return syncer

    def give_back_syncer(self, syncer: SyncThread) -> None:
        """Let another file use it, unless it was stopped: a file may outlive `close`."""
        if syncer in self._syncers:
            self._idle_syncers.append(syncer)

    async def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        await self.run(os.makedirs, self.full_path(path), exist_ok=True)

    async def list_directory(self, path: str) -> list[str]:
        """Sorted names of the files in a directory."""
        return await self.run(_list_files, self.full_path(path))

    async def create(
        self, path: str, *, reserve_bytes: int = 0, is_direct: bool = False
    ) -> AppendFile:
        """Create an empty file for appending, with space reserved."""
        descriptor = await self.run(_create, self.full_path(path), reserve_bytes)
        return self._append_file(path, descriptor, is_direct=is_direct)

    async def open_again(self, path: str, *, is_direct: bool = False) -> AppendFile:
        """Open a file to be written again from its start."""
        ring = await self._open_ring() if is_direct else None
        descriptor = await self.run(os.open, self.full_path(path), os.O_RDWR)
        return self._append_file(path, descriptor, is_direct=is_direct, ring=ring)

    def _append_file(
        self, path: str, descriptor: int, *, is_direct: bool, ring: IoUring | None = None
    ) -> AppendFile:
        if is_direct:
            return _DirectAppendFile(self, path, descriptor, self._direct_writes, ring)
        return _LocalAppendFile(self, path, descriptor)

    async def _open_ring(self) -> IoUring | None:
        """The ring of all files, opened at the first call; None where there are none."""
        if not self._has_asked_for_ring:
            self._has_asked_for_ring = True
            ring = await self.run(IoUring.open)
            if ring is not None:
                try:
                    ring.watch(asyncio.get_running_loop())
                except (NotImplementedError, OSError):
                    await ring.close()
                else:
                    self._ring = ring
        return self._ring

    async def rename(self, path: str, new_path: str) -> None:
        """Give a file another name."""
        await self.run(Path(self.full_path(path)).replace, self.full_path(new_path))

    def random_number(self) -> int:
        """64 bits that nobody can foresee."""
        return secrets.randbits(64)

    async def open_read(self, path: str) -> ReadFile:
        """Open a file for reading."""
        descriptor = await self.run(os.open, self.full_path(path), os.O_RDONLY)
        return _LocalReadFile(self, path, descriptor)

    async def lend(self, path: str) -> LentFile:
        """A file to be read by another process."""
        return await self.run(_lend, self.full_path(path))

    async def read_whole(self, path: str) -> bytes:
        """All bytes of a file."""
        return await self.run(Path(self.full_path(path)).read_bytes)

    async def replace(self, path: str, data: Buffer) -> None:
        """Put a whole file in place, durably and at once."""
        await self.run(_replace, self.full_path(path), data)

    async def truncate(self, path: str, length: int) -> None:
        """Cut a file, durably."""
        await self.run(_truncate, self.full_path(path), length)

    async def sync_file(self, path: str) -> None:
        """Make durable what a file has, whoever wrote it."""
        await self.run(_sync_found, self.full_path(path))

    async def remove(self, path: str) -> None:
        """Remove a file's name."""
        await self.run(Path(self.full_path(path)).unlink, missing_ok=True)

    async def remove_slowly(self, path: str) -> None:
        """Remove a file's name; its space follows in pieces."""
        await self.run(self._slow_removal.remove, self.full_path(path))

    async def free_removed(self) -> None:
        """Give back at once the space of what was removed slowly."""
        if self._slow_removal.is_under_way:
            await self.run(self._slow_removal.free_now)

    async def sync_directory(self, path: str) -> None:
        """Make creations and removals in a directory durable."""
        await self.run(sync_directory, self.full_path(path))

    async def free_bytes(self) -> int:
        """Bytes that can still be written."""
        state = await self.run(os.statvfs, self._root)
        return state.f_bavail * state.f_frsize

    async def lock(self) -> None:
        """Create the root if need be, and take the tree for this process."""
        self._lock_descriptor = await self.run(_lock, self._root)

    async def lock_shared(self) -> None:
        """Lock the tree for reading until `close`: no process can lock it for writing meanwhile.

        A tree without a lock file gets none, and is not locked.

        Raises:
            DirectoryLockedError: Another process has it.
        """
        self._lock_descriptor = await self.run(_lock_shared, self._root)

    async def close(self) -> None:
        """Give up the lock and stop the threads; the disk may be used again after another lock."""
        ring, self._ring, self._has_asked_for_ring = self._ring, None, False
        if ring is not None:
            await ring.close()
        self._idle_syncers.clear()
        while self._syncers:
            await self.run(self._syncers.pop().stop)
        # A removal whose caller was cancelled may still be in the pool: it ends as one that is not
        # slow.
        removal, self._slow_removal = self._slow_removal, SlowRemoval()
        if self._pool is not None:
            await self.run(removal.stop)
        if self._lock_descriptor is not None:
            await self.run(os.close, self._lock_descriptor)
            self._lock_descriptor = None
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
        self._direct_writes.close()


class SyncThread:
    """A thread for `append_and_sync`: writes, syncs and reports one job after the other."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[
            tuple[asyncio.AbstractEventLoop, Callable[[], None], OnSynced] | None
        ] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pulsar-sync", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], None], on_synced: OnSynced) -> None:
        """Do `work` in the thread, then call back on this loop."""
        self._jobs.put((asyncio.get_running_loop(), work, on_synced))

    def stop(self) -> None:
        """Return when all jobs are done and the thread has ended."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, work, on_synced = job
            error: BaseException | None = None
            try:
                _translated(work)
            except (StorageError, FileNotFoundError) as failure:
                error = failure
            except Exception as failure:
                # Unreported, it would end the thread, and with it all that waits for its files.
                logger.exception("write failed")
                error = StorageError(f"not written: {failure!r}")
            # Nothing of this job may stay alive while the thread waits for the next one.
            del job, work
            # RuntimeError: the loop was closed meanwhile, so nobody waits for the report.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(on_synced, error)


class _LocalAppendFile(AppendFile):
    size_bytes: int = 0  # Hot path: publish-1k. No call, each group of entries asks for it.

    def __init__(self, disk: LocalDisk, path: str, descriptor: int) -> None:
        self.path = path
        self._disk = disk
        self._descriptor = descriptor
        self._syncer: SyncThread | None = None

    def append_and_sync(self, buffers: Sequence[Buffer], on_synced: OnSynced) -> None:
        offset = self.size_bytes
        self.size_bytes += sum(map(len, buffers))
        work = partial(_write_and_sync, self._descriptor, offset, buffers)
        self._run_syncing(work, on_synced)

    def _run_syncing(self, work: Callable[[], None], on_synced: OnSynced) -> None:
        if self._syncer is None:
            try:
                self._syncer = self._disk.take_syncer()
            except RuntimeError as error:  # the system starts no more threads
                failure = StorageError(f"{self.path}: not written: {error}")
                asyncio.get_running_loop().call_soon(on_synced, failure)
                return
        self._syncer.run(work, on_synced)

    async def append(self, buffers: Sequence[Buffer]) -> None:
        offset = self.size_bytes
        self.size_bytes += sum(map(len, buffers))
        await self._disk.run(write_cached, self._descriptor, offset, buffers)

    async def sync(self) -> None:
        await self._disk.run(os.fdatasync, self._descriptor)

    async def close(self) -> None:
        # From now on a late write fails: the system may soon give the number to another file.
        descriptor, self._descriptor = self._descriptor, -1
        if self._syncer is not None:
            self._disk.give_back_syncer(self._syncer)
            self._syncer = None
        await self._disk.run(os.close, descriptor)


class _DirectAppendFile(_LocalAppendFile):
    """A file that is written past the page cache; readers see what was synced."""

    def __init__(
        self,
        disk: LocalDisk,
        path: str,
        descriptor: int,
        shared: DirectWrites,
        ring: IoUring | None = None,
    ) -> None:
        super().__init__(disk, path, descriptor)
        self._writer = DirectWriter(descriptor, shared)
        self._shared = shared
        self._ring = ring
        # How many calls are in the thread, where they use and change what the writer knows.
        self._in_thread_count = 0

    def append_and_sync(self, buffers: Sequence[Buffer], on_synced: OnSynced) -> None:
        # Hot path: publish-1k.
        offset = self.size_bytes
        size_bytes = sum(map(len, buffers))
        self.size_bytes += size_bytes
        if (
            self._ring is None
            or self._in_thread_count
            or size_bytes > RING_BYTES
            or not self._writer.takes_blocks(size_bytes)
            or not self._write_by_ring(self._ring, offset, buffers, on_synced)
        ):
            self._write_in_thread(offset, buffers, on_synced)

    def _write_in_thread(self, offset: int, buffers: Sequence[Buffer], on_synced: OnSynced) -> None:
        def report(error: BaseException | None) -> None:
            self._in_thread_count -= 1
            on_synced(error)

        self._in_thread_count += 1
        self._run_syncing(partial(self._writer.write_and_sync, offset, buffers), report)

    def _write_by_ring(
        self, ring: IoUring, offset: int, buffers: Sequence[Buffer], on_synced: OnSynced
    ) -> bool:
        """Begin to write whole blocks; returns whether that was possible."""
        if not ring.has_room:
            return False
        shared = self._shared
        try:
            memory = shared.take()
        except OSError:
            return False
        filled = memory.fill(buffers)

        def report(result: int) -> None:
            shared.give_back(memory)
            if result == filled[1]:
                on_synced(None)
            elif result >= 0 or -result in _NOT_BY_RING:
                self._ring = None
                self._write_in_thread(offset, buffers, on_synced)
            else:
                on_synced(_as_storage_error(OSError(-result, os.strerror(-result))))

        try:
            ring.write(self._descriptor, offset, filled, shared.sync_flag, report)
        except OSError:
            shared.give_back(memory)
            self._ring = None
            return False
        return True

    async def append(self, buffers: Sequence[Buffer]) -> None:
        offset = self.size_bytes
        self.size_bytes += sum(map(len, buffers))
        await self._disk.run(self._writer.write, offset, buffers)

    async def sync(self) -> None:
        await self._disk.run(self._writer.sync, self.size_bytes)

    async def close(self) -> None:
        self._writer.close()
        await super().close()


class _LocalReadFile(ReadFile):
    def __init__(self, disk: LocalDisk, path: str, descriptor: int) -> None:
        self.path = path
        self._disk = disk
        self._descriptor = descriptor

    @property
    def size_bytes(self) -> int:
        return os.fstat(self._descriptor).st_size

    async def read_at(self, offset: int, length: int) -> bytes:
        return await self._disk.run(_read, self._descriptor, offset, length)

    async def read_several(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        # As in `read_into`; the rest in one job.
        found = _read_those_cached(self._descriptor, places[:CACHED_PLACES_COUNT])
        if len(found) < len(places):
            rest = places[len(found) :]
            found += await self._disk.run(_read_several, self._descriptor, rest)
        else:
            await asyncio.sleep(0)
        return found

    async def read_into(self, offset: int, memory: memoryview) -> int:
        # Bytes in the page cache are read on the loop: going to a thread and back costs as much as
        # copying a megabyte.
        size = _read_what_is_cached(self._descriptor, offset, memory)
        if size < len(memory):
            size += await self._disk.run(_read_into, self._descriptor, offset + size, memory[size:])
        else:
            await asyncio.sleep(0)  # a caller that reads in a loop must not block the event loop
        return size

    async def next_data(self, offset: int) -> tuple[int, int] | None:
        return await self._disk.run(_next_data, self._descriptor, offset)

    async def close(self) -> None:
        # From now on a late read fails: the system may soon give the number to another file.
        descriptor, self._descriptor = self._descriptor, -1
        await self._disk.run(os.close, descriptor)


def _translated(work: Callable[[], T]) -> T:
    try:
        return work()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _as_storage_error(error) from error
    except OverflowError as error:
        raise StorageError(f"an offset or length is too large for the system: {error}") from error


def _as_storage_error(error: OSError) -> StorageError:
    name = f"{error.filename}: " if error.filename else ""
    kind = DiskFullError if error.errno in _FULL else StorageError
    return kind(f"{name}{error.strerror or error}")


def _write_and_sync(descriptor: int, offset: int, buffers: Sequence[Buffer]) -> None:
    write_cached(descriptor, offset, buffers)
    os.fdatasync(descriptor)


def _lend(path: str) -> LentFile:
    # In the thread: a caller that is cancelled meanwhile must not lose the descriptor.
    return LentFile(os.open(path, os.O_RDONLY))


def _read(descriptor: int, offset: int, length: int) -> bytes:
    data = os.pread(descriptor, length, offset)
    while len(data) < length:
        more = os.pread(descriptor, length - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def _read_several(descriptor: int, places: Sequence[tuple[int, int]]) -> list[bytes]:
    return [_read(descriptor, offset, length) for offset, length in places]


def _read_into(descriptor: int, offset: int, memory: memoryview) -> int:
    size = 0
    while size < len(memory):
        more = os.preadv(descriptor, [memory[size:]], offset + size)
        if not more:
            break
        size += more
    return size


def _read_what_is_cached(descriptor: int, offset: int, memory: memoryview) -> int:
    """Read what the page cache has, without waiting for the disk; returns how many bytes."""
    if _NO_WAIT is None:
        return 0
    try:
        return os.preadv(descriptor, [memory], offset, _NO_WAIT)
    except (OSError, OverflowError):  # Not cached, or a real error: the blocking read reports it.
        return 0


def _read_those_cached(descriptor: int, places: Sequence[tuple[int, int]]) -> list[bytes]:
    """The bytes at the first of the places, up to one that the page cache does not have."""
    found = []
    for offset, length in places:
        memory = bytearray(length)
        if _read_what_is_cached(descriptor, offset, memoryview(memory)) < length:
            break
        found.append(bytes(memory))
    return found


def _next_data(descriptor: int, offset: int) -> tuple[int, int] | None:
    # Without this the system reads ahead into reserved space, which it then reports as data, so a
    # search for the end of the data would run through all of it.
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    try:
        start = os.lseek(descriptor, offset, os.SEEK_DATA)
        return start, os.lseek(descriptor, start, os.SEEK_HOLE)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        if error.errno == errno.EINVAL:  # This file system does not know SEEK_DATA.
            size = os.fstat(descriptor).st_size
            return (offset, size) if offset < size else None
        raise


def _create(path: str, reserve_bytes: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        if reserve_bytes:
            os.posix_fallocate(descriptor, 0, reserve_bytes)
    except (OSError, OverflowError):
        os.close(descriptor)
        Path(path).unlink()
        raise
    return descriptor


def _replace(path: str, data: Buffer) -> None:
    temporary = f"{path}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_cached(descriptor, 0, [data])
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    Path(temporary).replace(path)
    sync_directory(Path(path).parent)


def _sync_found(path: str) -> None:
    sync_file(path)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Pages that a failed sync did not store count as clean, and only they have their bytes.
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _truncate(path: str, length: int) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(descriptor, length)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path | str) -> None:
    """Make the contents of a file durable; blocks.

    Raises:
        OSError: It is not there, or can't be stored; the error has its path.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(descriptor)
    except OSError as error:  # of a descriptor, without its path
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)


def sync_directory(path: Path | str) -> None:
    """Make creations and removals in a directory durable; blocks.

    Raises:
        OSError: It is not there, or can't be stored.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _list_files(path: str) -> list[str]:
    try:
        with os.scandir(path) as found:
            return sorted(item.name for item in found if item.is_file())
    except FileNotFoundError:
        return []


def _lock(root: str) -> int:
    path = Path(root)
    missing = [parent for parent in (path, *path.parents) if not parent.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for directory in missing:
        sync_directory(directory.parent)
    descriptor = os.open(f"{root}/{LOCK_NAME}", os.O_RDWR | os.O_CREAT, 0o644)
    _flock(descriptor, fcntl.LOCK_EX, root)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"pid {os.getpid()}\n".encode(), 0)
    return descriptor


def _lock_shared(root: str) -> int | None:
    try:
        descriptor = os.open(f"{root}/{LOCK_NAME}", os.O_RDONLY)
    except FileNotFoundError:
        return None
    _flock(descriptor, fcntl.LOCK_SH, root)
    return descriptor


def _flock(descriptor: int, kind: int, root: str) -> None:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 64).decode(errors="replace").strip()
        os.close(descriptor)
        raise DirectoryLockedError(
            f"{root}: the data directory is in use by another process ({owner or 'unknown'}); "
            "stop that one first"
        ) from None
