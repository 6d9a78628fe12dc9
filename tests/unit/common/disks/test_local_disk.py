from __future__ import annotations

import asyncio
import errno
import os
import random
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pulsar_py.common.disks import local_disk
from pulsar_py.common.disks.disk import AppendFile
from pulsar_py.common.disks.file_writes import HAS_DIRECT
from pulsar_py.common.disks.io_uring import IoUring, OnWritten
from pulsar_py.common.disks.local_disk import RING_BYTES, LocalDisk
from pulsar_py.common.errors import DirectoryLockedError, DiskFullError, StorageError
from pulsar_py.common.loops.tasks import TaskOwner
from tests.unit.common.disks.test_io_uring import has_rings

MIB = 1024 * 1024


class Calls:
    """System calls that matter, in order, by name and file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, str]] = []
        for name in ("fdatasync", "fsync", "pwritev", "posix_fadvise"):
            monkeypatch.setattr(os, name, self._recording(name, getattr(os, name)))

    def _recording(self, name: str, real):
        def call(descriptor: int, *args: object) -> object:
            self.seen.append((name, Path(f"/proc/self/fd/{descriptor}").readlink().name))
            return real(descriptor, *args)

        return call


async def synced(file: AppendFile, data: bytes) -> BaseException | None:
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    file.append_and_sync([data], done.set_result)
    return await done


async def test_each_kind_of_write_is_synced_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = LocalDisk(tmp_path)
    file = await disk.create("f")
    calls = Calls(monkeypatch)

    await synced(file, b"group")
    await file.append([b"more"])
    await file.sync()
    await disk.replace("m", b"manifest")
    await disk.sync_directory("")
    await disk.truncate("m", 3)
    await disk.sync_file("m")
    await file.close()
    await disk.close()

    directory = tmp_path.name
    assert calls.seen == [
        ("pwritev", "f"), ("fdatasync", "f"),
        ("pwritev", "f"), ("fdatasync", "f"),
        ("pwritev", "m.tmp"), ("fdatasync", "m.tmp"), ("fsync", directory),
        ("fsync", directory),
        ("fsync", "m"),
        ("fdatasync", "m"), ("posix_fadvise", "m"),
    ]  # fmt: skip


async def test_writes_past_the_page_cache_are_synced_with_what_is_behind_the_last_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = LocalDisk(tmp_path)
    file = await disk.create("f", is_direct=True)
    calls = Calls(monkeypatch)

    await synced(file, b"group")
    await file.append([b"more"])
    await file.sync()
    await file.close()
    await disk.close()

    of_file = [name for name, path in calls.seen if path == "f"]
    assert of_file == ["pwritev", "fdatasync", "pwritev", "fdatasync"]
    assert (tmp_path / "f").read_bytes() == b"groupmore"


async def test_a_new_root_is_durable_once_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    disk = LocalDisk(tmp_path / "a" / "b")

    await disk.lock()
    await disk.close()

    assert {name for _, name in calls.seen} == {"a", tmp_path.name}


async def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev

    def short(descriptor: int, buffers: list[bytes], offset: int) -> int:
        return real(descriptor, [b"".join(buffers)[:7]], offset)

    monkeypatch.setattr(os, "pwritev", short)
    disk = LocalDisk(tmp_path)
    file = await disk.create("f")

    await file.append([b"0123456789", b"", b"abc", b"x" * 20])

    assert await disk.read_whole("f") == b"0123456789abc" + b"x" * 20
    await file.close()
    await disk.close()


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EIO, StorageError)]
)
async def test_system_errors_come_out_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StorageError]
) -> None:
    def failing(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    disk = LocalDisk(tmp_path)
    file = await disk.create("f")
    monkeypatch.setattr(os, "pwritev", failing)

    assert type(await synced(file, b"x")) is kind
    with pytest.raises(kind):
        await file.append([b"x"])
    monkeypatch.setattr(os, "posix_fallocate", failing)
    with pytest.raises(kind):
        await disk.create("g", reserve_bytes=100)
    assert not (tmp_path / "g").exists()
    await file.close()
    await disk.close()


@pytest.mark.parametrize("reserve_bytes", [1 << 62, 1 << 70])
async def test_a_reservation_beyond_all_bounds_fails_and_leaves_nothing(
    tmp_path: Path, reserve_bytes: int
) -> None:
    disk = LocalDisk(tmp_path)

    with pytest.raises(StorageError):
        await disk.create("f", reserve_bytes=reserve_bytes)

    assert not (tmp_path / "f").exists()
    await disk.close()


async def test_a_write_after_close_reaches_no_other_file(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    file = await disk.create("f")
    await file.close()
    other = await disk.create("g")

    assert isinstance(await synced(file, b"stray"), StorageError)
    assert await disk.read_whole("g") == b""
    await other.close()
    await disk.close()


async def test_another_process_is_refused_by_name(tmp_path: Path) -> None:
    script = (
        "import fcntl, sys\n"
        "f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX)\n"
        "f.write('pid 1234\\n'); f.flush(); print('locked', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here
        [sys.executable, "-c", script, str(tmp_path / local_disk.LOCK_NAME)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        disk = LocalDisk(tmp_path)
        with pytest.raises(DirectoryLockedError, match="pid 1234"):
            await disk.lock()
        other.kill()
    await disk.lock()
    await disk.close()


async def test_a_sync_does_not_wait_for_that_of_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = LocalDisk(tmp_path)
    slow, quick = await disk.create("slow"), await disk.create("quick")
    may_end, real = threading.Event(), os.pwritev

    def stand_still(descriptor: int, *args: object) -> object:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "slow":
            assert may_end.wait(10)
        return real(descriptor, *args)

    monkeypatch.setattr(os, "pwritev", stand_still)
    threads = set(threading.enumerate())
    late: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    slow.append_and_sync([b"a"], late.set_result)
    assert await synced(quick, b"b") is None
    assert not late.done()
    may_end.set()
    assert await late is None
    await quick.close()
    third = await disk.create("third")
    await synced(third, b"c")  # by a thread that no file needs any more
    names = [each.name for each in set(threading.enumerate()) - threads]
    assert names.count("pulsar-sync") == 2
    for file in (slow, third):
        await file.close()
    await disk.close()


async def test_a_file_that_is_closed_after_the_disk_leaves_no_stopped_thread_behind(
    tmp_path: Path,
) -> None:
    disk = LocalDisk(tmp_path)
    old = await disk.create("old")
    assert await synced(old, b"a") is None
    await disk.close()
    await old.close()
    new = await disk.create("new")
    async with asyncio.timeout(5):
        assert await synced(new, b"b") is None
    await new.close()
    await disk.close()


async def test_no_thread_is_left_after_close(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    disk = LocalDisk(tmp_path)
    await disk.lock()
    file = await disk.create("f")
    await synced(file, b"x")
    assert set(threading.enumerate()) > before

    await file.close()
    await disk.close()

    assert set(threading.enumerate()) <= before


async def test_a_shared_lock_keeps_writers_away_and_changes_nothing(tmp_path: Path) -> None:
    reader, other, writer = (LocalDisk(tmp_path) for _ in range(3))
    await reader.lock_shared()
    assert os.listdir(tmp_path) == []  # noqa: PTH208
    await writer.lock()
    with pytest.raises(DirectoryLockedError):
        await reader.lock_shared()
    await writer.close()
    before = (tmp_path / "LOCK").read_bytes()
    await reader.lock_shared()
    await other.lock_shared()
    with pytest.raises(DirectoryLockedError):
        await writer.lock()
    assert (tmp_path / "LOCK").read_bytes() == before
    for disk in (reader, other, writer):
        await disk.close()


async def test_space_that_was_reserved_and_never_written_is_passed_over(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    file = await disk.create("f", reserve_bytes=64 * MIB)
    await file.append([b"x" * 10_000])
    await file.sync()
    reader = await disk.open_read("f")

    found = await reader.next_data(9_999)
    assert found is not None
    start, end = found
    assert start == 9_999
    if end == 64 * MIB:
        pytest.skip("this file system does not tell written from reserved space")
    await reader.read_at(9_999, end - 9_999)
    found = await reader.next_data(end)
    assert found is None
    for each in (reader, file, disk):
        await each.close()


async def test_what_is_in_the_page_cache_is_read_without_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(bytes(range(256)) * 1000)
    disk = LocalDisk(tmp_path)
    file = await disk.open_read("f")
    memory = memoryview(bytearray(1000))
    try:
        os.preadv(file._descriptor, [memory], 0, os.RWF_NOWAIT)
    except OSError:
        pytest.skip("this file system can't tell what is in the page cache")
    used: list[object] = []
    monkeypatch.setattr(disk, "run", used.append)

    assert await file.read_into(5, memory) == 1000

    assert memory == (bytes(range(256)) * 4)[5:1005]
    assert used == []
    monkeypatch.undo()
    for each in (file, disk):
        await each.close()


@pytest.mark.parametrize("cached", [0, 300])
async def test_the_rest_is_read_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: int
) -> None:
    data = os.urandom(2_500)
    (tmp_path / "f").write_bytes(data)
    disk = LocalDisk(tmp_path)
    file = await disk.open_read("f")
    real = os.preadv
    threads: set[str] = set()

    def only_some(descriptor, buffers, offset, flags=0):
        if flags:
            if not cached:
                raise BlockingIOError
            return real(descriptor, [buffers[0][:cached]], offset)
        threads.add(threading.current_thread().name)
        return real(descriptor, [buffers[0][:700]], offset)  # as a short read

    monkeypatch.setattr(os, "preadv", only_some)
    memory = memoryview(bytearray(3_000))
    for offset in (0, 1_000, 5_000):
        expected = data[offset:]
        assert await file.read_into(offset, memory) == len(expected)
        assert memory[: len(expected)] == expected
    assert threads
    assert all(name.startswith("pulsar-disk") for name in threads)
    for each in (file, disk):
        await each.close()


async def test_a_place_beyond_all_bounds_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    disk = LocalDisk(tmp_path)
    file = await disk.open_read("f")

    with pytest.raises(StorageError, match="an offset or length is too large for the system"):
        await file.read_into(1 << 63, memoryview(bytearray(5)))
    for each in (file, disk):
        await each.close()


async def test_whoever_reads_on_and_on_lets_others_have_their_turn(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(1000))
    disk = LocalDisk(tmp_path)
    file = await disk.open_read("f")
    memory = memoryview(bytearray(1000))
    turns: list[int] = []

    async def count() -> None:
        for turn in range(50):
            turns.append(turn)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(count())
        for _ in range(50):
            await file.read_into(0, memory)
        assert len(turns) >= 49
    for each in (file, disk):
        await each.close()


class FakeRing:
    """Takes writes that never reach the file; a test says how they end."""

    def __init__(self) -> None:
        self.writes: list[tuple[int, int, int]] = []  # offset, length, flags
        self.reports: list[OnWritten] = []
        self.has_room = True
        self.is_refusing = False
        self.is_closed = False

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nothing to watch."""

    def write(
        self, _: int, offset: int, memory: tuple[int, int], flags: int, on_written: OnWritten
    ) -> None:
        """Take a write."""
        if self.is_refusing:
            raise OSError(errno.EBUSY, "busy")
        self.writes.append((offset, memory[1], flags))
        self.reports.append(on_written)

    async def close(self) -> None:
        """Note it."""
        self.is_closed = True


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> FakeRing:
    ring = FakeRing()
    monkeypatch.setattr(IoUring, "open", lambda: ring)
    return ring


@pytest.fixture
async def written_again(tmp_path: Path) -> AsyncIterator[tuple[LocalDisk, AppendFile]]:
    """A file that is written again, past the page cache, and its disk."""
    (tmp_path / "f").write_bytes(bytes(8 * MIB))
    disk = LocalDisk(tmp_path)
    file = await disk.open_again("f", is_direct=True)
    yield disk, file
    await file.close()
    await disk.close()


def sync_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "pulsar-sync"]


needs_direct = pytest.mark.skipif(not HAS_DIRECT, reason="this system has no direct writes")


@needs_direct
@pytest.mark.skipif(not has_rings(), reason="this system has no io_uring")
async def test_blocks_of_a_file_written_again_arrive_without_a_thread(
    tmp_path: Path, written_again: tuple[LocalDisk, AppendFile]
) -> None:
    _, file = written_again
    chance, expected = random.Random(3), b""
    for _ in range(30):
        data = chance.randbytes(4096 * chance.randint(1, 20))
        done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        file.append_and_sync([data[:10], memoryview(data)[10:5000], data[5000:]], done.set_result)
        assert await done is None
        expected += data

    assert not sync_threads()
    assert (tmp_path / "f").read_bytes()[: len(expected)] == expected


@needs_direct
async def test_a_write_of_the_ring_is_durable_when_it_ends(
    ring: FakeRing, written_again: tuple[LocalDisk, AppendFile]
) -> None:
    _, file = written_again
    reports: list[BaseException | None] = []

    file.append_and_sync([b"x" * 4096], reports.append)
    file.append_and_sync([b"y" * 8192], reports.append)
    assert ring.writes == [(0, 4096, os.RWF_DSYNC), (4096, 8192, os.RWF_DSYNC)]
    assert not reports

    ring.reports[1](8192)
    ring.reports[0](4096)
    assert reports == [None, None]


@needs_direct
@pytest.mark.parametrize(
    "result",
    [0, 512, -errno.EINVAL, -errno.EOPNOTSUPP, -errno.EAGAIN, -errno.ECANCELED, -errno.ENOMEM],
)
async def test_what_the_ring_can_not_write_a_thread_writes(
    result: int, tmp_path: Path, ring: FakeRing, written_again: tuple[LocalDisk, AppendFile]
) -> None:
    _, file = written_again
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    file.append_and_sync([b"x" * 4096], done.set_result)
    ring.reports[0](result)
    assert await done is None
    assert await synced(file, b"y" * 4096) is None

    assert len(ring.writes) == 1
    assert (tmp_path / "f").read_bytes()[:8192] == b"x" * 4096 + b"y" * 4096


@needs_direct
@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EIO, StorageError)]
)
async def test_an_error_of_the_ring_comes_out_as_ours(
    number: int,
    kind: type[StorageError],
    ring: FakeRing,
    written_again: tuple[LocalDisk, AppendFile],
) -> None:
    _, file = written_again
    reports: list[BaseException | None] = []

    file.append_and_sync([b"x" * 4096], reports.append)
    ring.reports[0](-number)

    assert type(reports[0]) is kind
    assert str(reports[0]) == os.strerror(number)


@needs_direct
@pytest.mark.parametrize("case", ["large", "not whole blocks", "full ring", "refused", "no memory"])
async def test_a_thread_writes_what_is_not_for_the_ring(
    case: str,
    tmp_path: Path,
    ring: FakeRing,
    written_again: tuple[LocalDisk, AppendFile],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, file = written_again
    size_bytes = {"large": RING_BYTES + 4096, "not whole blocks": 4097}.get(case, 4096)
    ring.has_room = case != "full ring"
    ring.is_refusing = case == "refused"
    if case == "no memory":
        monkeypatch.setattr(os, "memfd_create", lambda *_: os.open("/missing", 0))

    assert await synced(file, b"x" * size_bytes) is None

    assert not ring.writes
    assert (tmp_path / "f").read_bytes()[: size_bytes + 1] == b"x" * size_bytes + b"\0"


@needs_direct
async def test_a_write_behind_one_in_the_thread_goes_to_the_thread(
    tmp_path: Path, ring: FakeRing, written_again: tuple[LocalDisk, AppendFile]
) -> None:
    """What the thread has not written yet would be unknown to the ring."""
    _, file = written_again
    first, second, third = b"x" * 4097, b"y" * 4095, b"z" * 4096
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    file.append_and_sync([first], lambda _: None)
    file.append_and_sync([second], lambda _: None)
    file.append_and_sync([third], done.set_result)
    assert await done is None

    assert not ring.writes
    assert (tmp_path / "f").read_bytes()[: 3 * 4096] == first + second + third
    file.append_and_sync([third], lambda _: None)
    assert ring.writes == [(3 * 4096, 4096, os.RWF_DSYNC)]


async def test_files_in_the_page_cache_and_new_ones_have_no_ring(
    tmp_path: Path, ring: FakeRing
) -> None:
    (tmp_path / "f").write_bytes(bytes(MIB))
    disk = LocalDisk(tmp_path)
    for file in (await disk.open_again("f"), await disk.create("g", is_direct=True)):
        assert await synced(file, b"x" * 4096) is None
        await file.close()
    await disk.close()

    assert not ring.writes


@needs_direct
async def test_a_disk_that_is_used_again_has_a_ring_again(
    tmp_path: Path, written_again: tuple[LocalDisk, AppendFile]
) -> None:
    disk, first = written_again
    assert await synced(first, b"x" * 4096) is None
    await disk.close()

    file = await disk.open_again("f", is_direct=True)
    assert await synced(file, b"y" * 4096) is None
    await file.close()

    assert (tmp_path / "f").read_bytes()[:4097] == b"y" * 4096 + b"\0"


@needs_direct
@pytest.mark.skipif(not has_rings(), reason="this system has no io_uring")
async def test_a_file_that_outlives_the_ring_is_written_by_a_thread(
    tmp_path: Path, written_again: tuple[LocalDisk, AppendFile]
) -> None:
    disk, file = written_again
    assert await synced(file, b"x" * 4096) is None

    await disk.close()
    assert await synced(file, b"y" * 4096) is None

    assert (tmp_path / "f").read_bytes()[: 2 * 4096] == b"x" * 4096 + b"y" * 4096


@needs_direct
@pytest.mark.skipif(not has_rings(), reason="this system has no io_uring")
async def test_a_write_that_begins_while_the_ring_is_closed_is_reported(
    written_again: tuple[LocalDisk, AppendFile],
) -> None:
    disk, file = written_again
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    file.append_and_sync(
        [b"x" * 4096], lambda _: file.append_and_sync([b"y" * 4096], done.set_result)
    )
    await disk.close()

    async with asyncio.timeout(5):
        assert await done is None


@needs_direct
@pytest.mark.parametrize("error", [NotImplementedError(), OSError(errno.ENOSPC, "no more")])
async def test_a_loop_that_can_not_watch_a_ring_does_without(
    error: Exception,
    ring: FakeRing,
    written_again: tuple[LocalDisk, AppendFile],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk, _ = written_again
    await disk.close()  # the next file asks for a ring again
    ring.is_closed = False

    def fails(_: asyncio.AbstractEventLoop) -> None:
        raise error

    monkeypatch.setattr(ring, "watch", fails)
    file = await disk.open_again("f", is_direct=True)
    assert await synced(file, b"x" * 4096) is None
    await file.close()

    assert not ring.writes
    assert ring.is_closed


@needs_direct
@pytest.mark.parametrize("is_direct", [False, True])
async def test_a_late_write_to_a_closed_file_fails(tmp_path: Path, *, is_direct: bool) -> None:
    disk = LocalDisk(tmp_path)
    file = await disk.create("f", is_direct=is_direct)
    assert await synced(file, b"x" * 4097) is None
    await file.close()

    async with asyncio.timeout(5):
        error = await synced(file, b"y" * 4096)

    assert type(error) is StorageError
    assert str(error) == os.strerror(errno.EBADF)
    await disk.close()


async def test_an_error_nobody_thought_of_is_reported_and_the_thread_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = LocalDisk(tmp_path)
    file = await disk.create("f")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", lambda _: bytes(-1))
        async with asyncio.timeout(5):
            error = await synced(file, b"x")
    assert type(error) is StorageError
    assert "negative count" in str(error)

    async with asyncio.timeout(5):
        assert await synced(file, b"y") is None
    for each in (file, disk):
        await each.close()


async def test_a_thread_that_can_not_be_started_is_an_error_of_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise RuntimeError("can't start new thread")

    disk = LocalDisk(tmp_path)
    file = await disk.create("f")
    with monkeypatch.context() as patch:
        patch.setattr(local_disk.SyncThread, "__init__", fails)
        error = await synced(file, b"x")

    assert type(error) is StorageError
    assert "f: not written: can't start new thread" in str(error)
    for each in (file, disk):
        await each.close()


@needs_direct
async def test_a_disk_can_be_closed_while_somebody_keeps_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error's traceback has views of the memory that is given back."""

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    disk = LocalDisk(tmp_path)
    file = await disk.create("f", is_direct=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", fails)
        error = await synced(file, b"x" * 4096)
    assert type(error) is StorageError

    await file.close()
    await disk.close()


async def test_a_file_lent_to_a_caller_who_is_gone_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = LocalDisk(tmp_path)
    await disk.replace("f", b"data")
    opened: list[int] = []
    may_open = threading.Event()
    real = os.open

    def slow_open(path: str, flags: int) -> int:
        assert may_open.wait(10)
        opened.append(real(path, flags))
        return opened[-1]

    monkeypatch.setattr(os, "open", slow_open)
    lending = TaskOwner("test").spawn(disk.lend("f"), "lend")
    await asyncio.sleep(0.01)
    lending.cancel()
    may_open.set()
    await asyncio.gather(lending, return_exceptions=True)
    await disk.close()  # waits for its threads
    assert lending.cancelled()
    (descriptor,) = opened
    async with asyncio.timeout(10):
        while is_open(descriptor):  # noqa: ASYNC110 - what the thread tells may wait for a turn
            await asyncio.sleep(0)


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("cached_count", [0, 5, None])
@pytest.mark.parametrize("count", [1, 5, 32, 33, 100])
async def test_places_are_read_whether_or_not_they_are_in_the_page_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached_count: int | None, count: int
) -> None:
    disk = LocalDisk(tmp_path)
    data = bytes(range(200))
    await disk.replace("f", data)
    real, calls = local_disk._read_what_is_cached, []

    def read_what_is_cached(descriptor: int, offset: int, memory: memoryview) -> int:
        calls.append(offset)
        is_cached = cached_count is None or len(calls) <= cached_count
        return real(descriptor, offset, memory) if is_cached else 0

    monkeypatch.setattr(local_disk, "_read_what_is_cached", read_what_is_cached)
    reader = await disk.open_read("f")
    places = [(2 * number, 2) for number in range(count)]
    assert await reader.read_several(places) == [data[at : at + 2] for at, _ in places]
    looked_for = min(count, 32)
    assert len(calls) == (looked_for if cached_count is None else min(looked_for, cached_count + 1))
    await reader.close()
    await disk.close()
