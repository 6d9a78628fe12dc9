"""Measure how the storage grows; `make bench-storage` runs it.

It prints a table and writes JSON under `results`; the exit status is 1 if a figure is beyond its
limit.
Two sizes are measured, the second ten times the first, so that the last column shows how each
figure grows. The second has ten thousand topics with a subscription each, a backlog of ten million
entries of 1 KB in ten of them, and one million ledgers in an engine of their own; that takes about
ten minutes and 12 GB in the directory for temporary files. `--scale 0.1` is a tenth of it.
The pages of the data are dropped from the system's cache before they are read back
(`posix_fadvise`). A last table reads a backlog cold from disks that the kernel makes as slow as a
volume of the cloud, beside a plain loop over the same files. "The longest ping" is the longest
answer to a PING sent every 5 ms meanwhile by a thread that shares its interpreter with the load: an
upper bound of the broker's loop being away.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import uvloop

from benchmarks.limited_rows import beyond_limits, exit_with
from benchmarks.ping import Pinger
from benchmarks.raw_client import RawConnection, entry, frame, send_block
from benchmarks.slow_disk import CannotLimitError, reads_limited
from benchmarks.storage_compaction import KEYS, measure_compaction, print_compaction
from benchmarks.storage_delays import DELAYS, measure_delays, print_delays
from benchmarks.storage_many import (
    NAMES,
    measure_names,
    measure_topics,
    measure_turns,
    print_many,
)
from benchmarks.storage_schemas import VERSIONS, measure_schemas, print_schemas
from benchmarks.targets import Target, start_ours
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe

RESULTS = Path(__file__).with_name("results")
NAMESPACE = "persistent://public/default"
SUBSCRIPTION = "growth"
TOPICS, ENTRIES, LEDGERS = 10_000, 10_000_000, 1_000_000
BACKLOG_TOPICS = 10
ENTRY_BYTES = 1024
BLOCK_ENTRIES = 200
IN_FLIGHT_ENTRIES = 4000
REQUESTS_AT_ONCE = 200
PERMITS = 1000

DISKS_MEGABYTES_PER_SECOND = (125, 250, 500)
DISKS_ENTRIES = 1_500_000

LIMITS = {
    "restart_seconds": 5.0,
    "reopen_all_seconds": 60.0,
    "resident_opened_megabytes": 400.0,
    "resident_after_reading_megabytes": 400.0,
}
"""The limit for the largest size."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one measurement."""

    topics: int
    entries: int
    ledgers: int

    @classmethod
    def of(cls, scale: float) -> Size:
        """A share of the whole, in round numbers."""
        return cls(
            max(int(TOPICS * scale), BACKLOG_TOPICS),
            max(int(ENTRIES * scale), BACKLOG_TOPICS * BLOCK_ENTRIES),
            max(int(LEDGERS * scale), 1000),
        )


@contextmanager
def phase(figures: dict[str, float], name: str, target: Target) -> Iterator[None]:
    """Measure seconds, CPU and the longest ping of what is done inside."""
    pinger = Pinger(target.port)
    pinger.start()
    cpu, started = target.cpu_seconds(), time.perf_counter()
    try:
        yield
    finally:
        figures[f"{name}_seconds"] = time.perf_counter() - started
        figures[f"{name}_cpu_seconds"] = target.cpu_seconds() - cpu
        pinger.stop()
        figures[f"{name}_longest_ping_millis"] = pinger.longest_millis


def topic_name(number: int) -> str:
    """Topics come in order; the first ten have the backlog."""
    return f"{NAMESPACE}/growth-{number:05}"


def drop_from_page_cache(directory: Path) -> None:
    """Let the next read of each file come from the disk."""
    for path in directory.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def disk_megabytes_per_second(directory: Path) -> float:
    """The rate at which a plain loop reads the entry logs, one after another."""
    drop_from_page_cache(directory)
    read, started = 0, time.perf_counter()
    for path in sorted(directory.rglob("entries/*")):
        with path.open("rb", buffering=0) as file:
            while piece := len(file.read(1 << 20)):
                read += piece
    return read / (time.perf_counter() - started) / 1e6


def log_megabytes(directory: Path) -> float:
    """Bytes of the entry logs, headers included."""
    return sum(path.stat().st_size for path in directory.rglob("entries/*")) / 1e6


def used_megabytes(directory: Path) -> float:
    """Bytes that the files of a directory take on disk."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file()) / 1e6


async def subscribe_all(target: Target, count: int) -> None:
    """Open a consumer on every topic, many requests at a time."""
    connection = await RawConnection.connect("127.0.0.1", target.port)
    for first in range(0, count, REQUESTS_AT_ONCE):
        numbers = range(first, min(first + REQUESTS_AT_ONCE, count))
        connection.write(b"".join(_lookup(connection, number) for number in numbers))
        await _answers(connection, BaseCommand.LOOKUP_RESPONSE, len(numbers))
        connection.write(b"".join(_subscribe(connection, number) for number in numbers))
        await _answers(connection, BaseCommand.SUCCESS, len(numbers))
    connection.close()


async def _answers(connection: RawConnection, expected: int, count: int) -> None:
    while count:
        answer = await connection.answer()
        if answer.type == BaseCommand.ERROR:
            raise RuntimeError(f"a request was answered with {answer}")
        count -= answer.type == expected


def _lookup(connection: RawConnection, number: int) -> bytes:
    command = BaseCommand(type=BaseCommand.LOOKUP)
    command.lookupTopic.topic = topic_name(number)
    command.lookupTopic.request_id = connection.next_request_id()
    return frame(command)


def _subscribe(connection: RawConnection, number: int) -> bytes:
    command = BaseCommand(type=BaseCommand.SUBSCRIBE)
    subscribe = command.subscribe
    subscribe.topic = topic_name(number)
    subscribe.subscription = SUBSCRIPTION
    subscribe.subType = CommandSubscribe.Exclusive
    subscribe.consumer_id = number
    subscribe.request_id = connection.next_request_id()
    subscribe.initialPosition = CommandSubscribe.Earliest
    return frame(command)


async def publish_all(target: Target, count: int) -> None:
    """Fill the backlog: blocks in turn to each of its topics."""
    connection = await RawConnection.connect("127.0.0.1", target.port)
    stored = entry(os.urandom(ENTRY_BYTES))
    blocks = []
    for number in range(BACKLOG_TOPICS):
        await connection.create_producer(topic_name(number), number)
        blocks.append(send_block(number, 0, BLOCK_ENTRIES, stored))
    has_room = asyncio.Event()
    connection.on_frames = lambda _: has_room.set()
    connection.start_counting()
    sent = 0
    while sent < count:
        connection.write(blocks[sent // BLOCK_ENTRIES % BACKLOG_TOPICS])
        sent += BLOCK_ENTRIES
        while sent - connection.frames_count > IN_FLIGHT_ENTRIES:
            has_room.clear()
            await has_room.wait()
    while connection.frames_count < sent:
        has_room.clear()
        await has_room.wait()
    connection.close()


async def read_backlog(target: Target, count: int) -> None:
    """Receive the whole backlog of each of its topics, one after another."""
    per_topic = count // BACKLOG_TOPICS
    for number in range(BACKLOG_TOPICS):
        connection = await RawConnection.connect("127.0.0.1", target.port)
        await connection.subscribe(topic_name(number), SUBSCRIPTION, 1, from_earliest=True)
        arrived = asyncio.Event()
        connection.on_frames = lambda _, arrived=arrived: arrived.set()
        connection.start_counting()
        granted = 0
        while connection.frames_count < per_topic:
            while granted - connection.frames_count < 2 * PERMITS:
                connection.flow(1, PERMITS)
                granted += PERMITS
            arrived.clear()
            await asyncio.wait_for(arrived.wait(), 30)
        connection.close()


def measure(size: Size, directory: Path) -> dict[str, float]:
    """All figures of one size."""
    figures: dict[str, float] = {}
    data_dir = Path(tempfile.mkdtemp(prefix="growth-", dir=directory))
    target = start_ours(directory, data_dir=data_dir)
    try:
        figures["resident_empty_megabytes"] = target.resident_megabytes()
        with phase(figures, "create_all", target):
            uvloop.run(subscribe_all(target, size.topics))
        with phase(figures, "publish", target):
            uvloop.run(publish_all(target, size.entries))
        figures["resident_filled_megabytes"] = target.resident_megabytes()
        target.data_dir = None
        figures["stop_seconds"] = _timed(target.stop)
        figures["data_megabytes"] = used_megabytes(data_dir)
        figures["disk_megabytes_per_second"] = disk_megabytes_per_second(data_dir)
        drop_from_page_cache(data_dir)
        target = start_ours(directory, data_dir=data_dir)
        figures["restart_seconds"] = target.ready_millis / 1e3
        figures["resident_restarted_megabytes"] = target.resident_megabytes()
        _measure_restarted(target, size, figures, data_dir)
    finally:
        target.stop()
        shutil.rmtree(data_dir, ignore_errors=True)
    for name, value in _measure_ledgers(size.ledgers, directory).items():
        figures[f"ledgers_{name}"] = value
    return figures


def _measure_restarted(
    target: Target, size: Size, figures: dict[str, float], data_dir: Path
) -> None:
    with phase(figures, "reopen_all", target):
        uvloop.run(subscribe_all(target, size.topics))
    figures["resident_opened_megabytes"] = target.resident_megabytes()
    drop_from_page_cache(data_dir)
    with phase(figures, "read_backlog", target):
        uvloop.run(read_backlog(target, size.entries))
    megabytes = size.entries * ENTRY_BYTES / 1e6
    figures["read_backlog_megabytes_per_second"] = megabytes / figures["read_backlog_seconds"]
    figures["resident_after_reading_megabytes"] = target.resident_megabytes()


def measure_disks(entries: int, directory: Path) -> list[dict[str, float]]:
    """Measure reads of a backlog from disks of several speeds, and from the disk as it is."""
    data_dir = Path(tempfile.mkdtemp(prefix="disks-", dir=directory))
    target = start_ours(directory, data_dir=data_dir)
    try:
        uvloop.run(subscribe_all(target, BACKLOG_TOPICS))
        uvloop.run(publish_all(target, entries))
        target.data_dir = None
        target.stop()
        measured = []
        for limit in (*DISKS_MEGABYTES_PER_SECOND, 0):
            with reads_limited(data_dir, limit) if limit else nullcontext():
                plain = disk_megabytes_per_second(data_dir)
                drop_from_page_cache(data_dir)
                target = start_ours(directory, data_dir=data_dir)
                target.data_dir = None
                seconds = _timed(lambda target=target: uvloop.run(read_backlog(target, entries)))
                target.stop()
            ours = log_megabytes(data_dir) / seconds
            measured.append({"limit": limit, "plain_loop": plain, "backlog": ours})
        return measured
    finally:
        target.stop()
        shutil.rmtree(data_dir, ignore_errors=True)


def print_disks(measured: list[dict[str, float]]) -> None:
    """One line a disk."""
    print(f"\n{'reads of the disk limited to':<32}{'plain loop':>14}{'backlog':>14}{'ratio':>8}")
    for each in measured:
        name = f"{each['limit']:.0f} MB/s" if each["limit"] else "nothing"
        ratio = each["backlog"] / each["plain_loop"]
        print(f"{name:<32}{each['plain_loop']:9.0f} MB/s{each['backlog']:9.0f} MB/s{ratio:8.2f}")


def _timed(work: object) -> float:
    assert callable(work)
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _measure_ledgers(count: int, directory: Path) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="ledgers-", dir=directory) as name:
        command = [sys.executable, "-m", "benchmarks.ledger_growth", name, str(count)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def print_table(sizes: list[Size], measured: list[dict[str, float]]) -> None:
    """One line a figure, and what became of it at ten times the size."""
    header = "".join(f"{f'{each.topics:,} / {each.entries:,}':>22}" for each in sizes)
    print(f"\n{'topics / entries of 1 KB':<44}{header}{'grows by':>10}{'limit':>8}")
    for name in measured[0]:
        values = [figures[name] for figures in measured]
        growth = f"{values[-1] / values[0]:9.1f}x" if values[0] else ""
        limit = f"{LIMITS[name]:8.0f}" if name in LIMITS else ""
        cells = "".join(f"{value:22,.2f}" for value in values)
        print(f"{name:<44}{cells}{growth:>10}{limit}")


def main() -> None:
    """Measure both sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is ten thousand topics")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    sizes = [Size.of(arguments.scale / 10), Size.of(arguments.scale)]
    measured = []
    for size in sizes:
        print(f"measuring {size}", flush=True)
        measured.append(measure(size, arguments.directory))
    print_table(sizes, measured)
    missed = beyond_limits(measured[-1], LIMITS)
    delays = measure_delays(int(DELAYS * arguments.scale), arguments.directory)
    missed += print_delays(delays)
    many = measure_names(int(NAMES * arguments.scale), arguments.directory)
    many |= measure_turns(int(NAMES * arguments.scale), arguments.directory)
    many |= measure_topics(int(TOPICS * arguments.scale), arguments.directory)
    missed += print_many(many)
    compaction = measure_compaction(int(KEYS * arguments.scale), arguments.directory)
    missed += print_compaction(compaction)
    schemas = measure_schemas(int(VERSIONS * arguments.scale), arguments.directory)
    missed += print_schemas(schemas)
    disks: list[dict[str, float]] = []
    try:
        disks = measure_disks(int(DISKS_ENTRIES * arguments.scale), arguments.directory)
        print_disks(disks)
    except CannotLimitError as error:
        print(f"\nno disk could be slowed down: {error}")
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"storage-{time.strftime('%Y%m%d-%H%M%S')}.json"
    content = [
        {"topics": size.topics, "entries": size.entries, "ledgers": size.ledgers, **figures}
        for size, figures in zip(sizes, measured, strict=True)
    ]
    path.write_text(
        json.dumps(
            {
                "scale": arguments.scale,
                "sizes": content,
                "delays": delays,
                "many": many,
                "compaction": compaction,
                "schemas": schemas,
                "disks": disks,
            },
            indent=2,
        )
        + "\n"
    )
    print(f"\n{path}")
    exit_with(missed)


if __name__ == "__main__":
    main()
