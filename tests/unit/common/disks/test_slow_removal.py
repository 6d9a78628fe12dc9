"""Files whose space is given back in pieces: only where nobody can see it."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pulsar_py.common.disks import slow_removal
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.disks.slow_removal import HAS_LEASES, PIECE_BYTES, SlowRemoval
from pulsar_py.common.loops.tasks import TaskOwner

SIZE_BYTES = 5 * PIECE_BYTES + 17

pytestmark = pytest.mark.skipif(not HAS_LEASES, reason="this system has no leases on files")


class Cuts:
    """The lengths that files were cut to, in order; the first cut may be held up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[int] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.has_begun = threading.Event()
        real = os.ftruncate

        def ftruncate(descriptor: int, length: int) -> None:
            real(descriptor, length)
            self.seen.append(length)
            self.has_begun.set()
            assert self.may_go_on.wait(10)

        monkeypatch.setattr(os, "ftruncate", ftruncate)


@pytest.fixture(autouse=True)
def any_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the one that temporary files are in, whichever that is."""
    here = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(slow_removal, "FILE_SYSTEMS", {slow_removal._file_system(here)})
    os.close(here)


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> Cuts:
    return Cuts(monkeypatch)


@pytest.fixture
def removal() -> Iterator[SlowRemoval]:
    removal = SlowRemoval()
    yield removal
    removal.stop()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return large_file(tmp_path / "log")


def large_file(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(SIZE_BYTES)
    return path


def await_end(removal: SlowRemoval) -> None:
    thread = removal._thread
    if thread is not None:
        thread.join(10)
    assert not removal.is_under_way


def open_files() -> dict[str, Path]:
    """The names of all files that are open here, and where the system has them."""
    found = {}
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            found[str(each.readlink())] = each
    return found


def test_a_large_file_loses_its_name_at_once_and_its_space_in_pieces(
    cuts: Cuts, removal: SlowRemoval, path: Path
) -> None:
    cuts.may_go_on.clear()

    removal.remove(str(path))

    assert not path.exists()
    assert cuts.has_begun.wait(10)
    cuts.may_go_on.set()
    await_end(removal)
    assert cuts.seen == [SIZE_BYTES - PIECE_BYTES * count for count in range(1, 6)]
    assert f"{path} (deleted)" not in open_files()


def test_a_small_file_and_one_that_is_gone_need_no_thread(
    removal: SlowRemoval, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.write_bytes(bytes(2 * PIECE_BYTES - 1))

    removal.remove(str(small))
    removal.remove(str(small))

    assert not small.exists()
    assert not removal.is_under_way


def test_what_somebody_reads_stays_whole(
    cuts: Cuts, removal: SlowRemoval, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_removal, "PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(slow_removal, "ASK_EVERY_SECONDS", 0.005)
    with path.open("rb") as reader:
        removal.remove(str(path))
        await_end(removal)
        assert os.fstat(reader.fileno()).st_size == SIZE_BYTES
    assert cuts.seen == []


def test_a_reader_that_closes_soon_is_waited_for(
    cuts: Cuts, removal: SlowRemoval, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    real = fcntl.fcntl
    reader = path.open("rb")

    def asking(descriptor: int, command: int, argument: int) -> int:
        if command != fcntl.F_SETLEASE or argument != fcntl.F_WRLCK:
            return real(descriptor, command, argument)
        try:
            answer = real(descriptor, command, argument)
        except BlockingIOError:
            asked.append(False)
            reader.close()
            raise
        asked.append(True)
        return answer

    monkeypatch.setattr(fcntl, "fcntl", asking)

    removal.remove(str(path))
    await_end(removal)

    assert asked == [False, True]
    assert len(cuts.seen) == 5


def test_a_file_with_another_name_stays_whole(
    cuts: Cuts, removal: SlowRemoval, path: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    backup.hardlink_to(path)

    removal.remove(str(path))

    assert not removal.is_under_way
    assert not path.exists()
    assert backup.stat().st_size == SIZE_BYTES
    assert cuts.seen == []


def test_the_lease_is_given_back_at_once(cuts: Cuts, removal: SlowRemoval, path: Path) -> None:
    """Else somebody who opens the file in `/proc` would end the process by a signal."""
    cuts.may_go_on.clear()
    removal.remove(str(path))
    assert cuts.has_begun.wait(10)
    found = open_files()[f"{path} (deleted)"]
    os.close(os.open(found, os.O_RDONLY | os.O_NONBLOCK))
    cuts.may_go_on.set()


def test_who_opens_it_in_proc_while_there_is_a_lease_does_not_end_the_process(
    cuts: Cuts, removal: SlowRemoval, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.fcntl
    opened: list[int] = []
    signals: list[int] = []

    def opening(descriptor: int, command: int, argument: int) -> int:
        answer = real(descriptor, command, argument)
        if command == fcntl.F_SETLEASE and argument == fcntl.F_WRLCK:
            with suppress(BlockingIOError):  # it has asked for the lease to be given up
                os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK)
            opened.append(descriptor)
        return answer

    monkeypatch.setattr(fcntl, "fcntl", opening)
    before = signal.signal(signal.SIGIO, lambda number, _: signals.append(number))
    try:
        removal.remove(str(path))
        await_end(removal)
    finally:
        signal.signal(signal.SIGIO, before)

    assert opened
    assert signals == []
    assert f"{path} (deleted)" not in open_files()


def test_nobody_who_has_a_lease_is_waited_for(
    cuts: Cuts, removal: SlowRemoval, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_removal, "PATIENCE_SECONDS", 0.02)
    with path.open("rb") as holder:
        fcntl.fcntl(holder, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(holder, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        remover = threading.Thread(target=removal.remove, args=[str(path)])
        remover.start()
        remover.join(10)
        is_waiting = remover.is_alive()
    remover.join(10)

    assert not is_waiting
    assert not path.exists()
    assert cuts.seen == []


def test_where_others_may_have_it_unknown_to_the_system_it_stays_whole(
    cuts: Cuts, removal: SlowRemoval, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_removal, "FILE_SYSTEMS", {"ext5"})

    removal.remove(str(path))

    assert not removal.is_under_way
    assert not path.exists()
    assert cuts.seen == []


def test_the_file_system_is_that_of_the_mount() -> None:
    with Path("/proc/self/status").open("rb") as file:
        assert slow_removal._file_system(file.fileno()) == "proc"
    nowhere = os.memfd_create("nowhere")
    assert slow_removal._file_system(nowhere) == ""
    os.close(nowhere)
    assert slow_removal._file_system(nowhere) == ""


def test_what_is_removed_after_the_stop_is_freed_at_once(
    cuts: Cuts, removal: SlowRemoval, path: Path
) -> None:
    removal.stop()
    removal.remove(str(path))
    assert not removal.is_under_way
    assert f"{path} (deleted)" not in open_files()
    assert cuts.seen == []


def test_stopping_frees_at_once_what_is_left(
    cuts: Cuts, removal: SlowRemoval, path: Path, tmp_path: Path
) -> None:
    other = large_file(tmp_path / "other")
    cuts.may_go_on.clear()
    removal.remove(str(path))
    removal.remove(str(other))
    assert cuts.has_begun.wait(10)

    stopping = threading.Thread(target=removal.stop)
    stopping.start()
    assert removal._hurry.wait(10)
    cuts.may_go_on.set()
    stopping.join(10)

    assert cuts.seen == [SIZE_BYTES - PIECE_BYTES]
    assert not removal.is_under_way
    assert not {f"{path} (deleted)", f"{other} (deleted)"} & open_files().keys()
    removal.remove(str(tmp_path / "nothing"))


def test_no_more_descriptors_are_held_than_may_wait(
    cuts: Cuts, removal: SlowRemoval, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_removal, "MOST_WAITING_COUNT", 1)
    others = [large_file(tmp_path / f"other{number}") for number in range(3)]
    cuts.may_go_on.clear()
    removal.remove(str(path))
    assert cuts.has_begun.wait(10)

    for other in others:
        removal.remove(str(other))

    held = [each for each in open_files() if each.startswith(str(tmp_path))]
    assert sorted(held) == [f"{path} (deleted)", f"{others[0]} (deleted)"]
    assert not any(other.exists() for other in others)
    cuts.may_go_on.set()


def test_those_that_are_read_do_not_hold_up_others(
    cuts: Cuts, removal: SlowRemoval, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_removal, "PATIENCE_SECONDS", 60.0)
    others = [large_file(tmp_path / f"read{number}") for number in range(3)]
    readers = [other.open("rb") for other in others]
    for other in others:
        removal.remove(str(other))
    removal.remove(str(path))

    assert cuts.has_begun.wait(10)
    removal.stop()

    assert {os.fstat(reader.fileno()).st_size for reader in readers} == {SIZE_BYTES}
    for reader in readers:
        reader.close()


def test_a_process_with_few_descriptors_has_few_waiting(
    cuts: Cuts, removal: SlowRemoval, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    assert slow_removal._most_waiting_count() == 16
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert slow_removal._most_waiting_count() == slow_removal.MOST_WAITING_COUNT
    monkeypatch.setattr(resource, "getrlimit", lambda _: (15, 15))
    removal.remove(str(path))
    assert not removal.is_under_way
    assert f"{path} (deleted)" not in open_files()


def test_where_there_are_no_leases_it_is_freed_at_once(
    cuts: Cuts, removal: SlowRemoval, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(fcntl, "fcntl", refused)

    removal.remove(str(path))
    await_end(removal)

    assert not path.exists()
    assert cuts.seen == []


def test_without_a_thread_it_is_freed_at_once(
    cuts: Cuts, removal: SlowRemoval, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        removal.remove(str(path))

    assert not path.exists()
    assert not removal.is_under_way
    assert cuts.seen == []
    assert f"{path} (deleted)" not in open_files()


async def test_a_disk_frees_what_is_left_when_it_closes(
    cuts: Cuts, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_removal, "REST_SECONDS", 60.0)
    disk = LocalDisk(tmp_path)
    await disk.remove_slowly("log")
    await disk.close()
    assert f"{path} (deleted)" not in open_files()
    assert len(cuts.seen) <= 1
    with pytest.raises(FileNotFoundError):
        await disk.open_read("log")
    await disk.close()


async def test_where_space_is_wanted_it_is_there_at_once(
    cuts: Cuts, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_removal, "REST_SECONDS", 60.0)
    disk = LocalDisk(tmp_path)
    await disk.remove_slowly("log")
    await disk.free_removed()
    assert f"{path} (deleted)" not in open_files()
    assert len(cuts.seen) <= 1
    large_file(path)
    await disk.remove_slowly("log")
    assert await asyncio.to_thread(cuts.has_begun.wait, 10), "the next one has time again"
    await disk.close()


async def test_a_removal_that_nobody_waits_for_any_more_ends_with_the_disk(
    cuts: Cuts, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_removal, "REST_SECONDS", 60.0)
    real = Path.unlink
    has_begun, may_go_on = threading.Event(), threading.Event()

    def unlink(path: Path, *, missing_ok: bool = False) -> None:
        has_begun.set()
        assert may_go_on.wait(10)
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    disk = LocalDisk(tmp_path)
    removing = TaskOwner("test").spawn(disk.remove_slowly("log"), "remove")
    assert await asyncio.to_thread(has_begun.wait, 10)
    removing.cancel()
    waking = threading.Timer(0.1, may_go_on.set)
    waking.start()

    await disk.close()

    assert "pulsar-free" not in {each.name for each in threading.enumerate()}
    assert f"{path} (deleted)" not in open_files()
    waking.join()
