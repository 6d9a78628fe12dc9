"""watched_file: what is rewritten is read again, even if its times and its size stay."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.security.watched_file import SETTLED_SECONDS, WatchedFile


class SetClock(Clock):
    now = 100.0

    def monotonic_seconds(self) -> float:
        return self.now

    def wall_time_millis(self) -> int:
        return int(self.now * 1000)


class FileOfOneTick:
    """A file whose times stand still, as within one tick of its file system."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads = 0

    def stat(self) -> os.stat_result:
        return os.stat_result((0o100600, 7, 1, 1, 0, 0, len(self.data), 50, 50, 50))

    def read_bytes(self) -> bytes:
        self.reads += 1
        return self.data


def watched(file: FileOfOneTick) -> tuple[WatchedFile, SetClock]:
    clock = SetClock()
    return WatchedFile(cast("Path", file), clock), clock


def test_what_is_rewritten_within_a_tick_is_found_though_its_size_stays() -> None:
    file = FileOfOneTick(b"old")
    watch, clock = watched(file)
    assert watch.look() == b"old"
    assert watch.look() is None
    file.data = b"new"
    assert watch.look() == b"new"
    file.data = b"no1"
    clock.now += SETTLED_SECONDS  # the first look since the tick has ended
    assert watch.look() == b"no1"


def test_contents_that_have_settled_are_not_read_at_each_look() -> None:
    file = FileOfOneTick(b"old")
    watch, clock = watched(file)
    watch.look()
    clock.now += SETTLED_SECONDS
    watch.look()
    reads = file.reads
    for _ in range(5):
        assert watch.look() is None
    assert file.reads == reads
    file.data = b"longer"
    assert watch.look() == b"longer"


def test_a_file_with_its_old_time_put_back_is_read(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"old")
    os.utime(path, (5, 5))
    clock = SetClock()
    watch = WatchedFile(path, clock)
    watch.look()
    clock.now += SETTLED_SECONDS
    watch.look()
    before = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == before:  # until the next tick
        path.write_bytes(b"new")
        os.utime(path, (5, 5))
    assert watch.look() == b"new"


def test_a_file_that_is_gone_is_told_once_and_read_when_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "key"
    watch = WatchedFile(path)
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            watch.look()
        assert watch.look() is None
        path.write_bytes(b"")
        assert watch.look() == b""
        path.unlink()
