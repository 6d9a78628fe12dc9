"""Measures the machine itself in the same run as the broker.

Sequential writes with `fdatasync`, the latency of one `fdatasync`, and a loopback echo of frames
over uvloop: the ceilings that the broker's figures are to be read against.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine's own figures."""

    sequential_megabytes_per_second: float
    fdatasync_p50_millis: float
    fdatasync_p99_millis: float
    echo_frames_per_second: float


def _sequential_write(directory: Path, seconds: float = 1.0, block_bytes: int = 1 << 20) -> float:
    block = os.urandom(block_bytes)
    with (directory / "sequential").open("wb", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, 256 << 20)
        start = time.perf_counter()
        written = 0
        while (elapsed := time.perf_counter() - start) < seconds and written < 256 << 20:
            file.write(block)
            os.fdatasync(file.fileno())
            written += block_bytes
    return written / elapsed / 1e6


def _sync_latencies(directory: Path, count: int = 300) -> list[float]:
    latencies = []
    with (directory / "latency").open("wb", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, 16 << 20)
        for _ in range(count):
            start = time.perf_counter()
            file.write(b"x" * 1024)
            os.fdatasync(file.fileno())
            latencies.append((time.perf_counter() - start) * 1e3)
    return sorted(latencies)


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)  # type: ignore[attr-defined]  # A stream's transport.


class _EchoClient(asyncio.Protocol):
    def __init__(self, total: int, done: asyncio.Future[None]) -> None:
        self.left, self.done = total, done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.left -= len(data)
        if self.left <= 0 and not self.done.done():
            self.done.set_result(None)


async def _echo_rate(frame_bytes: int = 1024, count: int = 200_000) -> float:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    done: asyncio.Future[None] = loop.create_future()
    transport, _ = await loop.create_connection(
        lambda: _EchoClient(frame_bytes * count, done), "127.0.0.1", port
    )
    block = b"x" * frame_bytes * 100
    start = time.perf_counter()
    for _ in range(count // 100):
        transport.write(block)
        while transport.get_write_buffer_size() > 4 << 20:
            await asyncio.sleep(0)
    await done
    elapsed = time.perf_counter() - start
    transport.abort()
    server.close()
    await server.wait_closed()
    return count / elapsed


async def measure(directory: Path) -> Machine:
    """Take all figures; `directory` is on the disk that the brokers use."""
    with tempfile.TemporaryDirectory(dir=directory) as name:
        latencies = _sync_latencies(Path(name))
        return Machine(
            sequential_megabytes_per_second=_sequential_write(Path(name)),
            fdatasync_p50_millis=statistics.median(latencies),
            fdatasync_p99_millis=latencies[int(len(latencies) * 0.99)],
            echo_frames_per_second=await _echo_rate(),
        )
