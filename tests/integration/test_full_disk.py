"""A broker on a disk that others have filled to the last byte: it starts, and what is there is read."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from tests.interop.broker_process import BrokerProcess
from tests.wire_client import Received, WireClient, body_of, send_frame

SIZE_MEGABYTES = 400
TOPIC = "persistent://public/default/full"
COUNT = 50
WAIT_SECONDS = 20.0


@pytest.fixture
def small_file_system(tmp_path: Path) -> Iterator[Path]:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MEGABYTES}m", "tmpfs", str(tmp_path)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system may be mounted here")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def fill_up(directory: Path) -> Path:
    """Leave not a byte."""
    ballast = directory / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    return ballast


@contextlib.asynccontextmanager
async def connected(broker: BrokerProcess) -> AsyncIterator[WireClient]:
    client = await WireClient.connect("127.0.0.1", broker.port)
    try:
        yield client
    finally:
        await client.close()


async def send(client: WireClient, count: int) -> list[BaseCommand.Type.ValueType]:
    """Publish, and say what each message was answered with."""
    answers: list[BaseCommand.Type.ValueType] = []
    client.on_receipt = lambda command: answers.append(command.type)
    client.writer.write(b"".join(send_frame(1, n, b"%08d" % n + bytes(1000)) for n in range(count)))
    async with asyncio.timeout(WAIT_SECONDS):
        while len(answers) < count:
            if not client.pushed.empty():
                answers.append(client.pushed.get_nowait().command.type)
            await asyncio.sleep(0.01)
    return answers


async def consume(client: WireClient, count: int) -> list[tuple[int, int]]:
    """Positions of the next messages, which are the first ones published, in order."""
    messages: list[Received] = []
    client.on_message = messages.append
    await client.subscribe(TOPIC, "sub")
    client.flow(1000)
    async with asyncio.timeout(WAIT_SECONDS):
        while len(messages) < count:
            await asyncio.sleep(0.01)
    assert [int(body_of(each.headers_and_payload)[:8]) for each in messages] == list(
        range(COUNT - count, COUNT)
    )
    ids = [each.command.message.message_id for each in messages]
    return [(each.ledgerId, each.entryId) for each in ids]


async def publishes(broker: BrokerProcess) -> bool:
    async with connected(broker) as client:
        await client.lookup(TOPIC)
        if (await client.create_producer(TOPIC)).type != BaseCommand.PRODUCER_SUCCESS:
            return False
        return await send(client, 1) == [BaseCommand.SEND_RECEIPT]


async def test_a_broker_starts_and_serves_what_is_there(small_file_system: Path) -> None:
    broker = BrokerProcess(small_file_system / "data", "--set", "journalMaxSizeMB=16")
    broker.start()
    try:
        async with connected(broker) as client:
            await client.lookup(TOPIC)
            await client.subscribe(TOPIC, "sub")
            await client.create_producer(TOPIC)
            assert set(await send(client, COUNT)) == {BaseCommand.SEND_RECEIPT}
        reserve = small_file_system / "data" / "ledgers" / "RESERVE"
        async with asyncio.timeout(WAIT_SECONDS):
            while not reserve.exists():
                await asyncio.sleep(0.1)
        broker.kill()
        ballast = fill_up(small_file_system)

        broker.start()
        async with connected(broker) as client:
            await client.lookup(TOPIC)
            ids = await consume(client, COUNT)
            client.acknowledge(ids[:10])
            assert not await publishes(broker)
            await asyncio.sleep(2.5)  # The rule: a cursor is written after two seconds at most.
        broker.kill()

        broker.start()
        async with connected(broker) as client:
            await client.lookup(TOPIC)
            await consume(client, COUNT - 10)
        ballast.unlink()
        async with asyncio.timeout(WAIT_SECONDS):
            while not await publishes(broker):
                await asyncio.sleep(0.2)
            while not reserve.exists():
                await asyncio.sleep(0.1)
    finally:
        broker.kill()
