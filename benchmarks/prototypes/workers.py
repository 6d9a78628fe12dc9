"""Prototype: N workers on one disk behind one address, topics dealt by a hash of their name.

    python -m benchmarks.prototypes.workers [--workers 1 2] [--rounds 5] [--seconds 2]

A worker is today's `pulsar-py standalone` with a directory of its own (journal, entry logs, index,
metadata) below one directory, and ports of its own. Before them stands a lookup: a port that
answers CONNECT, PING, PARTITIONED_METADATA and LOOKUP, the latter with the address of the worker
that CRC32C(topic) % N names, and keeps nothing. Clients connect there, ask, and go on to the
worker. So it shows what dealing topics gives, and nothing more: it has no partitioned
topics, one REST API for each worker in place of one for all, policies that each worker has to be
told, no worker that takes over another's topics, and another number of workers finds nothing again.

Before the loads, the client of this package publishes to topics through the lookup and reads back;
a topic that is not where its hash says ends the run. Then one and more workers take turns under
the same loads; CPU is told by kind of process, the generator's apart. On a machine of two cores
one worker and the generator fill both already, so a second worker can hardly raise the rate there:
what is measured is whether CPU an entry grows, and how syncs share the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import crc32c
import uvloop

from benchmarks import spread_loads
from benchmarks.__main__ import RESULTS
from benchmarks.raw_client import RawConnection, frame
from benchmarks.spread_loads import Figures, describe
from benchmarks.targets import Target, start_ours
from pulsar_py.client import Client
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    CommandPong,
)

PUBLISHED: Final = 8
"""Topics of the check before the loads."""
LOADS: Final = {
    "publish, 100 B, ten connections": partial(spread_loads.publish, size_bytes=100, topics=10),
    "publish, 1 KB, ten connections": partial(spread_loads.publish, size_bytes=1024, topics=10),
    "tailing, 1 KB, four topics": partial(spread_loads.tail, size_bytes=1024, topics=4),
}


def worker_of(topic: str, count: int) -> int:
    """The number of the worker that has a topic (pure)."""
    return int(crc32c.crc32c(topic.encode())) % count


class LookupConnection(asyncio.Protocol):
    """Answers where topics are; a connection to it is not used for anything else."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._data = b""
        self._transport: asyncio.WriteTransport | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # TCP's can write

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 8:
            end = 4 + int.from_bytes(self._data[:4])
            if len(self._data) < end:
                return
            size = int.from_bytes(self._data[4:8])
            command = BaseCommand.FromString(self._data[8 : 8 + size])
            self._data = self._data[end:]
            answer = self._answer(command)
            if answer is not None and self._transport is not None:
                self._transport.write(frame(answer))

    def _answer(self, command: BaseCommand) -> BaseCommand | None:
        kind = command.type
        if kind == BaseCommand.CONNECT:
            answer = BaseCommand(type=BaseCommand.CONNECTED)
            answer.connected.server_version = "prototype of workers"
            answer.connected.protocol_version = command.connect.protocol_version
            answer.connected.max_message_size = 5 << 20
            return answer
        if kind == BaseCommand.PING:
            return BaseCommand(type=BaseCommand.PONG, pong=CommandPong())
        if kind == BaseCommand.PARTITIONED_METADATA:
            answer = BaseCommand(type=BaseCommand.PARTITIONED_METADATA_RESPONSE)
            partitions = answer.partitionMetadataResponse
            partitions.request_id = command.partitionMetadata.request_id
            partitions.response = CommandPartitionedTopicMetadataResponse.Success
            partitions.partitions = 0
            return answer
        if kind == BaseCommand.LOOKUP:
            task = asyncio.create_task(self._look_up(command.lookupTopic))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return None
        if self._transport is not None:  # the lookup serves no topics
            self._transport.close()
        return None

    async def _look_up(self, asked: CommandLookupTopic) -> None:
        """Have the worker take the topic's bundle, which it does when it is asked, and name it."""
        port = self._ports[worker_of(asked.topic, len(self._ports))]
        connection = await RawConnection.connect("127.0.0.1", port)
        await connection.lookup(asked.topic)
        connection.close()
        answer = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
        found = answer.lookupTopicResponse
        found.request_id = asked.request_id
        found.response = CommandLookupTopicResponse.Connect
        found.brokerServiceUrl = f"pulsar://127.0.0.1:{port}"
        found.authoritative = True
        if self._transport is not None:
            self._transport.write(frame(answer))


@asynccontextmanager
async def serving(ports: Sequence[int]) -> AsyncIterator[int]:
    """The lookup, for as long as the context is open; its port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: LookupConnection(ports), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def ask(lookup_port: int, topic: str) -> int:
    """The port of the worker that has a topic, by the protocol."""
    connection = await RawConnection.connect("127.0.0.1", lookup_port)
    command = BaseCommand(type=BaseCommand.LOOKUP)
    command.lookupTopic.topic = topic
    command.lookupTopic.request_id = connection.next_request_id()
    answer = await connection.request(command, BaseCommand.LOOKUP_RESPONSE)
    connection.close()
    return int(answer.lookupTopicResponse.brokerServiceUrl.rpartition(":")[2])


async def check(workers: Sequence[Target]) -> None:
    """Publish and receive through the lookup; each topic is at its worker, and at no other.

    Raises:
        RuntimeError: A message did not come back, or a topic is at another worker.
    """
    async with serving([worker.port for worker in workers]) as port:
        topics = [f"persistent://public/default/dealt-{number}" for number in range(PUBLISHED)]
        async with Client(f"pulsar://127.0.0.1:{port}") as client:
            for topic in topics:
                async with await client.subscribe(topic, "check") as consumer:
                    async with await client.create_producer(topic) as producer:
                        await producer.send(topic.encode())
                    message = await consumer.receive()
                    if message.data() != topic.encode():
                        raise RuntimeError(f"{topic}: {message.data()!r} came back")
                    await consumer.acknowledge(message)
    for number, worker in enumerate(workers):
        has = await asyncio.to_thread(_topics_of, worker)
        wanted = {each for each in topics if worker_of(each, len(workers)) == number}
        if has != wanted:
            raise RuntimeError(f"worker {number} has {sorted(has)}, not {sorted(wanted)}")


def _topics_of(worker: Target) -> set[str]:
    import urllib.request  # noqa: PLC0415 - for this alone

    url = f"http://127.0.0.1:{worker.web_port}/admin/v2/persistent/public/default"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return {each for each in json.load(answer) if "/dealt-" in each}


async def _one(load: str, workers: Sequence[Target], seconds: float) -> Figures:
    async with serving([worker.port for worker in workers]) as port:
        pids = [worker.pid for worker in workers if worker.pid is not None]
        return await LOADS[load](partial(ask, port), {"workers": pids}, seconds=seconds)


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prototypes.workers")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--directory", type=Path, default=Path("build"), help="for data")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(exist_ok=True)
    taken: dict[tuple[str, int], list[Figures]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="workers-", dir=arguments.directory) as name,
        ExitStack() as stack,
    ):
        groups: dict[int, list[Target]] = {}
        for count in arguments.workers:
            groups[count] = []
            for number in range(count):
                data = Path(name) / f"of-{count}" / f"worker-{number}"
                data.mkdir(parents=True)
                worker = start_ours(Path(name), data_dir=data)
                stack.callback(worker.stop)
                groups[count].append(worker)
            uvloop.run(check(groups[count]))
        for number in range(arguments.rounds + 1):
            for load in LOADS:
                counts = arguments.workers if number % 2 else arguments.workers[::-1]
                for count in counts:
                    figures = uvloop.run(_one(load, groups[count], arguments.seconds))
                    if number:  # the first round warms up
                        taken.setdefault((load, count), []).append(figures)
    rows: dict[str, object] = {"load_average": os.getloadavg()}
    for (load, count), rounds in taken.items():
        print(f"{count} workers, {load:<32} {describe(rounds)}")
        rows[f"{count}, {load}"] = [each.entries_per_second for each in rounds]
    path = RESULTS / time.strftime("workers-%Y%m%d-%H%M%S.json")
    path.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"written to {path}; load {os.getloadavg()}")


if __name__ == "__main__":
    main()
