from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pulsar_py.common.errors import (
    MetadataError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.testing.network import run_simulated
from pulsar_py.zookeeper import jute, messages
from pulsar_py.zookeeper.batching import ChangeBatches
from pulsar_py.zookeeper.connection import Answer
from pulsar_py.zookeeper.messages import ErrorCode, Operation
from tests.unit.zookeeper.scripted_server import stat

TIMEOUT_SECONDS = 10.0
MULTI_END = jute.int32(-1) + b"\1" + jute.int32(-1)
MULTI_REFUSED = jute.int32(-1) + b"\0" + jute.int32(-101) + jute.int32(-101) + MULTI_END


def done(count: int) -> bytes:
    """The answer to so many changes of values, the nth of which has the version n."""
    head = jute.int32(Operation.SET_DATA) + b"\0" + jute.int32(0)
    return b"".join(head + stat(version=number) for number in range(count)) + MULTI_END


class Servers:
    """Takes a second for each request, and answers as `says` does."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []  # paths of each request
        self.deadlines: list[float] = []
        self.alone: dict[str, int] = {}  # errors of changes that come by themselves
        self.multi_error = 0
        self.multi_record: Callable[[int], bytes] = done
        self.failure: MetadataError | None = None

    async def exchange(self, operation: Operation, record: bytes, deadline: float) -> Answer:
        paths = [jute.RecordReader(record).text()] if operation is not Operation.MULTI else []
        reader = jute.RecordReader(record)
        while operation is Operation.MULTI and reader.int32() == Operation.SET_DATA:
            reader.boolean(), reader.int32()
            paths.append(reader.text())
            reader.buffer(), reader.int32()
        self.asked.append(paths)
        self.deadlines.append(deadline)
        await asyncio.sleep(1)
        if self.failure is not None:
            raise self.failure
        if operation is Operation.MULTI:
            return Answer(self.multi_error, jute.RecordReader(self.multi_record(len(paths))))
        return Answer(self.alone.get(paths[0], 0), jute.RecordReader(stat(version=99)))


def with_batches(
    test: Callable[[Servers, ChangeBatches], Awaitable[None]],
    *,
    max_count: int = 1000,
    max_bytes: int = 128 * 1024,
) -> None:
    async def work() -> None:
        servers, tasks = Servers(), TaskOwner("test")
        batches = ChangeBatches(
            servers.exchange,
            tasks,
            max_count=max_count,
            max_bytes=max_bytes,
            timeout_seconds=TIMEOUT_SECONDS,
        )
        await test(servers, batches)
        batches.close()
        await tasks.close()

    run_simulated(work())


CALLERS = TaskOwner("callers")


def change(batches: ChangeBatches, path: str, value: bytes = b"") -> asyncio.Task[Answer]:
    record = messages.set_data(path, value, -1)
    return CALLERS.spawn(batches.ask(Operation.SET_DATA, record), path)


async def version(task: asyncio.Task[Answer]) -> int:
    answer = await task
    assert answer.error == 0
    return messages.decode_stat(answer.record).version


def test_changes_of_one_turn_and_those_that_wait_go_together() -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        first = [change(batches, path) for path in ("/a", "/b")]
        await asyncio.sleep(0.5)
        then = [change(batches, path) for path in ("/c", "/d", "/e")]
        assert [await version(each) for each in first + then] == [0, 1, 0, 1, 2]
        assert servers.asked == [["/a", "/b"], ["/c", "/d", "/e"]]
        assert batches.requests_count == 2

    with_batches(test)


def test_one_change_is_a_request_of_its_own() -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        assert await version(change(batches, "/a")) == 99
        assert servers.asked == [["/a"]]

    with_batches(test)


def test_a_request_has_no_more_changes_and_bytes_than_are_allowed() -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        tasks = [change(batches, path) for path in ("/a", "/b", "/c", "/d")]
        tasks += [change(batches, "/large", bytes(100)), change(batches, "/e")]
        await asyncio.gather(*tasks)
        assert servers.asked == [["/a", "/b", "/c"], ["/d"], ["/large"], ["/e"]]

    with_batches(test, max_count=3, max_bytes=60)


def test_without_gathering_changes_are_under_way_side_by_side() -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        async with asyncio.timeout(1.5):
            await asyncio.gather(change(batches, "/a"), change(batches, "/b"))
        assert servers.asked == [["/a"], ["/b"]]

    with_batches(test, max_count=1)


def test_each_gets_its_own_answer_where_one_of_them_is_refused() -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        servers.multi_record = lambda _count: MULTI_REFUSED
        servers.alone = {"/b": ErrorCode.NO_NODE}
        tasks = [change(batches, path) for path in ("/a", "/b", "/c")]
        assert [(await each).error for each in tasks] == [0, ErrorCode.NO_NODE, 0]
        assert servers.asked == [["/a", "/b", "/c"], ["/a"], ["/b"], ["/c"]]
        assert batches.requests_count == 4

    with_batches(test)


def test_an_error_of_the_whole_request_is_everybodys_and_nothing_is_sent_again() -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        servers.multi_error = ErrorCode.SESSION_EXPIRED
        tasks = [change(batches, path) for path in ("/a", "/b")]
        assert [(await each).error for each in tasks] == [ErrorCode.SESSION_EXPIRED] * 2
        assert servers.asked == [["/a", "/b"]]

    with_batches(test)


@pytest.mark.parametrize("error", [MetadataOutcomeUnknownError, MetadataUnavailableError])
def test_what_becomes_of_a_request_becomes_of_each_change(error: type[MetadataError]) -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        servers.failure = error("gone")
        for each in [change(batches, path) for path in ("/a", "/b")]:
            with pytest.raises(error, match="gone"):
                await each
        servers.failure = None
        assert await version(change(batches, "/c")) == 99

    with_batches(test)


@pytest.mark.parametrize("record", [b"", done(1)], ids=["nothing", "one of two"])
def test_after_an_answer_that_cannot_be_read_nothing_is_known(record: bytes) -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        servers.multi_record = lambda _count: record
        for each in [change(batches, path) for path in ("/a", "/b")]:
            with pytest.raises(MetadataOutcomeUnknownError, match="can't be read"):
                await each

    with_batches(test)


def test_a_change_that_is_given_up_while_it_waits_is_never_sent() -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        first = change(batches, "/a")
        await asyncio.sleep(0.5)
        given_up, kept = change(batches, "/b"), change(batches, "/c")
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(first, kept)
        assert servers.asked == [["/a"], ["/c"]]

    with_batches(test)


def test_a_request_ends_with_the_time_of_its_oldest_change() -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        first = change(batches, "/a")
        await asyncio.sleep(0.25)
        second = change(batches, "/b")
        await asyncio.sleep(0.25)
        await asyncio.gather(first, second, change(batches, "/c"))
        assert servers.asked == [["/a"], ["/b", "/c"]]
        began, waited = servers.deadlines
        assert waited - began == pytest.approx(0.25)

    with_batches(test)


def test_the_end_fails_what_waits_and_leaves_open_what_was_sent() -> None:
    async def test(servers: Servers, batches: ChangeBatches) -> None:
        sent = change(batches, "/a")
        await asyncio.sleep(0.5)
        waiting = change(batches, "/b")
        await asyncio.sleep(0)
        batches.close()
        with pytest.raises(MetadataOutcomeUnknownError):
            await sent
        for each in (waiting, change(batches, "/c")):
            with pytest.raises(MetadataError, match="closed") as raised:
                await each
            assert raised.type is MetadataError
        await asyncio.sleep(1)
        assert servers.asked == [["/a"]]

    with_batches(test)
