"""One load with our blocking client, in a process of its own: `client_blocking.py JOB`.

The same programs as the official package's: sends from one thread, as fast as the full queue lets
them, whose results are looked at a block later (the official package calls back with each);
receiving is `receive` and `acknowledge` in one thread. For latency each send has a callback, as
there.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
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
from pulsar_py.blocking import Client, InitialPosition, Producer, SendResult

BLOCK = 500


def produce(job: Job, options: Mapping[str, Any]) -> Run:
    """Send for some seconds, look at each outcome."""
    with Client(job.url) as client:
        producer = client.create_producer(job.topic, **options)
        data = body()
        _send_blocks(producer, data, lambda sent: sent < WARM_UP_MESSAGES)
        watch = Stopwatch()
        sent = _send_blocks(producer, data, lambda _: watch.elapsed() < job.seconds)
        return watch.run(sent)


def _send_blocks(producer: Producer, data: bytes, goes_on: Callable[[int], bool]) -> int:
    """Send blocks while `goes_on(sent)`; returns how many messages were confirmed."""
    under_way: deque[list[SendResult]] = deque()
    send = producer.send_nowait
    sent = 0
    while goes_on(sent):
        under_way.append([send(data) for _ in range(BLOCK)])
        sent += BLOCK
        while under_way and under_way[0][-1].done():
            for outcome in under_way.popleft():
                outcome.result()
    producer.flush()
    for outcomes in under_way:
        for outcome in outcomes:
            outcome.result()
    return sent


def produce_batched(job: Job) -> Run:
    """Batches of 1,000."""
    return produce(job, BATCHING)


def produce_unbatched(job: Job) -> Run:
    """One message an entry."""
    return produce(job, UNBATCHED)


def produce_plain(job: Job, options: Mapping[str, Any]) -> Run:
    """Send for some seconds, look at no result; a flush at the end raises what failed."""
    with Client(job.url) as client:
        producer = client.create_producer(job.topic, **options)
        data = body()
        send = producer.send_nowait
        for _ in range(WARM_UP_MESSAGES):
            send(data)
        producer.flush()
        sent = 0
        watch = Stopwatch()
        while watch.elapsed() < job.seconds:
            for _ in range(BLOCK):
                send(data)
            sent += BLOCK
        producer.flush()
        return watch.run(sent)


def plain_batched(job: Job) -> Run:
    """Batches of 1,000, no results."""
    return produce_plain(job, BATCHING)


def plain_unbatched(job: Job) -> Run:
    """One message an entry, no results."""
    return produce_plain(job, UNBATCHED)


def consume(job: Job) -> Run:
    """Receive and acknowledge each message of the backlog."""
    with Client(job.url) as client:
        consumer = client.subscribe(
            job.topic,
            job.subscription,
            initial_position=InitialPosition.Earliest,
            receiver_queue_size=RECEIVER_QUEUE_SIZE,
        )
        consumer.acknowledge(consumer.receive())
        watch = Stopwatch()
        for _ in range(job.messages - 1):
            message = consumer.receive()
            assert len(message.data()) == 1024
            consumer.acknowledge(message)
        return watch.run(job.messages - 1)


def latency(job: Job) -> Run:
    """Send at a rate; measure when each is confirmed, and when received."""
    with Client(job.url) as client:
        received: list[float] = []
        published: list[float] = []
        consumer = client.subscribe(job.topic, "latency", receiver_queue_size=RECEIVER_QUEUE_SIZE)
        producer = client.create_producer(job.topic, **UNBATCHED)
        total = int(job.rate * job.seconds)

        def receive() -> None:
            for _ in range(total):
                message = consumer.receive()
                received.append((time.perf_counter() - stamp_of(message.data())) * 1e3)
                consumer.acknowledge(message)

        receiver = threading.Thread(target=receive)
        receiver.start()
        rest = body()
        watch = Stopwatch()
        begun = time.perf_counter()
        for number in range(total):
            due = begun + number / job.rate
            while (now := time.perf_counter()) < due:
                time.sleep(due - now)

            def on_sent(_: SendResult, sent: float = now) -> None:
                published.append((time.perf_counter() - sent) * 1e3)

            producer.send_nowait(stamped(now, rest)).add_done_callback(on_sent)
        producer.flush()
        receiver.join()
        run = watch.run(total)
        run.publish_millis, run.end_to_end_millis = sorted(published), sorted(received)
        return run


def one_by_one(job: Job) -> Run:
    """Send, receive and acknowledge a message, then the next one."""
    with Client(job.url) as client:
        consumer = client.subscribe(job.topic, "one by one")
        producer = client.create_producer(job.topic, **UNBATCHED)
        published: list[float] = []
        received: list[float] = []
        data = body()
        watch = Stopwatch()
        while watch.elapsed() < job.seconds:
            begun = time.perf_counter()
            producer.send(data)
            published.append((time.perf_counter() - begun) * 1e3)
            message = consumer.receive()
            received.append((time.perf_counter() - begun) * 1e3)
            consumer.acknowledge(message)
        run = watch.run(len(received))
        run.publish_millis, run.end_to_end_millis = sorted(published), sorted(received)
        return run


LOADS: dict[str, Callable[[Job], Run]] = {
    "produce-batched": produce_batched,
    "produce-unbatched": produce_unbatched,
    "plain-batched": plain_batched,
    "plain-unbatched": plain_unbatched,
    "consume": consume,
    "latency": latency,
    "one-by-one": one_by_one,
}

if __name__ == "__main__":
    run_main(lambda job: LOADS[job.load](job))
