"""Publish batches with the official client for some seconds; prints messages and seconds.

Usage: official_publisher.py SERVICE_URL TOPIC SECONDS
"""

from __future__ import annotations

import os
import sys
import threading
import time

import pulsar


def main(url: str, topic: str, seconds: float) -> None:
    """Publish, then print how many messages were confirmed in how many seconds."""
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer(
        topic,
        batching_enabled=True,
        batching_max_messages=1000,
        batching_max_allowed_size_in_bytes=4 << 20,
        batching_max_publish_delay_ms=10,
        max_pending_messages=20_000,
        block_if_queue_full=True,
    )
    body = os.urandom(1024)
    confirmed = 0
    lock = threading.Lock()

    def on_sent(result: pulsar.Result, _: pulsar.MessageId) -> None:
        nonlocal confirmed
        if result == pulsar.Result.Ok:
            with lock:
                confirmed += 1

    for _ in range(20_000):
        producer.send_async(body, on_sent)
    producer.flush()
    confirmed = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(500):
            producer.send_async(body, on_sent)
    producer.flush()
    elapsed = time.perf_counter() - start
    print(confirmed, elapsed)
    client.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
