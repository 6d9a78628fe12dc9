"""Runs come to another thread in order, and no farther ahead than they may."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from pulsar_py.common.loops.loop_thread import LoopThread
from pulsar_py.spark.reading.entry_source import Run
from pulsar_py.spark.reading.read_ahead import ReadAhead
from tests.unit.spark.message_parts import plain


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    loop = LoopThread()
    yield loop
    loop.stop()


class Source:
    """Gives `count` runs of ten bytes, then fails or ends."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.count = count
        self.error = error
        self.given_count = 0
        self.is_open = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncIterator[Run]]:
        self.is_open = True
        try:
            yield self._runs()
        finally:
            self.is_open = False

    async def _runs(self) -> AsyncIterator[Run]:
        for index in range(self.count):
            self.given_count += 1
            yield [plain(b"%010d" % index)]
            await asyncio.sleep(0)
        if self.error is not None:
            raise self.error


def numbers(runs: ReadAhead) -> list[int]:
    return [int(message.data()) for run in runs for message in run]


@pytest.mark.parametrize("limit_bytes", [1, 25, 10_000])
def test_runs_come_in_order(loop: LoopThread, limit_bytes: int) -> None:
    source = Source(200)
    ahead = ReadAhead(loop, source.open, limit_bytes)
    assert numbers(ahead) == list(range(200))
    ahead.close()
    assert not source.is_open


def test_no_more_is_fetched_than_may_wait(loop: LoopThread) -> None:
    source = Source(200)
    ahead = ReadAhead(loop, source.open, 30)
    runs = iter(ahead)
    next(runs)
    for _ in range(50):
        loop.call(asyncio.sleep(0))
    # What was taken at once, and what waits; each a run more than the limit at most.
    assert source.given_count <= 8
    ahead.close()
    assert not source.is_open


def test_an_error_comes_behind_the_runs_before_it(loop: LoopThread) -> None:
    ahead = ReadAhead(loop, Source(3, ValueError("gone")).open)
    runs = iter(ahead)
    assert [int(next(runs)[0].data()) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="gone"):
        next(runs)
    ahead.close()


def test_a_source_that_gives_nothing_can_be_left(loop: LoopThread) -> None:
    started = threading.Event()

    @asynccontextmanager
    async def open_runs() -> AsyncIterator[AsyncIterator[Run]]:
        async def runs() -> AsyncIterator[Run]:
            started.set()
            await asyncio.Event().wait()
            yield ()

        yield runs()

    ahead = ReadAhead(loop, open_runs)
    assert started.wait(10)
    ahead.close()
