"""What a crowd costs others that does not get beyond TLS: silent connections and handshakes.

The crowd is a process of its own (`python -m benchmarks.tls_crowd HOST PORT RATE SECONDS`): it
keeps 2,000 connections open that never send a byte, each replaced when the broker closes it, and
makes so many whole handshakes a second, each closed when it is done. It prints how many of both
there were, and how many connections failed: where that is not nothing, the crowd was smaller.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Coroutine
from typing import Any

import uvloop

from benchmarks.loads import Figures, fresh_topic
from benchmarks.raw_client import RawConnection, entry, send_block
from benchmarks.targets import Target

SILENT_COUNT = 2_000
HANDSHAKES_A_SECOND = 500
CANARY_SECONDS = 0.01
"""Between two messages of the canary."""


async def receipts_in_a_crowd(target: Target, *, seconds: float) -> Figures:
    """Publish now and then over a connection of its own, and time each receipt.

    The rate is that of handshakes: where it is not what was asked for, the machine was too busy.
    """
    connection = await RawConnection.connect(target.host, target.port, target.tls)
    await connection.create_producer(fresh_topic(), 1)
    came = asyncio.Event()
    connection.start_counting()
    connection.on_frames = lambda _: came.set()
    crowd = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.tls_crowd", target.host, str(target.port),
        str(HANDSHAKES_A_SECOND), str(seconds), stdout=subprocess.PIPE,
    )  # fmt: skip
    assert crowd.stdout is not None
    await crowd.stdout.readline()  # all silent ones are there
    cpu, began = target.cpu_seconds(), time.perf_counter()
    stored, millis = entry(os.urandom(1024)), list[float]()
    while crowd.returncode is None and time.perf_counter() - began < seconds:
        came.clear()
        sent = time.perf_counter()
        connection.write(send_block(1, len(millis), 1, stored))
        async with asyncio.timeout(30):
            await came.wait()
        millis.append((time.perf_counter() - sent) * 1e3)
        await asyncio.sleep(CANARY_SECONDS)
    used = target.cpu_seconds() - cpu
    output, _ = await crowd.communicate()
    connection.close()
    found = json.loads(output)
    millis.sort()
    return Figures(
        entries_per_second=found["handshakes"] / seconds,
        p50_millis=millis[len(millis) // 2],
        p99_millis=millis[int(len(millis) * 0.99)],
        p999_millis=millis[int(len(millis) * 0.999)],
        worst_millis=millis[-1],
        cpu_micros_per_entry=used / found["handshakes"] * 1e6,
    )


class Silent(asyncio.Protocol):
    """A connection that sends nothing; another takes its place when it ends."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd

    def connection_lost(self, error: Exception | None) -> None:
        """Open another."""
        del error
        self._crowd.replace()


class Crowd:
    """Silent connections and handshakes; owned by the process."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False
        self.handshakes_count = 0
        self.opened_count = 0
        self.failed_count = 0

    async def gather(self) -> None:
        """Open the silent ones."""
        for first in range(0, SILENT_COUNT, 200):
            await asyncio.gather(*(self._open() for _ in range(first, first + 200)))

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: Silent(self), self._host, self._port)
        self.opened_count += 1

    def replace(self) -> None:
        """One of the silent ended."""
        if not self._is_over:
            self._spawn(self._open())

    async def _count_failure(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for a connection; the broker may refuse or drop it, as a crowd has to expect."""
        try:
            await work
        except OSError:  # ssl.SSLError, too
            self.failed_count += 1

    async def shake(self, rate_per_second: float, seconds: float) -> None:
        """Make handshakes at a steady rate."""
        loop = asyncio.get_running_loop()
        began, count = loop.time(), 0
        while (passed := loop.time() - began) < seconds:
            while count < passed * rate_per_second:
                self._spawn(self._handshake())
                count += 1
            await asyncio.sleep(0.002)
        self._is_over = True
        async with asyncio.timeout(30):
            while self._tasks:
                await asyncio.sleep(0.01)

    async def _handshake(self) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(
            asyncio.Protocol, self._host, self._port, ssl=self._context
        )
        self.handshakes_count += 1
        transport.abort()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._count_failure(work))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.result()  # anything but a failed connection is a mistake of this module


async def run_crowd(host: str, port: int, rate_per_second: float, seconds: float) -> None:
    """Be the crowd, and print how large it was."""
    crowd = Crowd(host, port)
    await crowd.gather()
    print("gathered", flush=True)
    await crowd.shake(rate_per_second, seconds)
    found = {
        "handshakes": crowd.handshakes_count,
        "silent": crowd.opened_count,
        "failed": crowd.failed_count,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    uvloop.run(run_crowd(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])))
