"""Listeners: order, concurrency, errors, pausing, closing; in virtual time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pulsar_py.client.consuming.message_listener import Listener, ListenerRunner
from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.common.errors import AlreadyClosedError
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.testing.clock import run_virtual


class Source:
    """A consumer that has some messages, then none until it is closed."""

    def __init__(self, messages: list[Message]) -> None:
        self.queue: asyncio.Queue[Message | None] = asyncio.Queue()
        self.refused: list[bytes] = []
        for message in messages:
            self.queue.put_nowait(message)

    async def receive_for_listener(self) -> Message:
        message = await self.queue.get()
        if message is None:
            raise AlreadyClosedError("closed")
        return message

    def negative_acknowledge(self, message: Message) -> None:
        self.refused.append(message.data())


def message(data: bytes, key: str = "") -> Message:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=0)
    if key:
        metadata.partition_key = key
    return Message.of(data, metadata=metadata)


def runner(
    source: Source,
    listener: Listener,
    *,
    concurrency: int = 1,
    consumer_type: ConsumerType = ConsumerType.KeyShared,
) -> ListenerRunner:
    made = ListenerRunner(
        source, listener, name="test", consumer_type=consumer_type, concurrency=concurrency
    )
    made.start()
    return made


def test_plain_functions_are_called_in_order_with_the_consumer() -> None:
    async def work() -> list[bytes]:
        source = Source([message(b"%d" % number) for number in range(100)])
        seen: list[bytes] = []

        def listener(consumer: object, each: Message) -> None:
            assert consumer is source
            seen.append(each.data())

        running = runner(source, listener)
        await asyncio.sleep(1)
        await running.close()
        return seen

    assert run_virtual(work()) == [b"%d" % number for number in range(100)]


def test_coroutine_functions_run_one_after_the_other_by_default() -> None:
    async def work() -> int:
        most = running_count = 0

        async def listener(_: object, __: Message) -> None:
            nonlocal most, running_count
            running_count += 1
            most = max(most, running_count)
            await asyncio.sleep(1)
            running_count -= 1

        running = runner(Source([message(b"") for _ in range(5)]), listener)
        await asyncio.sleep(10)
        await running.close()
        return most

    assert run_virtual(work()) == 1


def test_with_concurrency_keys_run_beside_each_other_and_each_in_order() -> None:
    async def work() -> tuple[float, list[bytes]]:
        loop = asyncio.get_running_loop()
        begun_at, done = loop.time(), list[bytes]()
        all_done = asyncio.Event()

        async def listener(_: object, each: Message) -> None:
            await asyncio.sleep(3 if each.data() == b"a0" else 1)
            done.append(each.data())
            if len(done) == 6:
                all_done.set()

        names = ["a0", "b0", "a1", "b1", "a2", "b2"]
        source = Source([message(name.encode(), name[0]) for name in names])
        running = runner(source, listener, concurrency=4)
        await all_done.wait()
        took = loop.time() - begun_at
        await running.close()
        return took, done

    took, done = run_virtual(work())
    assert took == 5
    assert [each for each in done if each[:1] == b"a"] == [b"a0", b"a1", b"a2"]
    assert [each for each in done if each[:1] == b"b"] == [b"b0", b"b1", b"b2"]


def test_what_a_listener_raises_costs_its_message_only(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> tuple[list[bytes], list[bytes]]:
        source = Source([message(b"good"), message(b"bad"), message(b"better")])
        seen: list[bytes] = []

        def listener(_: object, each: Message) -> None:
            if each.data() == b"bad":
                raise ValueError("bad message")
            seen.append(each.data())

        running = runner(source, listener)
        await asyncio.sleep(1)
        await running.close()
        return seen, source.refused

    with caplog.at_level(logging.ERROR):
        assert run_virtual(work()) == ([b"good", b"better"], [b"bad"])
    assert "message listener failed" in caplog.text


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_paused_listener_is_not_called(concurrency: int) -> None:
    async def work() -> None:
        source, seen = Source([]), list[bytes]()
        running = runner(source, lambda _, each: seen.append(each.data()), concurrency=concurrency)
        await asyncio.sleep(1)
        running.pause()
        source.queue.put_nowait(message(b"late"))
        await asyncio.sleep(1)
        assert seen == []
        running.resume()
        await asyncio.sleep(1)
        assert seen == [b"late"]
        await running.close()

    run_virtual(work())


@pytest.mark.parametrize("concurrency", [1, 3])
def test_closing_cancels_what_runs(concurrency: int) -> None:
    async def work() -> bool:
        was_cancelled = False

        async def listener(_: object, __: Message) -> None:
            nonlocal was_cancelled
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                was_cancelled = True
                raise

        running = runner(Source([message(b"")]), listener, concurrency=concurrency)
        await asyncio.sleep(1)
        async with asyncio.timeout(1):
            await running.close()
        return was_cancelled

    assert run_virtual(work())


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_listener_may_close_its_own_runner(concurrency: int) -> None:
    async def work() -> int:
        source = Source([message(b"1"), message(b"2")])
        calls_count = 0

        async def listener(_: object, __: Message) -> None:
            nonlocal calls_count
            calls_count += 1
            source.queue = asyncio.Queue()
            source.queue.put_nowait(None)
            async with asyncio.timeout(1):
                await running.close()

        running = runner(
            source, listener, concurrency=concurrency, consumer_type=ConsumerType.Exclusive
        )
        await asyncio.sleep(2)
        return calls_count

    assert run_virtual(work()) == 1


def test_the_runner_ends_with_its_consumer() -> None:
    async def work() -> None:
        source = Source([])
        running = runner(source, lambda _, __: None)
        source.queue.put_nowait(None)
        await asyncio.sleep(1)
        await running.close()

    run_virtual(work())
