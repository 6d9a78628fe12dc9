"""Writes past the page cache: every byte arrives, whatever the file system takes."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.disks.file_writes import (
    CACHED_PIECE_BYTES,
    COPIED_BYTES,
    DIRECT_BLOCK_BYTES,
    DIRECT_PIECE_BYTES,
    HAS_DIRECT,
    DirectWriter,
    DirectWrites,
    write_cached,
)

BLOCK = DIRECT_BLOCK_BYTES

pytestmark = pytest.mark.skipif(not HAS_DIRECT, reason="this system has no direct writes")


@pytest.fixture
def shared() -> Iterator[DirectWrites]:
    shared = DirectWrites()
    yield shared
    shared.close()


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def content(descriptor: int) -> bytes:
    with open(f"/proc/self/fd/{descriptor}", "rb") as file:  # noqa: PTH123 - a path of the system
        return file.read()


def is_direct(descriptor: int) -> bool:
    return bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT)


def direct_writes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Offset and length of each direct write from now on."""
    seen: list[tuple[int, int]] = []
    real = os.pwrite

    def pwrite(descriptor: int, data: memoryview, offset: int) -> int:
        seen.append((offset, len(data)))
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    return seen


@pytest.mark.parametrize("seed", range(20))
def test_any_sequence_of_writes_and_syncs_arrives(
    seed: int, descriptor: int, shared: DirectWrites
) -> None:
    chance = random.Random(seed)
    writer, expected = DirectWriter(descriptor, shared), b""
    for _ in range(chance.randint(1, 12)):
        sizes = [chance.choice((0, 1, 100, BLOCK - 1, BLOCK, 3 * BLOCK + 5)) for _ in range(4)]
        buffers: list[Buffer] = [chance.randbytes(size) for size in sizes]
        writer.write(len(expected), buffers)
        expected += b"".join(buffers)
        if chance.random() < 0.5:
            writer.sync(len(expected))
            assert content(descriptor) == expected
        if chance.random() < 0.5:
            more = chance.randbytes(chance.choice((BLOCK, 2 * BLOCK, -len(expected) % BLOCK)))
            writer.write_and_sync(len(expected), [more])
            expected += more
            assert content(descriptor) == expected
    writer.sync(len(expected))
    assert content(descriptor) == expected


def syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What made something durable from now on: `flag`, a write with it, or `fdatasync`."""
    seen: list[str] = []
    real_pwritev = os.pwritev
    real_fdatasync = os.fdatasync  # noqa: TID251 - to count the calls

    def pwritev(descriptor: int, buffers: Sequence[Buffer], offset: int, flags: int = 0) -> int:
        if flags:
            assert flags == os.RWF_DSYNC
            seen.append("flag")
        return real_pwritev(descriptor, buffers, offset, flags)

    def fdatasync(descriptor: int) -> None:
        seen.append("fdatasync")
        real_fdatasync(descriptor)

    monkeypatch.setattr(os, "pwritev", pwritev)
    monkeypatch.setattr(os, "fdatasync", fdatasync)
    return seen


def test_whole_blocks_are_written_and_made_durable_by_one_call(
    descriptor: int, shared: DirectWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = DirectWriter(descriptor, shared)
    if not is_direct(descriptor):
        pytest.skip("the file system has no direct writes")
    seen = syncs(monkeypatch)

    writer.write_and_sync(0, [b"a" * BLOCK, b"b" * BLOCK])
    assert seen == ["flag"]

    writer.write_and_sync(2 * BLOCK, [b"c" * COPIED_BYTES, b"d" * BLOCK])
    assert seen == ["flag", "flag"]
    assert content(descriptor) == (b"a" * BLOCK + b"b" * BLOCK + b"c" * COPIED_BYTES + b"d" * BLOCK)


def test_what_one_call_can_not_make_durable_is_synced(
    descriptor: int, shared: DirectWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = DirectWriter(descriptor, shared)
    if not is_direct(descriptor):
        pytest.skip("the file system has no direct writes")
    seen = syncs(monkeypatch)

    writer.write_and_sync(0, [b"a" * (BLOCK - 1)])  # no whole block
    writer.write_and_sync(BLOCK - 1, [b"b"])  # fills it: what is before it is durable already
    writer.write(BLOCK, [b"c" * BLOCK])
    writer.write_and_sync(2 * BLOCK, [b"d" * BLOCK])  # what was written before is not durable
    writer.write_and_sync(3 * BLOCK, [b"e" * DIRECT_PIECE_BYTES])  # more than one write

    assert seen == ["fdatasync", "flag", "fdatasync", "fdatasync"]
    assert content(descriptor)[: 3 * BLOCK] == (
        b"a" * (BLOCK - 1) + b"b" + b"c" * BLOCK + b"d" * BLOCK
    )


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_system_without_durable_writes_gets_a_sync_for_each(
    number: int, descriptor: int, shared: DirectWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = DirectWriter(descriptor, shared)
    if not is_direct(descriptor):
        pytest.skip("the file system has no direct writes")
    seen = syncs(monkeypatch)
    real = os.pwritev

    def refused(descriptor: int, buffers: Sequence[Buffer], offset: int, flags: int = 0) -> int:
        if flags:
            raise OSError(number, os.strerror(number))
        return real(descriptor, buffers, offset, flags)

    monkeypatch.setattr(os, "pwritev", refused)

    writer.write_and_sync(0, [b"a" * BLOCK])
    writer.write_and_sync(BLOCK, [b"b" * BLOCK])

    assert seen == ["fdatasync", "fdatasync"]
    assert not shared.sync_flag
    assert is_direct(descriptor)
    assert content(descriptor) == b"a" * BLOCK + b"b" * BLOCK


def test_an_error_of_a_durable_write_comes_out(
    descriptor: int, shared: DirectWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = DirectWriter(descriptor, shared)
    if not is_direct(descriptor):
        pytest.skip("the file system has no direct writes")

    def broken(descriptor: int, buffers: Sequence[Buffer], offset: int, flags: int = 0) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwritev", broken)
        with pytest.raises(OSError, match="Input/output"):
            writer.write_and_sync(0, [b"a" * BLOCK])

    writer.write_and_sync(BLOCK, [b"b" * BLOCK])
    assert content(descriptor)[BLOCK:] == b"b" * BLOCK


def test_only_whole_blocks_are_written_past_the_cache(
    descriptor: int, shared: DirectWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = direct_writes(monkeypatch)
    writer = DirectWriter(descriptor, shared)
    if not is_direct(descriptor):
        pytest.skip("the file system has no direct writes")

    writer.write(0, [b"a" * 100])
    writer.write(100, [b"b" * BLOCK])
    writer.sync(BLOCK + 100)
    writer.write(BLOCK + 100, [b"c" * (BLOCK - 100)])

    assert seen == [(0, BLOCK), (BLOCK, BLOCK)]
    assert content(descriptor) == b"a" * 100 + b"b" * BLOCK + b"c" * (BLOCK - 100)


def test_a_large_write_goes_in_pieces_and_small_ones_as_one(
    descriptor: int, shared: DirectWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(2 * DIRECT_PIECE_BYTES + 5000)
    seen = direct_writes(monkeypatch)
    writer = DirectWriter(descriptor, shared)
    if not is_direct(descriptor):
        pytest.skip("the file system has no direct writes")

    writer.write(0, [data[:7], memoryview(data)[7:]])
    writer.sync(len(data))

    assert content(descriptor) == data
    assert seen == [
        (0, DIRECT_PIECE_BYTES),
        (DIRECT_PIECE_BYTES, DIRECT_PIECE_BYTES),
        (2 * DIRECT_PIECE_BYTES, BLOCK),
    ]
    many: list[Buffer] = [b"%03d" % (number % 1000) for number in range(5000)]
    again = DirectWriter(descriptor, shared)
    seen.clear()
    again.write(0, many)
    assert seen == [(0, 3 * BLOCK)]
    assert content(descriptor)[: 3 * BLOCK] == b"".join(many)[: 3 * BLOCK]


def test_a_write_that_is_refused_goes_through_the_cache_and_so_do_later_files(
    descriptor: int,
    shared: DirectWrites,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refused(descriptor: int, data: memoryview, offset: int) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "pwrite", refused)
    caplog.set_level(logging.INFO)
    writer = DirectWriter(descriptor, shared)

    data = os.urandom(3 * BLOCK + 10)
    writer.write(0, [data])
    writer.write(len(data), [b"more"])
    writer.sync(len(data) + 4)

    assert content(descriptor) == data + b"more"
    assert not is_direct(descriptor)
    assert shared.is_refused
    DirectWriter(descriptor, shared).write(0, [b"x" * BLOCK])
    assert content(descriptor)[:BLOCK] == b"x" * BLOCK
    assert [record.message for record in caplog.records] == [
        "no direct writes here, the page cache is used"
    ]


def test_a_file_system_that_refuses_the_flag_gets_usual_writes(
    descriptor: int, shared: DirectWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.fcntl

    def refused(descriptor: int, command: int, flags: int = 0) -> int:
        if command == fcntl.F_SETFL and flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(descriptor, command, flags)

    monkeypatch.setattr(fcntl, "fcntl", refused)
    seen = direct_writes(monkeypatch)

    writer = DirectWriter(descriptor, shared)
    writer.write(0, [b"a" * BLOCK, b"b"])
    writer.sync(BLOCK + 1)

    assert content(descriptor) == b"a" * BLOCK + b"b"
    assert not seen
    assert shared.is_refused


def test_a_system_that_gives_no_aligned_memory_gets_usual_writes(
    descriptor: int, shared: DirectWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(name: str, flags: int) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "memfd_create", refused)
    writer = DirectWriter(descriptor, shared)

    writer.write(0, [b"a" * BLOCK, b"b"])
    writer.write(BLOCK + 1, [b"c"])
    writer.sync(BLOCK + 2)

    assert content(descriptor) == b"a" * BLOCK + b"bc"
    assert shared.is_refused
    assert not is_direct(descriptor)


@pytest.mark.parametrize("part_bytes", [BLOCK, BLOCK + 512])
def test_a_short_write_is_continued(
    part_bytes: int, descriptor: int, shared: DirectWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite

    def short(descriptor: int, data: memoryview, offset: int) -> int:
        assert real(descriptor, data[: 2 * BLOCK], offset) >= part_bytes
        return part_bytes

    data = os.urandom(4 * BLOCK + 9)
    writer = DirectWriter(descriptor, shared)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", short)
        writer.write(0, [data[: 2 * BLOCK]])
    writer.write(2 * BLOCK, [data[2 * BLOCK :]])
    writer.sync(len(data))

    assert content(descriptor) == data


def test_an_error_comes_out_and_the_rest_of_the_file_goes_through_the_cache(
    descriptor: int, shared: DirectWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: memoryview, offset: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = DirectWriter(descriptor, shared)
    if not is_direct(descriptor):
        pytest.skip("the file system has no direct writes")
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space"):
            writer.write(0, [b"a" * BLOCK])

    writer.write(BLOCK, [b"b" * 10])
    writer.sync(BLOCK + 10)

    assert content(descriptor)[BLOCK:] == b"b" * 10
    assert not shared.is_refused


def test_memory_is_used_again(descriptor: int, shared: DirectWrites) -> None:
    one = shared.take()
    two = shared.take()
    assert one is not two
    shared.give_back(one)
    assert shared.take() is one
    shared.give_back(one)
    shared.give_back(two)
    writer = DirectWriter(descriptor, shared)
    writer.write(0, [b"a" * BLOCK])
    assert {shared.take(), shared.take()} == {one, two}
    one.close()
    two.close()


@pytest.mark.parametrize("seed", range(8))
def test_no_write_to_the_page_cache_has_more_than_a_piece(
    seed: int, descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = os.pwritev

    def pwritev(descriptor: int, buffers: Sequence[Buffer], offset: int) -> int:
        seen.append(sum(map(len, buffers)))
        return real(descriptor, buffers, offset)

    monkeypatch.setattr(os, "pwritev", pwritev)
    chance = random.Random(seed)
    piece = CACHED_PIECE_BYTES
    sizes = [chance.choice((0, 1, 5000, piece - 1, piece, 3 * piece + 7)) for _ in range(6)]
    buffers: list[Buffer] = [chance.randbytes(size) for size in sizes]

    assert write_cached(descriptor, 100, buffers) == 100 + sum(sizes)

    assert content(descriptor)[100:] == b"".join(buffers)
    assert max(seen, default=0) <= piece
    assert len(seen) <= sum(sizes) // piece + 1
