"""Loads over topics that several brokers or workers have, from one generator process.

Each topic has connections of its own to the broker that has it. CPU is told by kind of process,
the generator's apart, since all share the machine's cores.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.loads import Publisher, Subscriber, fresh_topic
from benchmarks.raw_client import RawConnection

AHEAD: Final = 5000
"""How many messages a publisher may be ahead of who tails it."""
IN_FLIGHT_BYTES: Final = 40 << 20
"""Of large entries, all publishers together: less than a broker has under way to one bookie."""
WARM_UP_SECONDS: Final = 1.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")

Locate = Callable[[str], Awaitable[int]]
"""The port of the broker on this machine that has a topic."""
Processes = Mapping[str, Sequence[int]]
"""Process ids by kind."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One load, once."""

    entries_per_second: float
    cpu_micros: dict[str, float]
    """CPU for an entry by kind of process; `generator` is this one."""
    topics_each: list[int]
    """How many topics each of the brokers has that have any."""


def cpu_seconds(processes: Sequence[int]) -> float:
    """User and system time of processes so far, all threads."""
    total = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


async def publish(
    locate: Locate, processes: Processes, *, size_bytes: int, topics: int, seconds: float
) -> Figures:
    """Unbatched SENDs, a connection for each topic."""
    ports = Counter[int]()
    publishers: list[Publisher] = []
    for _ in range(topics):
        topic = fresh_topic("spread")
        port = await locate(topic)
        ports[port] += 1
        connection = await RawConnection.connect("127.0.0.1", port)
        await connection.create_producer(topic, 1)
        share = IN_FLIGHT_BYTES // topics
        publishers.append(Publisher(connection, size_bytes, 4 << 20, large_window_bytes=share))
    for publisher in publishers:
        publisher.start()
    figures = await _watched(
        lambda: sum(each.receipts_count for each in publishers), processes, ports, seconds
    )
    for publisher in publishers:
        await publisher.drain()
        publisher.connection.close()
    return figures


async def tail(
    locate: Locate, processes: Processes, *, size_bytes: int, topics: int, seconds: float
) -> Figures:
    """A publisher and a subscription that keeps up with it for each topic; counts dispatched."""
    ports = Counter[int]()
    pairs: list[tuple[Publisher, Subscriber]] = []
    for _ in range(topics):
        topic = fresh_topic("spread")
        port = await locate(topic)
        ports[port] += 1
        publishing = await RawConnection.connect("127.0.0.1", port)
        await publishing.create_producer(topic, 1)
        receiving = await RawConnection.connect("127.0.0.1", port)
        await receiving.subscribe(topic, "tail", 1)
        share = IN_FLIGHT_BYTES // topics
        publisher = Publisher(publishing, size_bytes, 4 << 20, large_window_bytes=share)
        publisher.limit = AHEAD
        pairs.append((publisher, Subscriber(receiving)))
    for publisher, subscriber in pairs:
        subscriber.start()
        publisher.start()
    finished = asyncio.Event()

    async def pace() -> None:
        while not finished.is_set():
            for publisher, subscriber in pairs:
                publisher.resume(subscriber.received_count + AHEAD)
            await asyncio.sleep(0.002)

    pacing = asyncio.create_task(pace())
    figures = await _watched(
        lambda: sum(each.received_count for _, each in pairs), processes, ports, seconds
    )
    finished.set()
    await pacing
    for publisher, subscriber in pairs:
        await publisher.drain()
        publisher.connection.close()
        subscriber.connection.close()
    return figures


async def _watched(
    count: Callable[[], int], processes: Processes, ports: Counter[int], seconds: float
) -> Figures:
    await asyncio.sleep(WARM_UP_SECONDS)
    before, cpu = count(), {kind: cpu_seconds(pids) for kind, pids in processes.items()}
    own = time.process_time()
    start = time.perf_counter()
    await asyncio.sleep(seconds)
    elapsed, done = time.perf_counter() - start, count() - before
    micros = 1e6 / max(done, 1)
    used = {kind: (cpu_seconds(pids) - cpu[kind]) * micros for kind, pids in processes.items()}
    used["generator"] = (time.process_time() - own) * micros
    return Figures(done / elapsed, used, sorted(ports.values()))


def describe(taken: Sequence[Figures]) -> str:
    """Medians of rounds."""
    rates = sorted(each.entries_per_second for each in taken)
    kinds = ", ".join(
        f"{kind} {statistics.median(each.cpu_micros[kind] for each in taken):.1f}"
        for kind in taken[0].cpu_micros
    )
    spread = f"{rates[0]:,.0f} to {rates[-1]:,.0f}"
    return (
        f"{statistics.median(rates):>9,.0f}/s ({spread}); CPU us an entry: {kinds};"
        f" topics {taken[-1].topics_each}"
    )
