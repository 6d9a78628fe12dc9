"""A socket's reading is lent while messages come alone, and one at a time reads."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pulsar_py.client.brokers.direct_socket import DirectSocket
from pulsar_py.client.brokers.lent_reading import LentReading


class Transport:
    """As much of a transport as a `LentReading` needs; whether it reads."""

    def __init__(self) -> None:
        self.reads = True
        self.closes = False

    def pause_reading(self) -> None:
        assert self.reads
        self.reads = False

    def resume_reading(self) -> None:
        assert not self.reads
        assert not self.closes
        self.reads = True

    def is_closing(self) -> bool:
        return self.closes


Pair = tuple[socket.socket, socket.socket]


class Parts:
    """A reading of a real socket, and what the loop reads of it."""

    def __init__(self, pair: Pair) -> None:
        ours, self.theirs = pair
        self.transport = Transport()
        self.direct = DirectSocket(self.transport, ours.fileno())
        self.read_by_loop = b""
        self.lent = LentReading(asyncio.get_running_loop(), self.transport, self.direct, self._read)

    def _read(self) -> None:
        self.read_by_loop += self.read_by_thread()

    def read_by_thread(self) -> bytes:
        memory = memoryview(bytearray(100))
        return bytes(memory[: self.direct.receive_into(memory) or 0])

    def lend(self, count: int = 8) -> None:
        """Have so many messages come alone, of which the last one makes it lent."""
        for _ in range(count):
            assert not self.lent.is_lent
            self.lent.came_alone()
        assert self.lent.is_lent


def descriptors_count() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
async def parts(pair: Pair) -> AsyncIterator[Parts]:
    parts = Parts(pair)
    yield parts
    parts.lent.close()
    parts.direct.close()


async def test_it_is_lent_after_eight_messages_alone_and_the_loop_reads(parts: Parts) -> None:
    for _ in range(7):
        parts.lent.came_alone()
    parts.lent.came_else()
    assert parts.transport.reads
    parts.lend()
    assert not parts.transport.reads
    parts.theirs.send(b"abc")
    await asyncio.sleep(0.01)
    assert parts.read_by_loop == b"abc"


async def test_what_a_reader_has_the_loop_does_not_read_until_it_is_given_back(
    parts: Parts,
) -> None:
    reader = object()
    assert not parts.lent.take(reader)
    parts.lend()
    assert parts.lent.take(reader)
    assert parts.lent.is_for(reader)
    assert not parts.lent.take(object())
    parts.theirs.send(b"abc")
    await asyncio.sleep(0.01)
    assert not parts.read_by_loop
    parts.lent.give_back(object())  # of somebody else
    assert parts.read_by_thread() == b"abc"
    parts.theirs.send(b"de")
    parts.lent.give_back(reader)
    assert not parts.lent.is_for(reader)
    await asyncio.sleep(0.01)
    assert parts.read_by_loop == b"de"


async def test_a_loop_that_woke_before_it_was_taken_leaves_it(parts: Parts) -> None:
    reader = object()
    parts.lend()
    parts.theirs.send(b"abc")
    asyncio.get_running_loop().call_soon(parts.lent.take, reader)
    parts.lent._on_readable()
    assert parts.read_by_loop == b"abc"
    await asyncio.sleep(0)
    parts.theirs.send(b"de")
    parts.lent._switch(select.EPOLLIN)  # as if it had been on until now
    await asyncio.sleep(0.01)
    assert parts.read_by_loop == b"abc"
    parts.lent.give_back(reader)
    await asyncio.sleep(0.01)
    assert parts.read_by_loop == b"abcde"


async def test_a_reader_that_was_interrupted_gives_nothing_back(parts: Parts) -> None:
    reader = object()
    parts.lend()
    assert parts.lent.take(reader)
    parts.lent.is_reading = True
    parts.theirs.send(b"abc")
    parts.lent.give_back(reader)
    assert not parts.lent.take(object())
    await asyncio.sleep(0.01)
    assert not parts.read_by_loop


async def test_three_other_reads_end_it_unless_a_thread_has_read(parts: Parts) -> None:
    parts.lend()
    for _ in range(10):
        parts.lent.came_else()
        parts.lent.came_else()
        parts.lent.served()
    assert parts.lent.is_lent
    for _ in range(3):
        parts.lent.came_else()
    assert not parts.lent.is_lent
    assert parts.transport.reads


async def test_it_takes_ever_more_messages_alone_where_threads_read_little(parts: Parts) -> None:
    for count in (8, 16, 32, 64, 128, 256, 512, 1024, 1024):
        parts.lend(count)
        parts.lent.end()
    parts.lend(1024)
    for _ in range(16):
        parts.lent.served()
    parts.lent.end()
    parts.lend(8)


async def test_nothing_is_touched_once_it_is_closed_and_no_descriptor_stays(parts: Parts) -> None:
    descriptors, reader = descriptors_count(), object()
    parts.lend()
    assert parts.lent.take(reader)
    parts.lent.close()
    parts.lent.close()
    parts.direct.close()
    parts.lent.give_back(reader)
    assert not parts.lent.take(reader)
    assert not parts.lent.is_for(reader)
    parts.lent.end()
    assert not parts.transport.reads
    assert descriptors_count() == descriptors - 1  # that of the direct socket, too


async def test_a_transport_that_closes_is_not_asked_to_read(parts: Parts) -> None:
    parts.lend()
    parts.transport.closes = True
    parts.lent.end()
    for _ in range(100):
        parts.lent.came_alone()
    assert not parts.lent.is_lent


async def test_without_a_descriptor_for_it_the_transport_goes_on(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError(24, "too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(select, "epoll", refuse)
        for _ in range(20):
            parts.lent.came_alone()
    assert not parts.lent.is_lent
    assert parts.transport.reads


async def test_without_room_in_it_the_transport_goes_on(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def register(self, *_: int) -> None:
            raise OSError(28, "no space left on device")

    monkeypatch.setattr(select, "epoll", Full)
    for _ in range(20):
        parts.lent.came_alone()
    assert not parts.lent.is_lent
    assert parts.transport.reads


async def test_it_is_not_closed_within_what_a_thread_does(parts: Parts) -> None:
    parts.lend()
    with ThreadPoolExecutor(1) as loop:
        with parts.lent._lock:  # as in `give_back`
            closed = loop.submit(parts.lent.close)
            await asyncio.sleep(0.02)
            assert not closed.done()
        closed.result(30)


async def test_a_forked_child_forgets_it(parts: Parts) -> None:
    parts.lend()
    parts.lent.forget()
    assert not parts.lent.is_lent
    assert not parts.lent.take(object())
    assert not parts.transport.reads  # the parent's
