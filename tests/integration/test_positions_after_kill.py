"""Where a subscription was moved to is there after `kill -9`, once the move was answered.

Each subscription is moved in another way, all at about the same time, and the broker is killed at
the last answer: what only waits for its turn to be written is not there afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck
from tests.integration.transcripts.rest import call
from tests.interop.broker_process import BrokerProcess
from tests.wire_client import WireClient, send_frame

TOPIC = "persistent://public/default/moved"
REST = "/admin/v2/persistent/public/default/moved"
ENTRIES_COUNT = 20
FIRST_COUNT = 5
"""Entries that every subscription acknowledges before, with a receipt."""

Entry = tuple[int, int]


class Moving:
    """A broker, a connection, and the entries of the topic."""

    def __init__(self, broker: BrokerProcess, client: WireClient) -> None:
        self.broker = broker
        self.client = client
        self.entries: list[Entry] = []
        self.ids = {name: number for number, name in enumerate(MOVES, 1)}  # of consumers

    async def rest(self, method: str, path: str, body: object = None) -> object:
        status, answer = await call("127.0.0.1", self.broker.web_port, method, REST + path, body)
        assert status < 300, (path, status, answer)
        return answer

    async def publish(self) -> None:
        receipts: asyncio.Queue[Entry] = asyncio.Queue()
        self.client.on_receipt = lambda command: receipts.put_nowait(
            (command.send_receipt.message_id.ledgerId, command.send_receipt.message_id.entryId)
        )
        await self.client.create_producer(TOPIC)
        for number in range(ENTRIES_COUNT):
            self.client.writer.write(send_frame(1, number, b"m"))
        self.entries = [await receipts.get() for _ in range(ENTRIES_COUNT)]

    async def acknowledge(self, name: str, entries: list[Entry], *, up_to: bool = False) -> None:
        command = BaseCommand(type=BaseCommand.ACK)
        command.ack.consumer_id = self.ids[name]
        command.ack.ack_type = CommandAck.Cumulative if up_to else CommandAck.Individual
        command.ack.request_id = request_id = self.client.next_request_id()
        for ledger_id, entry_id in entries:
            command.ack.message_id.add(ledgerId=ledger_id, entryId=entry_id)
        answer = await self.client.request(command, request_id)
        assert not answer.ackResponse.HasField("error"), answer

    async def seek(self, name: str, *, entry: Entry | None = None, time_millis: int = 0) -> None:
        command = BaseCommand(type=BaseCommand.SEEK)
        command.seek.consumer_id = self.ids[name]
        command.seek.request_id = request_id = self.client.next_request_id()
        if entry is None:
            command.seek.message_publish_time = time_millis
        else:
            command.seek.message_id.ledgerId, command.seek.message_id.entryId = entry
        answer = await self.client.request(command, request_id)
        assert answer.type == BaseCommand.SUCCESS, answer

    async def backlogs(self) -> dict[str, int]:
        stats = await self.rest("GET", "/stats")
        assert isinstance(stats, dict)
        return {name: stats["subscriptions"][name]["msgBacklog"] for name in MOVES}


def position(moving: Moving, place: int) -> dict[str, int]:
    ledger_id, entry_id = moving.entries[place]
    return {"ledgerId": ledger_id, "entryId": entry_id, "partitionIndex": -1}


async def rest_on(moving: Moving, name: str, path: str, body: object = None) -> None:
    await moving.rest("POST", f"/subscription/{name}/{path}", body)


MOVES: dict[str, tuple[Callable[[Moving, str], Awaitable[None]], int]] = {
    "seek": (lambda m, name: m.seek(name, entry=m.entries[12]), 8),
    "seek-back": (lambda m, name: m.seek(name, entry=m.entries[2]), 18),
    "seek-to-time": (lambda m, name: m.seek(name, time_millis=1), 20),
    "skip": (lambda m, name: rest_on(m, name, "skip/3"), 12),
    "clear": (lambda m, name: rest_on(m, name, "skip_all"), 0),
    "reset": (lambda m, name: rest_on(m, name, "resetcursor", position(m, 16)), 4),
    "reset-to-time": (lambda m, name: rest_on(m, name, "resetcursor/1"), 20),
    "expire": (lambda m, name: rest_on(m, name, "expireMessages", position(m, 9)), 10),
    "individually": (lambda m, name: m.acknowledge(name, m.entries[7:10]), 12),
    "cumulatively": (lambda m, name: m.acknowledge(name, m.entries[10:11], up_to=True), 9),
}
"""By subscription: how it is moved, and the backlog after it."""


async def move_all(broker: BrokerProcess) -> None:
    """Move them, and kill the broker at the last answer."""
    client = await WireClient.connect("127.0.0.1", broker.port)
    moving = Moving(broker, client)
    await client.lookup(TOPIC)
    for name, number in moving.ids.items():
        await client.subscribe(TOPIC, name, consumer_id=number)
    await moving.publish()
    for name in MOVES:
        await moving.acknowledge(name, moving.entries[:FIRST_COUNT])
    assert set((await moving.backlogs()).values()) == {ENTRIES_COUNT - FIRST_COUNT}
    await asyncio.gather(*(move(moving, name) for name, (move, _) in MOVES.items()))
    broker.kill()
    await client.close()


def test_moves_that_were_answered_outlive_a_kill(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        asyncio.run(move_all(broker))
        broker.start()

        async def look() -> None:
            client = await WireClient.connect("127.0.0.1", broker.port)
            await client.lookup(TOPIC)
            await client.create_producer(TOPIC)  # loads the topic
            moving = Moving(broker, client)
            expected = {name: backlog for name, (_, backlog) in MOVES.items()}
            assert await moving.backlogs() == expected
            await client.close()

        asyncio.run(look())
