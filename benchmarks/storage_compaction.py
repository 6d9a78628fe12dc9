"""Measure compaction of millions of keys beside a publisher; a part of `make bench-storage`.

Alone: `python -m benchmarks.storage_compaction --keys 1000000`.

Batches of a hundred messages, each with a key of its own, are published to one topic, and the first
tenth of the keys a second time. A publisher of another topic sends 200 messages of 1 KB a second,
one by one, first alone and then while the topic is compacted: its receipts' 99th percentile is
compared. Also counted are the seconds and CPU of the compaction, the broker's memory above that
before it, and the longest answer to a PING.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

import crc32c
import uvloop

from benchmarks.limited_rows import exit_with, print_limited
from benchmarks.ping import Pinger
from benchmarks.raw_client import RawConnection, entry, frame
from benchmarks.targets import Target, start_ours
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, MessageMetadata, SingleMessageMetadata

KEYS = 10_000_000
BATCH = 100
REPEATED_PART = 10
IN_FLIGHT_ENTRIES = 500
PATH = "public/default/keys"
BESIDE_RATE_PER_SECOND = 200
SETTLE_SECONDS = 10.0
"""After the fill, so that the publisher alone is not beside the rest of its work."""
ALONE_SECONDS = 15.0
MOST_SECONDS = 3600.0
POLL_SECONDS = 0.25

LIMITS = {"compaction_megabytes": 64.0, "compaction_p99_added_millis": 10.0}


def _batch(first: int, value: bytes) -> bytes:
    """Checksum, metadata and payload of a batch of neighbouring keys."""
    metadata = MessageMetadata(
        producer_name="bench",
        sequence_id=0,
        publish_time=1_700_000_000_000,
        num_messages_in_batch=BATCH,
    )
    parts = [metadata.SerializeToString()]
    parts.insert(0, struct.pack(">I", len(parts[0])))
    for number in range(first, first + BATCH):
        single = SingleMessageMetadata(
            payload_size=len(value), partition_key=f"order-{number:010}"
        ).SerializeToString()
        parts += (struct.pack(">I", len(single)), single, value)
    checked = b"".join(parts)
    return b"\x0e\x01" + struct.pack(">I", crc32c.crc32c(checked)) + checked


async def fill_with_keys(target: Target, keys: int) -> None:
    """Publish batches of so many keys, and of the first ones again, to the topic `keys`."""
    connection = await RawConnection.connect("127.0.0.1", target.port)
    topic = f"persistent://{PATH}"
    await connection.subscribe(topic, "keeps", 1, from_earliest=True)
    await connection.create_producer(topic, 1)
    has_room = asyncio.Event()
    connection.on_frames = lambda _: has_room.set()
    connection.start_counting()
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id, command.send.num_messages = 1, BATCH
    firsts = [*range(0, keys, BATCH), *range(0, keys // REPEATED_PART, BATCH)]
    for sent, first in enumerate(firsts):
        while sent - connection.frames_count > IN_FLIGHT_ENTRIES:
            has_room.clear()
            await asyncio.wait_for(has_room.wait(), 60)
        command.send.sequence_id = sent
        connection.write(frame(command, _batch(first, b"v" * 20)))
    while connection.frames_count < len(firsts):
        has_room.clear()
        await asyncio.wait_for(has_room.wait(), 60)
    connection.close()


class _Beside:
    """A publisher of another topic, which notes how long each receipt takes."""

    def __init__(self, connection: RawConnection) -> None:
        self._connection = connection
        self._sent_at: dict[int, float] = {}
        self._command = BaseCommand(type=BaseCommand.SEND)
        self._command.send.producer_id = 1
        self._entry = entry(b"x" * 1024)
        self._count = 0
        self.millis: list[float] = []
        connection.start_counting()
        connection.on_frame = self._on_frame

    def _on_frame(self, data: memoryview) -> None:
        size = struct.unpack_from(">I", data, 4)[0]
        answer = BaseCommand.FromString(bytes(data[8 : 8 + size]))
        if answer.type == BaseCommand.SEND_RECEIPT:
            sent_at = self._sent_at.pop(answer.send_receipt.sequence_id)
            self.millis.append((time.perf_counter() - sent_at) * 1e3)

    async def publish(self, until: asyncio.Event) -> float:
        """Publish until the event; the 99th percentile of the receipts."""
        self.millis = []
        started, sent = time.perf_counter(), 0
        while not until.is_set():
            self._command.send.sequence_id = self._count
            self._sent_at[self._count] = time.perf_counter()
            self._connection.write(frame(self._command, self._entry))
            self._count += 1
            sent += 1
            due = started + sent / BESIDE_RATE_PER_SECOND
            await asyncio.sleep(max(due - time.perf_counter(), 0))
        while self._sent_at:
            await asyncio.sleep(0.005)
        return sorted(self.millis)[int(len(self.millis) * 0.99)]


def ask_compaction(target: Target, method: str) -> Any:
    """Start the compaction of that topic (PUT), or ask for its status (GET)."""
    connection = http.client.HTTPConnection("127.0.0.1", target.web_port or 0, timeout=60)
    connection.request(method, f"/admin/v2/persistent/{PATH}/compaction")
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} compaction was answered with {answer.status}: {body!r}")
    return json.loads(body) if body else None


async def _compact(target: Target, figures: dict[str, float], is_over: asyncio.Event) -> None:
    before, cpu, started = target.resident_megabytes(), target.cpu_seconds(), time.perf_counter()
    most = before
    await asyncio.to_thread(ask_compaction, target, "PUT")
    while (
        status := (await asyncio.to_thread(ask_compaction, target, "GET"))["status"]
    ) == "RUNNING":
        most = max(most, target.resident_megabytes())
        if time.perf_counter() - started > MOST_SECONDS:
            raise RuntimeError(f"still compacting after {MOST_SECONDS} s")
        await asyncio.sleep(POLL_SECONDS)
    if status != "SUCCESS":
        raise RuntimeError(f"the compaction ended with {status}")
    figures["compaction_seconds"] = time.perf_counter() - started
    figures["compaction_cpu_seconds"] = target.cpu_seconds() - cpu
    figures["compaction_megabytes"] = most - before
    is_over.set()


async def _measure(target: Target, figures: dict[str, float]) -> None:
    connection = await RawConnection.connect("127.0.0.1", target.port)
    await connection.create_producer("persistent://public/default/beside", 1)
    beside = _Beside(connection)
    await asyncio.sleep(SETTLE_SECONDS)
    is_over = asyncio.Event()
    asyncio.get_running_loop().call_later(ALONE_SECONDS, is_over.set)
    figures["publisher_p99_alone_millis"] = await beside.publish(is_over)
    is_over = asyncio.Event()
    pinger = Pinger(target.port)
    pinger.start()
    async with asyncio.TaskGroup() as tasks:
        publishing = tasks.create_task(beside.publish(is_over))
        tasks.create_task(_compact(target, figures, is_over))
    pinger.stop()
    figures["publisher_p99_beside_millis"] = publishing.result()
    figures["compaction_p99_added_millis"] = (
        figures["publisher_p99_beside_millis"] - figures["publisher_p99_alone_millis"]
    )
    figures["compaction_longest_ping_millis"] = pinger.longest_millis
    connection.close()


def measure_compaction(keys: int, directory: Path) -> dict[str, float]:
    """All figures of so many keys."""
    figures: dict[str, float] = {"keys": keys}
    target = start_ours(directory)
    try:
        started = time.perf_counter()
        uvloop.run(fill_with_keys(target, keys))
        figures["publish_seconds"] = time.perf_counter() - started
        uvloop.run(_measure(target, figures))
    finally:
        target.stop()
    return figures


def print_compaction(figures: dict[str, float]) -> list[str]:
    """One line a figure; returns what is beyond its limit."""
    title = f"compaction of {figures['keys']:,.0f} keys"
    return print_limited(title, figures, LIMITS)


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    exit_with(print_compaction(measure_compaction(arguments.keys, arguments.directory)))


if __name__ == "__main__":
    main()
