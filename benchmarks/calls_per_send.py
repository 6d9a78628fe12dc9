"""Counts the tasks, futures and Python calls that the broker spends on 1,000 SENDs.

The broker runs in this process, under the hook of `call_counter`, while a connection sends
pre-encoded frames. Counting begins when the REST API, which a started broker imports behind the
back of its loop, answers.
"""

from __future__ import annotations

import asyncio
import tempfile

from benchmarks.call_counter import CallCounter, CallCounts
from benchmarks.loads import fresh_topic
from benchmarks.raw_client import RawConnection, entry, send_block


async def count_calls(sends: int = 20_000, size_bytes: int = 1024) -> CallCounts:
    """Publish `sends` messages to a broker on disk in this process, counting."""
    from pulsar_py.standalone import Broker  # noqa: PLC0415  # The only load that needs it.

    with tempfile.TemporaryDirectory() as directory:
        async with Broker(data_dir=directory) as broker:
            await rest_is_ready(broker.web_service_url)
            host, _, port = broker.service_url.removeprefix("pulsar://").rpartition(":")
            connection = await RawConnection.connect(host, int(port))
            await connection.create_producer(fresh_topic(), 1)
            connection.start_counting()
            stored = entry(b"x" * size_bytes)
            block = send_block(1, 0, 100, stored)
            return await _count(connection, block, sends)


async def rest_is_ready(web_service_url: str) -> None:
    """Return when a broker of this loop has answered a request, and so has made its router."""
    host, _, port = web_service_url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /admin/v2/clusters HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the REST API answered {answer[:100]!r}")


async def _count(connection: RawConnection, block: bytes, sends: int) -> CallCounts:
    connection.frames_count = 0
    with CallCounter() as counter:
        for sent in range(0, sends, 100):
            connection.write(block)
            while connection.frames_count < sent - 500:
                await asyncio.sleep(0)
        while connection.frames_count < sends:
            await asyncio.sleep(0)
    connection.close()
    return counter.per_thousand(sends)
