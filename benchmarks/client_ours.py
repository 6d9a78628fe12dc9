"""One load with our client, in a process of its own: `client_ours.py JOB`.

Sends are `send_nowait`, and each awaitable is awaited, two blocks of sends later; where the latency
of each is measured they have a callback, as the official package's `send_async` has, and a thread
says when the next is due, as there: a loop's own timers are as coarse as a millisecond, so that
messages would go out in pairs. The time begins in the loop, where a program on asyncio sends: the
way from that thread to the loop is not part of it. Receiving is `receive` and `acknowledge` in one
task.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from benchmarks.client_loads import (
    BATCHING,
    RECEIVER_QUEUE_SIZE,
    UNBATCHED,
    WARM_UP_MESSAGES,
    Job,
    Run,
    Stopwatch,
    body,
    run_main,
    stamp_of,
    stamped,
)
from pulsar_py.client import Client, InitialPosition, Producer, SendResult

BLOCKS_UNDER_WAY = 8
"""Together they fill the producer's queue, so that neither side waits for the other."""


async def produce(job: Job, options: Mapping[str, Any]) -> Run:
    """Send for some seconds, look at each outcome."""
    async with Client(job.url) as client:
        producer = await client.create_producer(job.topic, **options)
        data = body()
        block = int(options["max_pending_messages"]) // BLOCKS_UNDER_WAY
        await _send_blocks(producer, data, block, lambda sent: sent < WARM_UP_MESSAGES)
        watch = Stopwatch()
        sent = await _send_blocks(producer, data, block, lambda _: watch.elapsed() < job.seconds)
        return watch.run(sent)


async def _send_blocks(
    producer: Producer, data: bytes, block: int, goes_on: Callable[[int], bool]
) -> int:
    """Send blocks while `goes_on(sent)`; returns how many messages were confirmed."""
    under_way: deque[list[Awaitable[object]]] = deque()
    send = producer.send_nowait
    sent = 0
    while goes_on(sent):
        under_way.append([send(data) for _ in range(block)])
        sent += block
        if len(under_way) >= BLOCKS_UNDER_WAY:
            for outcome in under_way.popleft():
                await outcome
    for outcomes in under_way:
        for outcome in outcomes:
            await outcome
    return sent


async def produce_batched(job: Job) -> Run:
    """Batches of 1,000."""
    return await produce(job, BATCHING)


async def produce_unbatched(job: Job) -> Run:
    """One message an entry."""
    return await produce(job, UNBATCHED)


async def produce_plain(job: Job, options: Mapping[str, Any]) -> Run:
    """Send for some seconds, look at one result a block, so as not to get too far ahead."""
    async with Client(job.url) as client:
        producer = await client.create_producer(job.topic, **options)
        data = body()
        block = int(options["max_pending_messages"]) // BLOCKS_UNDER_WAY
        await _send_plain_blocks(producer, data, block, lambda sent: sent < WARM_UP_MESSAGES)
        watch = Stopwatch()
        sent = await _send_plain_blocks(
            producer, data, block, lambda _: watch.elapsed() < job.seconds
        )
        return watch.run(sent)


async def _send_plain_blocks(
    producer: Producer, data: bytes, block: int, goes_on: Callable[[int], bool]
) -> int:
    """Send blocks while `goes_on(sent)`; returns how many messages were sent, all are confirmed."""
    last_of_blocks: deque[SendResult] = deque()
    send = producer.send_nowait
    sent = 0
    while goes_on(sent):
        for _ in range(block - 1):
            send(data)
        last_of_blocks.append(send(data))
        sent += block
        if len(last_of_blocks) >= BLOCKS_UNDER_WAY:
            await last_of_blocks.popleft()
    await producer.flush()
    return sent


async def plain_batched(job: Job) -> Run:
    """Batches of 1,000, results as `flush` raises them."""
    return await produce_plain(job, BATCHING)


async def plain_unbatched(job: Job) -> Run:
    """One message an entry, results as `flush` raises them."""
    return await produce_plain(job, UNBATCHED)


async def consume(job: Job) -> Run:
    """Receive and acknowledge each message of the backlog."""
    async with Client(job.url) as client:
        consumer = await client.subscribe(
            job.topic,
            job.subscription,
            initial_position=InitialPosition.Earliest,
            receiver_queue_size=RECEIVER_QUEUE_SIZE,
        )
        await consumer.acknowledge(await consumer.receive())
        watch = Stopwatch()
        for _ in range(job.messages - 1):
            message = await consumer.receive()
            assert len(message.data()) == 1024
            await consumer.acknowledge(message)
        return watch.run(job.messages - 1)


async def latency(job: Job) -> Run:
    """Send at a rate; measure when each is confirmed, and when received."""
    async with Client(job.url) as client:
        consumer = await client.subscribe(
            job.topic, "latency", receiver_queue_size=RECEIVER_QUEUE_SIZE
        )
        producer = await client.create_producer(job.topic, **UNBATCHED)
        received: list[float] = []
        published: list[float] = []
        total = int(job.rate * job.seconds)

        async def receive() -> None:
            for _ in range(total):
                message = await consumer.receive(20_000)
                received.append((time.perf_counter() - stamp_of(message.data())) * 1e3)
                await consumer.acknowledge(message)

        def send() -> None:
            now = time.perf_counter()

            def on_sent(_: SendResult) -> None:
                published.append((time.perf_counter() - now) * 1e3)

            producer.send_nowait(stamped(now, rest)).add_done_callback(on_sent)

        rest = body()
        loop = asyncio.get_running_loop()

        def pace() -> None:
            begun = time.perf_counter()
            for number in range(total):
                due = begun + number / job.rate
                while (now := time.perf_counter()) < due:
                    time.sleep(due - now)
                loop.call_soon_threadsafe(send)

        watch = Stopwatch()
        async with asyncio.TaskGroup() as group:
            group.create_task(receive())
            group.create_task(asyncio.to_thread(pace))
        run = watch.run(total)
        run.publish_millis, run.end_to_end_millis = sorted(published), sorted(received)
        return run


async def one_by_one(job: Job) -> Run:
    """Send, receive and acknowledge a message, then the next one."""
    async with Client(job.url) as client:
        consumer = await client.subscribe(job.topic, "one by one")
        producer = await client.create_producer(job.topic, **UNBATCHED)
        published: list[float] = []
        received: list[float] = []
        data = body()
        watch = Stopwatch()
        while watch.elapsed() < job.seconds:
            begun = time.perf_counter()
            await producer.send(data)
            published.append((time.perf_counter() - begun) * 1e3)
            message = await consumer.receive()
            received.append((time.perf_counter() - begun) * 1e3)
            await consumer.acknowledge(message)
        run = watch.run(len(received))
        run.publish_millis, run.end_to_end_millis = sorted(published), sorted(received)
        return run


LOADS: dict[str, Callable[[Job], Awaitable[Run]]] = {
    "produce-batched": produce_batched,
    "produce-unbatched": produce_unbatched,
    "plain-batched": plain_batched,
    "plain-unbatched": plain_unbatched,
    "consume": consume,
    "latency": latency,
    "one-by-one": one_by_one,
}


def run_job(job: Job) -> Run:
    """On the loop that the job names."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    if job.loop == "uvloop":
        import uvloop  # noqa: PLC0415 - only where it is asked for

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(LOADS[job.load](job))  # type: ignore[arg-type]  # a coroutine


if __name__ == "__main__":
    run_main(run_job)
