"""Measure delayed delivery; a part of `make bench-storage`.

Alone: `python -m benchmarks.storage_delays`.

Entries of 1 KB whose times are spread at random over 30 days are published to one topic with two
Shared subscriptions, each with a consumer. When both know of all delays, memory and idle CPU are
taken, the broker is killed with SIGKILL, and started again: counted is what the process reads from
its files until both subscriptions know all delays again, less what a broker without data reads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import struct
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import crc32c
import uvloop

from benchmarks.limited_rows import exit_with, print_limited
from benchmarks.raw_client import RawConnection, frame
from benchmarks.targets import Target, start_ours
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe, MessageMetadata

DELAYS = 5_000_000
SUBSCRIPTIONS = ("first", "second")
PATH = "public/default/delays"
TOPIC = f"persistent://{PATH}"
PAYLOAD = bytes(1024)
SPREAD_MILLIS = 30 * 24 * 3600 * 1000
SOON_MILLIS = 3600 * 1000
"""None is due during the measurement."""

IN_FLIGHT_ENTRIES = 4000
BLOCK_ENTRIES = 200
PERMITS = 1000
IDLE_SECONDS = 30
SETTLED_SECONDS = 600

LIMITS = {
    "resident_megabytes": 200.0,
    "idle_cpu_percent": 1.0,
    "start_read_percent": 5.0,
    "resident_restarted_megabytes": 200.0,
}


def _block(chance: random.Random, first: int) -> bytes:
    command = BaseCommand(type=BaseCommand.SEND)
    metadata = MessageMetadata(producer_name="bench", publish_time=int(time.time() * 1000))
    start_millis = metadata.publish_time + SOON_MILLIS
    frames = []
    for sequence_id in range(first, first + BLOCK_ENTRIES):
        command.send.sequence_id = metadata.sequence_id = sequence_id
        command.send.producer_id = 1
        metadata.deliver_at_time = start_millis + chance.randrange(SPREAD_MILLIS)
        head = metadata.SerializeToString()
        checked = struct.pack(">I", len(head)) + head + PAYLOAD
        stored = b"\x0e\x01" + struct.pack(">I", crc32c.crc32c(checked)) + checked
        frames.append(frame(command, stored))
    return b"".join(frames)


async def _publish(target: Target, count: int) -> None:
    connection = await RawConnection.connect("127.0.0.1", target.port)
    await connection.create_producer(TOPIC, 1)
    has_room = asyncio.Event()
    connection.on_frames = lambda _: has_room.set()
    connection.start_counting()
    chance, sent = random.Random(1), 0
    while connection.frames_count < count:
        while sent < count and sent - connection.frames_count < IN_FLIGHT_ENTRIES:
            connection.write(_block(chance, sent))
            sent += BLOCK_ENTRIES
        has_room.clear()
        await asyncio.wait_for(has_room.wait(), 60)
    connection.close()


async def _subscribe(target: Target) -> RawConnection:
    connection = await RawConnection.connect("127.0.0.1", target.port)
    for number, name in enumerate(SUBSCRIPTIONS):
        await connection.subscribe(
            TOPIC, name, number, from_earliest=True, kind=CommandSubscribe.Shared
        )
        connection.flow(number, PERMITS)
    return connection


def _statistics(target: Target) -> dict[str, Any]:
    url = f"http://127.0.0.1:{target.web_port}/admin/v2/persistent/{PATH}/stats"
    with urllib.request.urlopen(url, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)["subscriptions"]
    return found


async def _all_delayed(target: Target, count: int) -> float:
    """Wait until both subscriptions know of all delays; the seconds it took."""
    started = time.perf_counter()
    while True:
        found = await asyncio.to_thread(_statistics, target)
        if all(found[name]["msgDelayed"] == count for name in SUBSCRIPTIONS):
            return time.perf_counter() - started
        if time.perf_counter() - started > SETTLED_SECONDS:
            known = {name: found[name]["msgDelayed"] for name in SUBSCRIPTIONS}
            raise RuntimeError(f"{count} delays, and known are {known}")
        await asyncio.sleep(0.5)


def _read_bytes(target: Target) -> int:
    """Bytes that the process has read from files and sockets so far."""
    for line in Path(f"/proc/{target.pid}/io").read_text().splitlines():
        if line.startswith("rchar:"):
            return int(line.split()[1])
    raise RuntimeError("the system does not count reads")


async def _fill(target: Target, count: int, figures: dict[str, float]) -> None:
    connection = await _subscribe(target)
    started = time.perf_counter()
    await _publish(target, count)
    figures["publish_seconds"] = time.perf_counter() - started
    figures["settled_seconds"] = await _all_delayed(target, count)
    await asyncio.sleep(IDLE_SECONDS)
    figures["resident_megabytes"] = target.resident_megabytes()
    cpu = target.cpu_seconds()
    await asyncio.sleep(IDLE_SECONDS)
    figures["idle_cpu_percent"] = (target.cpu_seconds() - cpu) / IDLE_SECONDS * 100
    connection.close()


async def _restarted(target: Target, count: int, figures: dict[str, float]) -> None:
    connection = await _subscribe(target)
    figures["known_again_seconds"] = await _all_delayed(target, count)
    figures["resident_restarted_megabytes"] = target.resident_megabytes()
    connection.close()


def _empty_start_bytes(directory: Path) -> int:
    target = start_ours(directory)
    try:
        uvloop.run(_publish(target, BLOCK_ENTRIES))
        return _read_bytes(target)
    finally:
        target.stop()


def measure_delays(count: int, directory: Path) -> dict[str, float]:
    """All figures of so many delays."""
    data_dir = Path(tempfile.mkdtemp(prefix="delays-", dir=directory))
    figures: dict[str, float] = {"delays": count}
    empty_bytes = _empty_start_bytes(directory)
    target = start_ours(directory, data_dir=data_dir)
    try:
        uvloop.run(_fill(target, count, figures))
        assert target.process is not None
        target.process.kill()
        target.process.wait()
        target = start_ours(directory, data_dir=data_dir)
        figures["restart_seconds"] = target.ready_millis / 1e3
        uvloop.run(_restarted(target, count, figures))
        read = _read_bytes(target) - empty_bytes
        figures["start_read_megabytes"] = read / 1e6
        figures["start_read_percent"] = read / (count * len(PAYLOAD)) * 100
    finally:
        target.data_dir = data_dir
        target.stop()
        shutil.rmtree(data_dir, ignore_errors=True)
    return figures


def print_delays(figures: dict[str, float]) -> list[str]:
    """One line a figure; returns what is beyond its limit."""
    title = f"{figures['delays']:,.0f} delays over 30 days, 2 subscriptions"
    return print_limited(title, figures, LIMITS)


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delays", type=int, default=DELAYS)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    exit_with(print_delays(measure_delays(arguments.delays, arguments.directory)))


if __name__ == "__main__":
    main()
