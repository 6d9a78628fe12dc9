"""Writes by the kernel itself: each arrives, reports once, and no failure stops the others."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import mmap
import os
import random
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import uvloop

from pulsar_py.common.disks import io_uring
from pulsar_py.common.disks.io_uring import WRITES_COUNT, IoUring

BLOCK = 4096


def has_rings() -> bool:
    ring = IoUring.open()
    if ring is None:
        return False
    asyncio.run(ring.close())
    return True


needs_rings = pytest.mark.skipif(not has_rings(), reason="this system has no io_uring")


class Memory:
    """Bytes that stay at one address."""

    def __init__(self, data: bytes) -> None:
        self.mapped = mmap.mmap(-1, max(len(data), 1))
        self.mapped.write(data)
        self.place = ctypes.addressof(ctypes.c_char.from_buffer(self.mapped)), len(data)


@pytest.fixture
async def ring() -> AsyncIterator[IoUring]:
    ring = IoUring.open()
    assert ring is not None
    ring.watch(asyncio.get_running_loop())
    yield ring
    await ring.close()


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


async def written(ring: IoUring, descriptor: int, offset: int, memory: Memory) -> int:
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    ring.write(descriptor, offset, memory.place, os.RWF_DSYNC, done.set_result)
    return await done


@needs_rings
async def test_a_write_arrives_at_its_offset(ring: IoUring, descriptor: int) -> None:
    assert await written(ring, descriptor, 5, Memory(b"bytes")) == 5

    assert os.pread(descriptor, 20, 0) == bytes(5) + b"bytes"


@needs_rings
async def test_more_writes_than_the_ring_has_places(ring: IoUring, descriptor: int) -> None:
    chance = random.Random(1)
    expected = bytearray()
    for _ in range(20 * WRITES_COUNT):
        data = chance.randbytes(chance.randint(1, 3 * BLOCK))
        assert await written(ring, descriptor, len(expected), Memory(data)) == len(data)
        expected += data

    assert os.pread(descriptor, len(expected) + 1, 0) == expected


@needs_rings
async def test_as_many_writes_at_once_as_the_ring_takes(ring: IoUring, descriptor: int) -> None:
    for turn in range(3):
        memories = [Memory(bytes([turn * 20 + each]) * BLOCK) for each in range(WRITES_COUNT)]
        loop = asyncio.get_running_loop()
        results = [loop.create_future() for _ in memories]
        for each, memory in enumerate(memories):
            assert ring.has_room
            ring.write(descriptor, each * BLOCK, memory.place, 0, results[each].set_result)
        assert not ring.has_room

        assert await asyncio.gather(*results) == [BLOCK] * WRITES_COUNT
        assert ring.has_room
        content = os.pread(descriptor, WRITES_COUNT * BLOCK, 0)
        assert content == b"".join(bytes(memory.mapped) for memory in memories)


@needs_rings
async def test_an_error_is_reported_by_its_number(ring: IoUring, descriptor: int) -> None:
    read_only = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)
    try:
        assert await written(ring, read_only, 0, Memory(b"x")) == -errno.EBADF
    finally:
        os.close(read_only)
    assert await written(ring, descriptor, 0, Memory(b"x")) == 1


@needs_rings
async def test_a_file_may_be_closed_while_it_is_written(ring: IoUring, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    memory = Memory(b"x" * BLOCK)

    ring.write(descriptor, 0, memory.place, os.RWF_DSYNC, done.set_result)
    os.close(descriptor)

    assert await done == BLOCK
    assert (tmp_path / "f").read_bytes() == b"x" * BLOCK


@needs_rings
async def test_a_write_that_is_not_taken_raises_and_the_next_one_works(
    ring: IoUring, descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ring, "_submit", lambda: -errno.EBUSY)
        with pytest.raises(OSError, match="busy"):
            ring.write(descriptor, 0, Memory(b"lost").place, 0, pytest.fail)

    assert await written(ring, descriptor, 0, Memory(b"kept")) == 4
    assert os.pread(descriptor, 9, 0) == b"kept"


@needs_rings
async def test_a_report_that_raises_keeps_no_other_from_coming(
    ring: IoUring, descriptor: int
) -> None:
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: errors.append(what))
    memory = Memory(b"x")
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def fails(result: int) -> None:
        raise ValueError(result)

    ring.write(descriptor, 0, memory.place, 0, fails)
    ring.write(descriptor, 1, memory.place, 0, done.set_result)

    assert await done == 1
    assert len(errors) == 1


@needs_rings
async def test_close_waits_for_the_writes_under_way(descriptor: int) -> None:
    ring = IoUring.open()
    assert ring is not None
    ring.watch(asyncio.get_running_loop())
    memory, results = Memory(b"x" * (1 << 20)), list[int]()

    for each in range(WRITES_COUNT):
        ring.write(descriptor, each << 20, memory.place, os.RWF_DSYNC, results.append)
    await ring.close()

    assert results == [1 << 20] * WRITES_COUNT


@needs_rings
async def test_numbers_that_the_kernel_reads_are_stored_at_once(
    ring: IoUring, descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pack_into` stores zeros first; seeing them, the kernel keeps a completion for itself."""
    monkeypatch.setattr(io_uring, "_U32", None)

    for each in range(3 * WRITES_COUNT):
        assert await written(ring, descriptor, each, Memory(b"x")) == 1


@needs_rings
async def test_no_write_begins_once_it_is_being_closed(descriptor: int) -> None:
    ring = IoUring.open()
    assert ring is not None
    ring.watch(asyncio.get_running_loop())
    memory, rooms = Memory(b"x"), list[bool]()

    ring.write(descriptor, 0, memory.place, 0, lambda _: rooms.append(ring.has_room))
    await ring.close()

    assert rooms == [False]
    assert not ring.has_room


@needs_rings
def test_a_ring_works_with_uvloop(descriptor: int) -> None:
    async def write() -> int:
        ring = IoUring.open()
        assert ring is not None
        ring.watch(asyncio.get_running_loop())
        try:
            return await written(ring, descriptor, 0, Memory(b"bytes"))
        finally:
            await ring.close()

    assert uvloop.run(write()) == 5
    assert os.pread(descriptor, 9, 0) == b"bytes"


@needs_rings
def test_a_ring_leaves_no_descriptor_behind() -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names only

    async def open_and_close() -> None:
        ring = IoUring.open()
        assert ring is not None
        ring.watch(asyncio.get_running_loop())
        await ring.close()

    asyncio.run(open_and_close())

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_there_is_none_where_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_uring, "_SETUP", 0x7FFF)  # no such call

    assert IoUring.open() is None


@pytest.mark.parametrize("missing", ["module", "library"])
def test_there_is_none_for_a_python_without_foreign_functions(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "module":
        monkeypatch.setitem(sys.modules, "ctypes", None)
    else:
        monkeypatch.setattr(ctypes, "PyDLL", lambda *_, **__: os.open("/missing", 0))

    assert IoUring.open() is None


@pytest.mark.parametrize("change", ["machine", "platform"])
def test_there_is_none_on_other_machines(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if change == "machine":
        monkeypatch.setattr(io_uring, "_MACHINE", "another")
    else:
        monkeypatch.setattr("sys.platform", "darwin")

    assert IoUring.open() is None
