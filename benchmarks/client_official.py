"""One load with the official package, in a process of its own: `client_official.py JOB`.

Sends are asynchronous with a callback each (plain rows: without), from one thread, as fast as the
full queue lets them;
receiving is `receive` and `acknowledge` in one thread: what its documentation shows.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pulsar

from benchmarks.client_loads import (
    BATCHING,
    RECEIVER_QUEUE_SIZE,
    UNBATCHED,
    WARM_UP_MESSAGES,
    Job,
    Run,
    Stopwatch,
    body,
    stamp_of,
    stamped,
)


def connect(job: Job) -> pulsar.Client:
    """A client that only logs errors."""
    return pulsar.Client(job.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def produce(job: Job, options: Mapping[str, Any]) -> Run:
    """Send for some seconds, count what is confirmed."""
    client = connect(job)
    producer = client.create_producer(job.topic, **options)
    data = body()
    confirmed = 0

    def on_sent(result: pulsar.Result, _: pulsar.MessageId) -> None:
        nonlocal confirmed
        if result == pulsar.Result.Ok:
            confirmed += 1

    for _ in range(WARM_UP_MESSAGES):
        producer.send_async(data, on_sent)
    producer.flush()
    confirmed = 0
    watch = Stopwatch()
    while watch.elapsed() < job.seconds:
        for _ in range(500):
            producer.send_async(data, on_sent)
    producer.flush()
    run = watch.run(confirmed)
    client.close()
    return run


def produce_batched(job: Job) -> Run:
    """Batches of 1,000."""
    return produce(job, BATCHING)


def produce_unbatched(job: Job) -> Run:
    """One message an entry."""
    return produce(job, UNBATCHED)


def produce_plain(job: Job, options: Mapping[str, Any]) -> Run:
    """Send for some seconds without callbacks; a flush at the end raises what failed."""
    client = connect(job)
    producer = client.create_producer(job.topic, **options)
    data = body()
    for _ in range(WARM_UP_MESSAGES):
        producer.send_async(data, None)
    producer.flush()
    sent = 0
    watch = Stopwatch()
    while watch.elapsed() < job.seconds:
        for _ in range(500):
            producer.send_async(data, None)
        sent += 500
    producer.flush()
    run = watch.run(sent)
    client.close()
    return run


def plain_batched(job: Job) -> Run:
    """Batches of 1,000, no callbacks."""
    return produce_plain(job, BATCHING)


def plain_unbatched(job: Job) -> Run:
    """One message an entry, no callbacks."""
    return produce_plain(job, UNBATCHED)


def fill(job: Job) -> Run:
    """Not measured: put the backlog there that is consumed later."""
    client = connect(job)
    producer = client.create_producer(job.topic, **BATCHING)
    data = body()
    watch = Stopwatch()
    for _ in range(job.messages):
        producer.send_async(data, lambda *_: None)
    producer.flush()
    run = watch.run(job.messages)
    client.close()
    return run


def consume(job: Job) -> Run:
    """Receive and acknowledge each message of the backlog."""
    client = connect(job)
    consumer = client.subscribe(
        job.topic,
        job.subscription,
        initial_position=pulsar.InitialPosition.Earliest,
        receiver_queue_size=RECEIVER_QUEUE_SIZE,
    )
    consumer.acknowledge(consumer.receive())
    watch = Stopwatch()
    for _ in range(job.messages - 1):
        message = consumer.receive()
        assert len(message.data()) == 1024
        consumer.acknowledge(message)
    run = watch.run(job.messages - 1)
    client.close()
    return run


def latency(job: Job) -> Run:
    """Send at a rate; measure when each is confirmed, and when received."""
    client = connect(job)
    received: list[float] = []
    consumer = client.subscribe(job.topic, "latency", receiver_queue_size=RECEIVER_QUEUE_SIZE)
    producer = client.create_producer(job.topic, **UNBATCHED)
    published: list[float] = []
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

        def on_sent(_: pulsar.Result, __: pulsar.MessageId, sent: float = now) -> None:
            published.append((time.perf_counter() - sent) * 1e3)

        producer.send_async(stamped(now, rest), on_sent)
    producer.flush()
    receiver.join()
    run = watch.run(total)
    run.publish_millis, run.end_to_end_millis = sorted(published), sorted(received)
    client.close()
    return run


def one_by_one(job: Job) -> Run:
    """Send, receive and acknowledge a message, then the next one."""
    client = connect(job)
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
    client.close()
    return run


LOADS: dict[str, Callable[[Job], Run]] = {
    "fill": fill,
    "produce-batched": produce_batched,
    "produce-unbatched": produce_unbatched,
    "plain-batched": plain_batched,
    "plain-unbatched": plain_unbatched,
    "consume": consume,
    "latency": latency,
    "one-by-one": one_by_one,
}

if __name__ == "__main__":
    the_job = Job(**json.loads(sys.argv[1]))
    LOADS[the_job.load](the_job).print()
