"""Real data directories for tests: filled by a broker over the wire, and read back the same way."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe
from pulsar_py.standalone import Broker
from tests.wire_client import Received, WireClient, body_of, send_frame

TOPICS = ("persistent://public/default/one", "persistent://public/default/two")
BEFORE, BEHIND = 30, 10
"""Messages of each topic before the checkpoint, and behind it, in the journal alone."""
SETTINGS = {"journalMaxSizeMB": 1}
END = b"end"
Id = tuple[int, int]


def body(topic: str, number: int) -> bytes:
    """What message `number` of a topic says."""
    return f"{topic} {number} ".encode() + b"." * 200


async def fill(data: Path, killed: Path | None = None) -> None:
    """Two topics with a subscription each that has every second message acknowledged.

    `killed` gets the directory as a broker leaves it that is killed.
    """
    async with Broker(data_dir=data, config=SETTINGS) as broker:
        client = await connected(broker)
        for number, topic in enumerate(TOPICS, start=1):
            await client.lookup(topic)
            await client.create_producer(topic, number)
            ids = await publish(client, topic, number, range(BEFORE))
            await client.subscribe(topic, "sub", CommandSubscribe.Shared, number)
            await acknowledged(client, ids[::2], number)
        await broker.service.ledger_store.flush()  # type: ignore[attr-defined]
        for number, topic in enumerate(TOPICS, start=1):
            await publish(client, topic, number, range(BEFORE, BEFORE + BEHIND))
        if killed is not None:
            shutil.copytree(data, killed)
        await client.close()


async def connected(broker: Broker) -> WireClient:
    """A client of it."""
    return await WireClient.connect("127.0.0.1", int(broker.service_url.rpartition(":")[2]))


async def publish(
    client: WireClient, topic: str, producer_id: int, numbers: Sequence[int]
) -> list[Id]:
    """Publish messages; their ids once all are confirmed."""
    ids: list[Id] = []
    done = asyncio.Event()

    def on_receipt(command: BaseCommand) -> None:
        message_id = command.send_receipt.message_id
        ids.append((message_id.ledgerId, message_id.entryId))
        if len(ids) == len(numbers):
            done.set()

    client.on_receipt = on_receipt
    for number in numbers:
        client.writer.write(send_frame(producer_id, number, body(topic, number)))
    await asyncio.wait_for(done.wait(), 60)
    return ids


async def acknowledged(client: WireClient, ids: list[Id], consumer_id: int) -> None:
    """Acknowledge messages, and wait for the answer."""
    done = asyncio.Event()
    client.on_ack_response = lambda _: done.set()
    client.acknowledge(ids, consumer_id)
    await asyncio.wait_for(done.wait(), 60)


async def received(broker: Broker, topic: str, subscription: str) -> list[bytes]:
    """What a subscription gets before the first message that says it is the end; adds one."""
    client = await connected(broker)
    bodies: list[bytes] = []
    done = asyncio.Event()

    def on_message(message: Received) -> None:
        bodies.append(body_of(message.headers_and_payload))
        if bodies[-1] == END:
            done.set()

    client.on_message = on_message
    await client.lookup(topic)
    await client.subscribe(topic, subscription, CommandSubscribe.Shared)
    await client.create_producer(topic)
    client.flow(1000)
    client.writer.write(send_frame(1, 0, END))
    await asyncio.wait_for(done.wait(), 60)
    await client.close()
    return bodies[: bodies.index(END)]
