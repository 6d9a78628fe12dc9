"""Listeners in threads: they may block, run at once where asked to, and their errors cost nothing."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from pulsar_py import blocking
from pulsar_py.blocking.listener_pool import ListenerPool, check_listener, in_listener
from tests.unit.blocking.test_prefetch import fill


def test_a_listener_may_block_and_acknowledges(client: blocking.Client, topic: str) -> None:
    got, done = [], threading.Event()
    producer = client.create_producer(f"{topic}-answers")

    def listen(consumer: blocking.Consumer, message: blocking.Message) -> None:
        producer.send(message.data())  # waits for the receipt
        consumer.acknowledge(message)
        got.append(int(message.data()))
        if len(got) == 20:
            done.set()

    consumer = client.subscribe(topic, "s", message_listener=listen)
    fill(client, topic, 20)
    assert done.wait(30)
    assert got == list(range(20))
    with pytest.raises(blocking.OperationNotSupportedError, match="message_listener"):
        consumer.receive(10)
    consumer.pause_message_listener()
    consumer.resume_message_listener()
    consumer.close()


def test_several_calls_at_once(client: blocking.Client, topic: str) -> None:
    together = threading.Barrier(3)

    def listen(consumer: blocking.Consumer, message: blocking.Message) -> None:
        together.wait(30)
        consumer.acknowledge(message)
        done.release()

    done = threading.Semaphore(0)
    shared = blocking.ConsumerType.Shared
    client.subscribe(
        topic, "s", consumer_type=shared, message_listener=listen, listener_concurrency=3
    )
    fill(client, topic, 3)
    assert all(done.acquire(timeout=30) for _ in range(3))


def test_a_message_whose_listener_failed_comes_again(
    client: blocking.Client, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls, done = [], threading.Event()

    def listen(consumer: blocking.Consumer, message: blocking.Message) -> None:
        calls.append(message.data())
        if len(calls) == 1:
            raise KeyError("broken")
        consumer.acknowledge(message)
        done.set()

    with caplog.at_level(logging.ERROR, "pulsar_py"):
        client.subscribe(topic, "s", message_listener=listen, negative_ack_redelivery_delay_ms=10)
        fill(client, topic, 1)
        assert done.wait(30)
    assert calls == [b"0", b"0"]
    assert "message listener failed" in caplog.text


def test_coroutine_functions_are_refused(client: blocking.Client, topic: str) -> None:
    async def listen(consumer: object, message: object) -> None:
        del consumer, message

    with pytest.raises(blocking.InvalidConfigurationError, match="is a coroutine function"):
        client.subscribe(topic, "s", message_listener=listen)
    with pytest.raises(blocking.InvalidConfigurationError, match="expected a function, got int"):
        check_listener("message_listener", 3)


def test_a_pool_knows_its_threads(caplog: pytest.LogCaptureFixture) -> None:
    pool, other = ListenerPool("p", 1), ListenerPool("o", 1)
    found: list[bool] = []
    done = threading.Event()

    def call(which: str) -> None:
        found.extend((in_listener(pool), in_listener(other), in_listener(None)))
        if which == "last":
            done.set()
        raise KeyError("logged")

    post = pool.in_order(call, "the caller")
    with caplog.at_level(logging.ERROR, "pulsar_py"):
        post("first")
        post("last")
        assert done.wait(30)
        pool.close()
        pool._executor.shutdown()
    assert found == [True, False, False] * 2
    assert "the caller failed" in caplog.text
    assert not in_listener(pool)
    other.close()


async def test_no_call_begins_once_the_threads_are_gone() -> None:
    pool = ListenerPool("l", 1)
    pool.close()
    called: list[object] = []
    waiting = asyncio.ensure_future(pool.calling(called.append)("message"))
    pool.in_order(called.append, "l")("message")
    await asyncio.sleep(0.01)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert called == []
