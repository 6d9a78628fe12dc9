"""The loads: each drives one broker for some seconds and returns its figures.

Every load takes a `Target` and returns `Figures`. They run in a process apart from the broker's.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.raw_client import (
    RawConnection,
    StampedSends,
    batch_entry,
    chunked_block,
    entry,
    send_block,
)
from benchmarks.targets import Target
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand

_names = itertools.count()
BLOCK = 50
_PENDING_MESSAGES = 1000
"""The most messages without receipt: what the official clients have by default."""
_LARGE_WINDOW_BYTES = 16 << 20
_NANOS = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one load; None where it has no such figure."""

    entries_per_second: float | None = None
    megabytes_per_second: float | None = None
    cpu_micros_per_entry: float | None = None
    p50_millis: float | None = None
    p99_millis: float | None = None
    p999_millis: float | None = None
    seconds: float | None = None
    entry_log_megabytes_read: float | None = None
    worst_millis: float | None = None
    stores_cpu_micros_per_entry: float | None = None

    def as_dict(self) -> dict[str, float]:
        """The figures that are there."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def fresh_topic(partition_of: str = "load") -> str:
    """A topic name not used before on any broker."""
    return f"persistent://public/default/bench-{partition_of}-{os.getpid()}-{next(_names)}"


def _blocks(
    size_bytes: int, window_bytes: int, large_window_bytes: int
) -> tuple[list[bytes], int, int]:
    """Blocks of SENDs to send in turn, the entries of one, and how many may be in flight."""
    count = BLOCK
    if size_bytes <= 8192:
        window = max(count, min(_PENDING_MESSAGES, window_bytes // size_bytes) // count * count)
    else:
        if size_bytes > 16384:
            count = max(1, (1 << 20) // size_bytes)
        window = min(_PENDING_MESSAGES, large_window_bytes // size_bytes) // count * count
    stored = entry(os.urandom(size_bytes))
    return [send_block(1, index * count, count, stored) for index in range(8)], count, window


class Publisher:
    """Keeps a window of SENDs in flight on one connection."""

    def __init__(
        self,
        connection: RawConnection,
        size_bytes: int,
        window_bytes: int,
        *,
        chunks_count: int = 0,
        large_window_bytes: int = _LARGE_WINDOW_BYTES,
    ) -> None:
        """With `chunks_count` each message comes in so many chunks of the size.

        `window_bytes` is of entries of up to 8 KB, `large_window_bytes` of others.
        """
        self.connection = connection
        self.receipts_count = 0
        if chunks_count:
            blocks = [chunked_block(1, index, chunks_count, size_bytes) for index in range(4)]
            self._block, self._window = chunks_count, 2 * chunks_count
        else:
            blocks, self._block, self._window = _blocks(
                size_bytes, window_bytes, large_window_bytes
            )
        self._blocks: Iterator[bytes] = itertools.cycle(blocks)
        self._in_flight = 0
        self.is_stopped = False
        self.limit: int | None = None
        self.sent_count = 0

    def use(self, blocks: Iterable[bytes]) -> None:
        """Send these blocks of as many entries, which are made at once, in place of its own."""
        self._blocks = iter(list(blocks))

    def start(self) -> None:
        """Send the first window; receipts keep it full."""
        self.connection.start_counting()
        self.connection.on_frames = self._on_receipts
        self._fill()

    def _on_receipts(self, count: int) -> None:
        self.receipts_count += count
        self._in_flight -= count
        self._fill()

    def _fill(self) -> None:
        while (
            not self.is_stopped
            and self._in_flight + self._block <= self._window
            and (self.limit is None or self.sent_count < self.limit)
        ):
            self.connection.write(next(self._blocks))
            self._in_flight += self._block
            self.sent_count += self._block

    def resume(self, limit: int) -> None:
        """Raise the number of messages that may be sent."""
        self.limit = limit
        self._fill()

    async def drain(self) -> None:
        """Stop and wait for what is in flight.

        Raises:
            RuntimeError: Receipts are still missing after 30 s, or will never come.
        """
        self.is_stopped = True
        deadline = time.perf_counter() + 30
        while self._in_flight > 0:
            await pause(0.01, self.connection)
            if time.perf_counter() > deadline:
                raise RuntimeError(
                    f"{self._in_flight} of {self.sent_count} messages not confirmed within 30 s"
                )


async def pause(seconds: float, *connections: RawConnection) -> None:
    """Let the load go on for so long.

    Raises:
        RuntimeError: The broker has closed one of the connections, or refused a message on it.
    """
    await asyncio.wait(
        [each.failed for each in connections], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
    )
    for connection in connections:
        connection.raise_if_failed()


async def _publishers(
    target: Target, size: int, count: int, chunks_count: int = 0
) -> list[Publisher]:
    publishers = []
    for _ in range(count):
        connection = await RawConnection.connect(target.host, target.port, target.tls)
        await connection.create_producer(fresh_topic(), 1)
        publishers.append(Publisher(connection, size, 4 << 20, chunks_count=chunks_count))
    return publishers


async def durable_publish(
    target: Target,
    *,
    size_bytes: int,
    connections: int,
    seconds: float,
    warm_up: float = 1.0,
    total_bytes: int = 0,
    chunks_count: int = 0,
) -> Figures:
    """Unbatched SENDs of one size, from several connections at once, one topic each.

    With `total_bytes` it goes on until so many are confirmed, and not for `seconds`; before that
    the system writes out what earlier loads have left.
    """
    publishers = await _publishers(target, size_bytes, connections, chunks_count)
    if total_bytes:
        os.sync()
    connections_used = [publisher.connection for publisher in publishers]
    for publisher in publishers:
        publisher.start()
    await pause(warm_up, *connections_used)
    before, cpu = sum(p.receipts_count for p in publishers), target.cpu_seconds()
    stores_cpu = target.stores_cpu_seconds()
    start = time.perf_counter()
    if total_bytes:
        wanted = before + total_bytes // size_bytes
        while sum(p.receipts_count for p in publishers) < wanted:
            await pause(0.01, *connections_used)
            if time.perf_counter() - start > 120:
                raise RuntimeError(f"{target.name}: {total_bytes} bytes not confirmed in 120 s")
    else:
        await pause(seconds, *connections_used)
    elapsed = time.perf_counter() - start
    count = sum(p.receipts_count for p in publishers) - before
    used = target.cpu_seconds() - cpu
    stores_used = target.stores_cpu_seconds() - stores_cpu
    for publisher in publishers:
        await publisher.drain()
        publisher.connection.close()
    return Figures(
        entries_per_second=count / elapsed,
        megabytes_per_second=count * size_bytes / elapsed / 1e6,
        cpu_micros_per_entry=used / max(count, 1) * 1e6,
        stores_cpu_micros_per_entry=(stores_used / max(count, 1) * 1e6 if target.stores else None),
    )


class Subscriber:
    """Takes messages as fast as they come, with FLOW and cumulative acks as clients send them."""

    def __init__(self, connection: RawConnection, queue: int = 1000) -> None:
        self.connection = connection
        self.received_count = 0
        self._queue = queue
        self._not_flowed = 0
        self._not_acked = 0

    def start(self) -> None:
        """Open the tap."""
        self.connection.start_counting()
        self.connection.on_frames = self._on_messages
        self.connection.flow(1, self._queue)

    def _on_messages(self, count: int) -> None:
        self.received_count += count
        self._not_flowed += count
        self._not_acked += count
        if self._not_flowed >= self._queue // 2:
            self.connection.flow(1, self._not_flowed)
            self._not_flowed = 0
        if self._not_acked >= 1000:
            self._not_acked = 0
            data = self.connection.last_frame
            size = struct.unpack_from(">I", data, 4)[0]
            message = BaseCommand.FromString(data[8 : 8 + size]).message.message_id
            self.connection.acknowledge_cumulatively(1, message.ledgerId, message.entryId)


async def tailing_consume(
    target: Target, *, subscriptions: int, seconds: float, size_bytes: int = 1024
) -> Figures:
    """Subscriptions that keep up with a publisher; counts messages dispatched to all of them.

    The publisher runs at most 5,000 messages and 32 MB ahead of the slowest subscription.
    """
    most_ahead = min(5000, (32 << 20) // size_bytes)
    topic = fresh_topic()
    publishing = await RawConnection.connect(target.host, target.port, target.tls)
    await publishing.create_producer(topic, 1)
    subscribers = []
    for index in range(subscriptions):
        connection = await RawConnection.connect(target.host, target.port, target.tls)
        await connection.subscribe(topic, f"s{index}", 1)
        subscribers.append(Subscriber(connection))
    publisher = Publisher(publishing, size_bytes, 4 << 20)
    publisher.limit = most_ahead
    for subscriber in subscribers:
        subscriber.start()
    publisher.start()
    finished = asyncio.Event()

    async def pace() -> None:
        while not finished.is_set():
            publisher.resume(min(s.received_count for s in subscribers) + most_ahead)
            await asyncio.sleep(0.002)

    pacing = asyncio.get_running_loop().create_task(pace())
    used_connections = [publishing, *(s.connection for s in subscribers)]
    await pause(1.0, *used_connections)
    before, cpu = sum(s.received_count for s in subscribers), target.cpu_seconds()
    start = time.perf_counter()
    await pause(seconds, *used_connections)
    elapsed = time.perf_counter() - start
    count = sum(s.received_count for s in subscribers) - before
    used = target.cpu_seconds() - cpu
    finished.set()
    await pacing
    await publisher.drain()
    for connection in used_connections:
        connection.close()
    return Figures(
        entries_per_second=count / elapsed,
        megabytes_per_second=count * size_bytes / elapsed / 1e6,
        cpu_micros_per_entry=used / max(count, 1) * 1e6,
    )


async def until(
    target: Target,
    count: Callable[[], int],
    wanted: int,
    *connections: RawConnection,
    look_seconds: float = 0.005,
) -> None:
    """Wait until so many are counted, which come by these connections.

    Raises:
        RuntimeError: That took longer than 120 seconds, or the broker serves them no more.
    """
    start = time.perf_counter()
    while count() < wanted:
        await pause(look_seconds, *connections)
        if time.perf_counter() - start > 120:
            raise RuntimeError(f"{target.name}: {count()} of {wanted} in 120 s")


async def publish_ascending(
    target: Target, *, size_bytes: int, batch: int = 1, count: int
) -> Figures:
    """So many SENDs whose sequence ids ascend, as deduplication wants them, made beforehand."""
    connection = await RawConnection.connect(target.host, target.port, target.tls)
    await connection.create_producer(fresh_topic(), 1)
    stored = batch_entry([os.urandom(size_bytes)] * batch) if batch > 1 else None
    stored = stored or entry(os.urandom(size_bytes))
    publisher = Publisher(connection, min(len(stored), 8192), 4 << 20)
    publisher.use(
        send_block(1, first * batch, BLOCK, stored, batch=batch) for first in range(0, count, BLOCK)
    )
    publisher.limit = count
    cpu, start = target.cpu_seconds(), time.perf_counter()
    publisher.start()
    await until(target, lambda: publisher.receipts_count, count, connection)
    elapsed = time.perf_counter() - start
    used = target.cpu_seconds() - cpu
    connection.close()
    return Figures(
        entries_per_second=count / elapsed,
        megabytes_per_second=count * len(stored) / elapsed / 1e6,
        cpu_micros_per_entry=used / count * 1e6,
    )


async def catch_up(
    target: Target,
    *,
    backlog_bytes: int,
    size_bytes: int = 1024,
    queue: int = 1000,
    restarts: bool = False,
) -> Figures:
    """Publish a backlog larger than all caches, then read it from the start.

    With `restarts` the broker is stopped and started again in between.
    """
    topic = fresh_topic()
    consuming = await RawConnection.connect(target.host, target.port, target.tls)
    await consuming.subscribe(topic, "late", 1, from_earliest=True)
    publishing = await RawConnection.connect(target.host, target.port, target.tls)
    await publishing.create_producer(topic, 1)
    publisher = Publisher(publishing, size_bytes, 4 << 20)
    total = backlog_bytes // size_bytes // BLOCK * BLOCK
    publisher.limit = total
    publisher.start()
    await until(target, lambda: publisher.receipts_count, total, publishing, look_seconds=0.05)
    publishing.close()
    if restarts:
        consuming.close()
        target.restart()
        consuming = await RawConnection.connect(target.host, target.port, target.tls)
        await consuming.subscribe(topic, "late", 1)
    await asyncio.sleep(2.0)
    metric = "pulsar_py_storage_entry_log_read_bytes_total"
    read_before = target.metric(metric)
    cpu, start = target.cpu_seconds(), time.perf_counter()
    subscriber = Subscriber(consuming, queue)
    subscriber.start()
    await until(target, lambda: subscriber.received_count, total, consuming, look_seconds=0.01)
    elapsed = time.perf_counter() - start
    used = target.cpu_seconds() - cpu
    read_after = target.metric(metric)
    consuming.close()
    read_bytes = None
    if read_before is not None and read_after is not None:
        read_bytes = read_after - read_before
    if target.is_ours and read_bytes is None:
        raise RuntimeError(f"{target.name} does not export {metric}")
    return Figures(
        entries_per_second=total / elapsed,
        megabytes_per_second=total * size_bytes / elapsed / 1e6,
        cpu_micros_per_entry=used / total * 1e6,
        entry_log_megabytes_read=None if read_bytes is None else read_bytes / 1e6,
    )


class TimedMessages:
    """The messages of one topic that were sent, and when each of them was received."""

    def __init__(self, connection: RawConnection) -> None:
        self.times: list[tuple[int, int]] = []
        self._connection = connection
        self._not_received: deque[tuple[int, int]] = deque()
        """Of each write when it was and how many of its messages are to come; none is empty."""
        connection.start_counting()
        connection.on_frames = self._on_messages

    def sent(self, stamp: int, count: int) -> None:
        """So many messages were sent at once, each with its stamp at the end."""
        self._not_received.append((stamp, count))

    def _on_messages(self, count: int) -> None:
        now = time.perf_counter_ns()
        times, waiting, sent = self.times, self._not_received, 0
        while count:
            if not waiting:
                raise RuntimeError(f"{count} messages came that were not sent")
            sent, left = waiting.popleft()
            taken = min(left, count)
            times += [(sent, now)] * taken
            count -= taken
            if left > taken:
                waiting.appendleft((sent, left - taken))
        last = self._connection.last_frame
        stamp = _NANOS.unpack_from(last, len(last) - _NANOS.size)[0]
        if stamp != sent and last[9] == BaseCommand.MESSAGE:  # a PING may come after it
            raise RuntimeError(f"message {len(times)} was sent at {sent}, what came at {stamp}")


async def timed_messages(
    target: Target, *, rate_per_second: int, seconds: float
) -> list[tuple[int, int]]:
    """When each message of 1 KB was sent and received at a fixed rate, in nanoseconds.

    Up to 2,000 a second each message goes at its own time, beyond that those of a millisecond go
    in one write, as they do where the maximal rate is measured: a write for each would take half a
    processor from the broker. A message counts as sent before that write, and as received when all
    that has come with it has been counted; the last one of these shows by its stamp that it is
    the one. The messages of the first second are left out.

    Raises:
        RuntimeError: Most did not arrive, or what arrived is not what was sent, in its order.
    """
    topic = fresh_topic()
    consuming = await RawConnection.connect(target.host, target.port, target.tls)
    await consuming.subscribe(topic, "s", 1)
    publishing = await RawConnection.connect(target.host, target.port, target.tls)
    await publishing.create_producer(topic, 1)
    timed = TimedMessages(consuming)
    total = int(rate_per_second * (seconds + 1))
    consuming.flow(1, total)
    publishing.start_counting()
    sends = StampedSends(1, os.urandom(1016))
    start = time.perf_counter()
    sent = 0
    while sent < total:
        due = min(int((time.perf_counter() - start) * rate_per_second) + 1, total)
        if due > sent:
            stamp = time.perf_counter_ns()
            timed.sent(stamp, due - sent)
            publishing.write(sends.frames(_NANOS.pack(stamp), due - sent))
            sent = due
        delay = start + sent / rate_per_second - time.perf_counter()
        if rate_per_second > 2000:
            await asyncio.sleep(0.001)
        elif delay > 0:
            await asyncio.sleep(delay if delay > 0.0005 else 0)
    deadline = time.perf_counter() + 10
    times = timed.times
    while len(times) < total and time.perf_counter() < deadline:
        await pause(0.05, consuming, publishing)
    consuming.close()
    publishing.close()
    if len(times) <= rate_per_second:
        raise RuntimeError(f"{target.name}: {len(times)} of {total} messages arrived")
    return times[rate_per_second:]


async def end_to_end_latency(
    target: Target, *, rate_per_second: int = 1000, seconds: float = 8.0
) -> Figures:
    """Publish to receive, at a fixed rate; each message carries its send time."""
    cpu = target.cpu_seconds()
    times = await timed_messages(target, rate_per_second=rate_per_second, seconds=seconds)
    counted = sorted((received - sent) / 1e6 for sent, received in times)
    return Figures(
        p50_millis=counted[len(counted) // 2],
        p99_millis=counted[int(len(counted) * 0.99)],
        p999_millis=counted[int(len(counted) * 0.999)],
        cpu_micros_per_entry=(target.cpu_seconds() - cpu) / (len(counted) + rate_per_second) * 1e6,
    )


async def half_rate(target: Target) -> int:
    """Half of the messages of 1 KB a second at which one subscription has just kept up."""
    taken = await tailing_consume(target, subscriptions=1, seconds=2.0)
    assert taken.entries_per_second is not None
    return int(taken.entries_per_second / 2)


async def latency_at_half_rate(target: Target, *, seconds: float) -> Figures:
    """Publish to receive, 1 KB, at half of the rate at which one subscription has just kept up."""
    return await latency_at_rate(target, rate_per_second=await half_rate(target), seconds=seconds)


async def latency_at_rate(target: Target, *, rate_per_second: int, seconds: float) -> Figures:
    """Publish to receive, 1 KB, at a rate that is among the figures."""
    figures = await end_to_end_latency(target, rate_per_second=rate_per_second, seconds=seconds)
    return replace(figures, entries_per_second=rate_per_second)


async def many_connections(target: Target, *, count: int = 2000) -> Figures:
    """Open connections with handshake, all at once."""
    start = time.perf_counter()
    cpu = target.cpu_seconds()
    connections = await asyncio.gather(
        *(RawConnection.connect(target.host, target.port, target.tls) for _ in range(count))
    )
    elapsed = time.perf_counter() - start
    used = target.cpu_seconds() - cpu
    for connection in connections:
        connection.close()
    await asyncio.sleep(0.5)
    return Figures(seconds=elapsed, cpu_micros_per_entry=used / count * 1e6)


async def official_batched_publish(target: Target, *, seconds: float) -> Figures:
    """Batches of 1,000 x 1 KB with the official client, in a process of its own."""
    cpu = target.cpu_seconds()
    script = Path(__file__).with_name("official_publisher.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), f"pulsar://{target.host}:{target.port}", fresh_topic(),
        str(seconds), stdout=subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"the official client failed with {process.returncode}")
    count, elapsed = (float(word) for word in output.split())
    return Figures(
        entries_per_second=count / elapsed,
        megabytes_per_second=count * 1024 / elapsed / 1e6,
        cpu_micros_per_entry=(target.cpu_seconds() - cpu) / count * 1e6,
    )
