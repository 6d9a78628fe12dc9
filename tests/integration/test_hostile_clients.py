"""What bad clients do costs bounded memory, and nobody else notices.

The broker runs as a process. While thousands of idle and half-open connections, byte-a-second
writers, a consumer that never reads and fifty thousand producers are there, another client
publishes and receives within 200 ms; twenty thousand mutated frames disturb nobody.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe
from tests.interop.broker_process import BrokerProcess
from tests.wire_client import WireClient, encode, send_frame

IDLE, HALF_OPEN, SLOW, PRODUCERS = 5_000, 500, 200, 50_000
UNREAD_BYTES = 200 << 20
MUTATED_FRAMES = 20_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as process:
        yield process


def resident_megabytes(broker: BrokerProcess) -> float:
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


class Probe:
    """The good client: publishes a message and waits until it has come back."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.came = asyncio.Event()
        self.number = 0
        client.on_message = lambda _: self.came.set()
        client.on_receipt = lambda _: None

    @classmethod
    async def open(cls, broker: BrokerProcess) -> Probe:
        client = await WireClient.connect("127.0.0.1", broker.port)
        topic = "persistent://public/default/probe"
        await client.lookup(topic)
        await client.create_producer(topic)
        await client.subscribe(topic, "probe")
        client.flow(1_000_000)
        return cls(client)

    async def round_trip_millis(self) -> float:
        self.came.clear()
        self.number += 1
        start = time.perf_counter()
        self.client.writer.write(send_frame(1, self.number, b"probe"))
        await asyncio.wait_for(self.came.wait(), 20)
        return (time.perf_counter() - start) * 1e3

    async def worst_of(self, count: int) -> float:
        return max([await self.round_trip_millis() for _ in range(count)])


async def open_idle(broker: BrokerProcess, count: int) -> list[asyncio.StreamWriter]:
    command = BaseCommand(type=BaseCommand.CONNECT)
    command.connect.client_version = "idle"
    command.connect.protocol_version = 21
    writers = []
    for _ in range(count // 100):
        opened = await asyncio.gather(
            *(asyncio.open_connection("127.0.0.1", broker.port, limit=1024) for _ in range(100))
        )
        for reader, writer in opened:
            writer.write(encode(command))
            await reader.readexactly(4)
            writers.append(writer)
    return writers


async def trickle(broker: BrokerProcess) -> None:
    """Sends a valid CONNECT at one byte a second."""
    _, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    command = BaseCommand(type=BaseCommand.CONNECT)
    command.connect.client_version = "slow"
    try:
        for byte in encode(command):
            writer.write(bytes([byte]))
            await asyncio.sleep(1.0)
    except (ConnectionError, asyncio.CancelledError):
        writer.close()


async def fill_and_never_read(broker: BrokerProcess) -> WireClient:
    """A consumer with endless permits whose socket nobody reads, and its backlog."""
    topic = "persistent://public/default/unread"
    publishing = await WireClient.connect("127.0.0.1", broker.port)
    await publishing.lookup(topic)
    consuming = await WireClient.connect("127.0.0.1", broker.port)
    await consuming.subscribe(topic, "never", CommandSubscribe.Exclusive)
    await publishing.create_producer(topic)
    assert consuming._task is not None
    consuming._task.cancel()
    consuming.flow(1_000_000)
    receipts = 0

    def on_receipt(_: BaseCommand) -> None:
        nonlocal receipts
        receipts += 1

    publishing.on_receipt = on_receipt
    body = random.Random(1).randbytes(64 * 1024)
    total = UNREAD_BYTES // len(body)
    for number in range(total):
        publishing.writer.write(send_frame(1, number, body))
        await publishing.writer.drain()
        while number - receipts > 100:
            await asyncio.sleep(0.001)
    while receipts < total:
        await asyncio.sleep(0.01)
    await publishing.close()
    return consuming


async def open_producers(broker: BrokerProcess, count: int) -> list[WireClient]:
    clients = []
    for number in range(10):
        client = await WireClient.connect("127.0.0.1", broker.port)
        topic = f"persistent://public/default/many-{number}"
        await client.lookup(topic)
        for first in range(0, count // 10, 500):
            await asyncio.gather(
                *(client.create_producer(topic, first + index) for index in range(500))
            )
        clients.append(client)
    return clients


async def test_a_crowd_of_bad_clients_costs_little(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = await Probe.open(broker)
    await probe.worst_of(20)
    before = resident_megabytes(broker)
    idle = await open_idle(broker, IDLE)
    half_open = [
        (await asyncio.open_connection("127.0.0.1", broker.port))[1] for _ in range(HALF_OPEN)
    ]
    slow = [asyncio.get_running_loop().create_task(trickle(broker)) for _ in range(SLOW)]
    unread = await fill_and_never_read(broker)
    producers = await open_producers(broker, PRODUCERS)

    worst = await probe.worst_of(100)
    grown = resident_megabytes(broker) - before

    with capsys.disabled():
        print(f"\nworst round trip {worst:.0f} ms, memory grew by {grown:.0f} MB")
    for task in slow:
        task.cancel()
    await asyncio.wait(slow)
    for writer in [*idle, *half_open]:
        writer.transport.abort()
    for client in [*producers, unread, probe.client]:
        await client.close()
    assert worst < 200
    assert grown <= 150


def mutate(frame: bytes, chance: random.Random) -> bytes:
    data = bytearray(frame)
    for _ in range(chance.randrange(1, 4)):
        kind = chance.randrange(4)
        at = chance.randrange(len(data))
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at : at + chance.randrange(1, 9)]
        elif kind == 2:
            data[at:at] = chance.randbytes(chance.randrange(1, 9))
        else:
            data[at] = chance.randrange(256)
        if not data:
            data = bytearray(frame)
    return bytes(data)


def sample_frames() -> list[bytes]:
    """One frame of each command that a client sends, with plausible content."""
    frames = [send_frame(1, 1, b"body" * 20)]
    topic = "persistent://public/default/mutated"
    for name, fields in {
        "LOOKUP": {"topic": topic, "request_id": 1},
        "PARTITIONED_METADATA": {"topic": topic, "request_id": 2},
        "PRODUCER": {"topic": topic, "producer_id": 2, "request_id": 3},
        "SUBSCRIBE": {
            "topic": topic, "subscription": "s", "subType": 1, "consumer_id": 1, "request_id": 4,
        },
        "FLOW": {"consumer_id": 1, "messagePermits": 10},
        "UNSUBSCRIBE": {"consumer_id": 1, "request_id": 5},
        "CLOSE_CONSUMER": {"consumer_id": 1, "request_id": 6},
        "GET_TOPICS_OF_NAMESPACE": {"namespace": "public/default", "request_id": 7},
        "SEEK": {"consumer_id": 1, "request_id": 8, "message_publish_time": 5},
    }.items():  # fmt: skip
        command = BaseCommand(type=BaseCommand.Type.Value(name))
        number = command.type
        descriptor = BaseCommand.DESCRIPTOR.fields_by_number[number]
        part = getattr(command, descriptor.name)
        for key, value in fields.items():
            setattr(part, key, value)
        frames.append(encode(command))
    return frames


async def test_mutated_frames_disturb_nobody(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(11)
    probe = await Probe.open(broker)
    await probe.worst_of(20)
    before = resident_megabytes(broker)
    frames = sample_frames()
    connected = BaseCommand(type=BaseCommand.CONNECT)
    connected.connect.client_version = "mutant"
    connected.connect.protocol_version = 21
    sent = closed = 0
    worst = 0.0

    while sent < MUTATED_FRAMES:
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        writer.write(encode(connected))
        await reader.readexactly(4)
        for _ in range(10):
            writer.write(mutate(chance.choice(frames), chance))
            sent += 1
        if sent % 500 == 0:
            worst = max(worst, await probe.round_trip_millis())
        try:
            await writer.drain()
        except ConnectionError:
            closed += 1
        writer.transport.abort()

    await asyncio.sleep(0.5)
    worst = max(worst, await probe.worst_of(20))
    grown = resident_megabytes(broker) - before
    with capsys.disabled():
        print(f"\n{sent} mutated frames: worst round trip {worst:.0f} ms, grew by {grown:.0f} MB")
    await probe.client.close()
    assert worst < 200
    assert grown <= 100


async def test_frames_that_lie_about_their_size_close_only_their_connection(
    broker: BrokerProcess,
) -> None:
    probe = await Probe.open(broker)
    for raw in (
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x04\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        writer.write(raw)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()

    assert await probe.worst_of(10) < 200
    await probe.client.close()
