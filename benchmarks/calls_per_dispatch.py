"""Tasks, futures and Python calls that the broker spends on 1,000 entries from storage to a socket.

A backlog is published, the broker started anew so that nothing is in memory, and one consumer
subscribes from the earliest entry. The hook of `call_counter` counts from its FLOW for all of them
to the last MESSAGE. Nothing is acknowledged meanwhile.
"""

from __future__ import annotations

import asyncio
import tempfile

from benchmarks.call_counter import CallCounter, CallCounts
from benchmarks.calls_per_send import rest_is_ready
from benchmarks.loads import fresh_topic
from benchmarks.raw_client import RawConnection, entry, send_block
from pulsar_py.proto.PulsarApi_pb2 import CommandSubscribe

TYPES = ("Exclusive", "Shared", "Key_Shared")
KEYS_COUNT = 100


async def count_calls(kind: str, entries: int = 20_000, size_bytes: int = 1024) -> CallCounts:
    """Dispatch a backlog of `entries` to one consumer of that subscription type, counting."""
    from pulsar_py.standalone import Broker  # noqa: PLC0415  # The only load that needs it.

    topic = fresh_topic()
    with tempfile.TemporaryDirectory() as directory:
        async with Broker(data_dir=directory) as broker:
            await _publish(await _connect(broker.service_url), topic, entries, size_bytes)
        async with Broker(data_dir=directory) as broker:
            await rest_is_ready(broker.web_service_url)
            connection = await _connect(broker.service_url)
            await connection.subscribe(
                topic, "s", 1, from_earliest=True, kind=CommandSubscribe.SubType.Value(kind)
            )
            connection.start_counting()
            with CallCounter() as counter:
                connection.flow(1, entries)
                while connection.frames_count < entries:
                    await asyncio.sleep(0)
            connection.close()
            return counter.per_thousand(entries)


async def _connect(service_url: str) -> RawConnection:
    host, _, port = service_url.removeprefix("pulsar://").rpartition(":")
    return await RawConnection.connect(host, int(port))


async def _publish(connection: RawConnection, topic: str, entries: int, size_bytes: int) -> None:
    """Have the backlog stored: entries of many keys, one after the other."""
    await connection.create_producer(topic, 1)
    connection.start_counting()
    body = b"x" * size_bytes
    block = b"".join(
        send_block(1, number, 1, entry(body, key=f"k{number}")) for number in range(KEYS_COUNT)
    )
    for sent in range(0, entries, KEYS_COUNT):
        connection.write(block)
        while connection.frames_count < sent - 500:
            await asyncio.sleep(0)
    while connection.frames_count < entries:
        await asyncio.sleep(0)
    connection.close()
