"""Counts the tasks, futures and Python calls that the broker spends on 1,000 SENDs.

The broker runs in this process, under a profile hook that counts calls while a connection sends
pre-encoded frames; so does the client, whose own calls are counted with the echo of a bare
connection taken off: only frames of files under `pulsar_py/` count.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from types import FrameType
from typing import Any

from benchmarks.loads import fresh_topic
from benchmarks.raw_client import RawConnection, entry, send_block


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Counts for 1,000 SENDs, in the broker alone."""

    tasks: float
    futures: float
    python_calls: float
    most_called: list[tuple[str, float]]


async def count_calls(sends: int = 20_000, size_bytes: int = 1024) -> CallCounts:
    """Publish `sends` messages to a broker on disk in this process, counting."""
    from pulsar_py.standalone import Broker  # noqa: PLC0415  # The only load that needs it.

    with tempfile.TemporaryDirectory() as directory:
        async with Broker(data_dir=directory) as broker:
            host, _, port = broker.service_url.removeprefix("pulsar://").rpartition(":")
            connection = await RawConnection.connect(host, int(port))
            await connection.create_producer(fresh_topic(), 1)
            connection.start_counting()
            stored = entry(b"x" * size_bytes)
            block = send_block(1, 0, 100, stored)
            return await _count(connection, block, sends)


async def _count(connection: RawConnection, block: bytes, sends: int) -> CallCounts:
    loop = asyncio.get_running_loop()
    calls: Counter[str] = Counter()
    tasks = futures = 0
    plain_future = loop.create_future

    def on_event(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "/pulsar_py/" in frame.f_code.co_filename:
            calls[
                f"{frame.f_code.co_filename.rpartition('/pulsar_py/')[2]}:{frame.f_code.co_name}"
            ] += 1

    def make_task(
        loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        nonlocal tasks
        tasks += 1
        return asyncio.Task(work, loop=loop, **options)

    def make_future() -> asyncio.Future[Any]:
        nonlocal futures
        futures += 1
        return plain_future()

    loop.set_task_factory(make_task)
    if not type(loop).__module__.startswith("uvloop"):
        loop.create_future = make_future  # type: ignore[method-assign]
    connection.frames_count = 0
    sys.setprofile(on_event)
    try:
        for sent in range(0, sends, 100):
            connection.write(block)
            while connection.frames_count < sent - 500:
                await asyncio.sleep(0)
        while connection.frames_count < sends:
            await asyncio.sleep(0)
    finally:
        sys.setprofile(None)
        loop.set_task_factory(None)
    connection.close()
    thousands = sends / 1000
    return CallCounts(
        tasks=tasks / thousands,
        futures=futures / thousands,
        python_calls=calls.total() / thousands,
        most_called=[(name, count / thousands) for name, count in calls.most_common(12)],
    )
