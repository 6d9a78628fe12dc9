"""Measure how much the broker's loop works between a SEND and its receipt while it compacts.

Alone: `python -m benchmarks.compaction_turns --keys 400000`.

Broker and publisher share one loop, and what passes is counted in CPU time of its thread, not in
seconds: so other programs of the machine, its disk and the pauses of the compaction do not count,
but every turn that stands in front of a receipt does. `storage_compaction` measures the seconds,
which are worth something on a quiet machine alone.
"""

from __future__ import annotations

import argparse
import asyncio
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import uvloop

from benchmarks.raw_client import RawConnection, entry, frame
from benchmarks.storage_compaction import ask_compaction, fill_with_keys
from benchmarks.targets import Target
from pulsar_py.cli.standalone import hurry_threads, spare_the_loop
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.standalone import Broker

KEYS = 400_000
ALONE_SECONDS = 5.0
POLL_SECONDS = 1.0
SEND_INTERVAL_SECONDS = 0.005


class _Publisher:
    """Sends one message after the other, and notes the loop's CPU time until each receipt."""

    def __init__(self, connection: RawConnection) -> None:
        self._connection = connection
        self._command = BaseCommand(type=BaseCommand.SEND)
        self._command.send.producer_id = 1
        self._entry = entry(b"x" * 1024)
        self._sent_at: dict[int, float] = {}
        self._count = 0
        self._millis: list[float] = []
        connection.start_counting()
        connection.on_frame = self._on_frame

    def _on_frame(self, data: memoryview) -> None:
        size = struct.unpack_from(">I", data, 4)[0]
        answer = BaseCommand.FromString(bytes(data[8 : 8 + size]))
        if answer.type == BaseCommand.SEND_RECEIPT:
            sent_at = self._sent_at.pop(answer.send_receipt.sequence_id)
            self._millis.append((time.thread_time() - sent_at) * 1e3)

    async def publish(self, is_over: Callable[[], bool]) -> str:
        """Publish until it is over; returns a line of percentiles."""
        self._millis = []
        while not is_over() or self._sent_at:
            if not is_over():
                self._command.send.sequence_id = self._count
                self._sent_at[self._count] = time.thread_time()
                self._connection.write(frame(self._command, self._entry))
                self._count += 1
            await asyncio.sleep(SEND_INTERVAL_SECONDS)
        ordered = sorted(self._millis)
        p50, p99 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
        return (
            f"{len(ordered):6} messages: p50 {p50:5.2f} ms, p99 {p99:5.2f}, max {ordered[-1]:5.2f}"
        )


async def _until_compacted(target: Target) -> None:
    await asyncio.to_thread(ask_compaction, target, "PUT")
    while (await asyncio.to_thread(ask_compaction, target, "GET"))["status"] == "RUNNING":
        await asyncio.sleep(POLL_SECONDS)


async def _measure(keys: int, directory: Path) -> None:
    async with Broker(data_dir=directory / "data") as broker:
        port = int(broker.service_url.rpartition(":")[2])
        web_port = int(broker.web_service_url.rpartition(":")[2])
        target = Target("pulsar_py", "127.0.0.1", port, None, web_port=web_port)
        await fill_with_keys(target, keys)
        connection = await RawConnection.connect("127.0.0.1", port)
        await connection.create_producer("persistent://public/default/beside", 1)
        publisher = _Publisher(connection)
        end = time.monotonic() + ALONE_SECONDS
        print("CPU time of the loop between a SEND and its receipt")
        print("  alone  ", await publisher.publish(lambda: time.monotonic() > end))
        compacting = asyncio.get_running_loop().create_task(_until_compacted(target))
        started = time.thread_time()
        print("  beside ", await publisher.publish(compacting.done))
        await compacting
        print(f"  both took {time.thread_time() - started:.1f} s of it")
        connection.close()


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    spare_the_loop()
    hurry_threads()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        uvloop.run(_measure(arguments.keys, Path(directory)))


if __name__ == "__main__":
    main()
