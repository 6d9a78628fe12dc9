"""A broker in virtual time, and clients of the wire that write down what they sent and got."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.app import AdminApp
from pulsar_py.admin.http_messages import whole
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandSubscribe,
    MessageMetadata,
)
from pulsar_py.standalone import Broker
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.sealing import unsealed
from tests.unit.admin.metrics.metric_pages import Labels, page_of, page_text, parsed
from tests.wire_client import Received, WireClient, encode, stored_entry

Json = dict[str, Any]

WINDOW: Final = 60
TOPIC: Final = "persistent://public/default/known"
PATH: Final = "/admin/v2/persistent/public/default/known"


@dataclass
class Publisher:
    """A producer, and what it has sent."""

    name: str
    client: WireClient
    sizes: list[int] = field(default_factory=list)
    messages: int = 0
    rolled: tuple[int, int] = (0, 0)

    async def open(self, topic: str = TOPIC) -> None:
        command = BaseCommand(type=BaseCommand.PRODUCER)
        command.producer.topic = topic
        command.producer.producer_id = 1
        command.producer.producer_name = self.name
        command.producer.request_id = self.client.next_request_id()
        answer = await self.client.request(command, command.producer.request_id)
        assert answer.type == BaseCommand.PRODUCER_SUCCESS

    def send(self, body: bytes, messages: int = 1, *, is_chunk: bool = False, **meta: Any) -> None:
        number = len(self.sizes)
        entry = stored_entry(body, number, **meta)
        command = BaseCommand(type=BaseCommand.SEND)
        command.send.producer_id = 1
        command.send.sequence_id = number
        command.send.num_messages = messages
        command.send.is_chunk = is_chunk
        self.client.writer.write(encode(command, entry))
        self.sizes.append(len(entry))
        self.messages += messages

    def rates(self) -> tuple[float, float]:
        """Messages and bytes a second since the last call, which was a window ago."""
        before, self.rolled = self.rolled, (self.messages, sum(self.sizes))
        return (self.rolled[0] - before[0]) / WINDOW, (self.rolled[1] - before[1]) / WINDOW


@dataclass
class Taken:
    """One entry that a consumer got."""

    key: tuple[int, int]
    messages: int
    size: int
    is_chunk: bool


@dataclass
class Reader:
    """A consumer, and what it has got and done."""

    name: str
    client: WireClient
    granted: int = 0
    taken: list[Taken] = field(default_factory=list)
    acked: int = 0  # messages
    given_back: int = 0

    async def open(
        self, topic: str, subscription: str, kind: CommandSubscribe.SubType.ValueType
    ) -> None:
        self.client.on_message = self._on_message
        answer = await self.client.subscribe(topic, subscription, kind, name=self.name)
        assert answer.type == BaseCommand.SUCCESS, answer

    def _on_message(self, received: Received) -> None:
        message = received.command.message
        data = received.headers_and_payload
        size = int.from_bytes(data[6:10], "big")
        metadata = MessageMetadata.FromString(data[10 : 10 + size])
        left = [f"{word & (2**64 - 1):b}".count("1") for word in message.ack_set]
        count = sum(left) if left else metadata.num_messages_in_batch
        key = (message.message_id.ledgerId, message.message_id.entryId)
        self.taken.append(Taken(key, count, len(data), metadata.HasField("uuid")))

    def flow(self, permits: int) -> None:
        self.granted += permits
        self.client.flow(permits)

    def ack(self, entries: Iterable[Taken]) -> None:
        entries = list(entries)
        self.client.acknowledge([each.key for each in entries])
        self.acked += sum(each.messages for each in entries)

    def ack_part(self, entry: Taken, acked: int) -> None:
        """Acknowledge the first messages of a batch."""
        command = BaseCommand(type=BaseCommand.ACK)
        command.ack.consumer_id = 1
        command.ack.ack_type = CommandAck.Individual
        left = (1 << entry.messages) - (1 << acked)
        ledger, number = entry.key
        command.ack.message_id.add(
            ledgerId=ledger, entryId=number, ack_set=[left], batch_size=entry.messages
        )
        self.client.writer.write(encode(command))
        self.acked += acked

    def ack_up_to(self, entry: Taken) -> None:
        command = BaseCommand(type=BaseCommand.ACK)
        command.ack.consumer_id = 1
        command.ack.ack_type = CommandAck.Cumulative
        command.ack.message_id.add(ledgerId=entry.key[0], entryId=entry.key[1])
        self.acked += 1  # one command counts once
        self.client.writer.write(encode(command))

    def give_back(self, entries: Iterable[Taken]) -> None:
        command = BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
        ids = command.redeliverUnacknowledgedMessages
        ids.consumer_id = 1
        for each in entries:
            ids.message_ids.add(ledgerId=each.key[0], entryId=each.key[1])
            self.given_back += each.messages
        self.client.writer.write(encode(command))

    @property
    def messages(self) -> int:
        return sum(each.messages for each in self.taken)

    @property
    def size(self) -> int:
        return sum(each.size for each in self.taken)


class House:
    """A broker in virtual time, its administration, and connections to it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.app = AdminApp(list(all_routes(broker.service)))
        self.clients: list[WireClient] = []
        self.page = page_of(broker.service)

    async def client(self) -> WireClient:
        client = await WireClient.connect("broker", 6650)
        self.clients.append(client)
        return client

    async def publisher(self, name: str, topic: str = TOPIC) -> Publisher:
        publisher = Publisher(name, await self.client())
        await publisher.client.lookup(topic)
        await publisher.open(topic)
        return publisher

    async def reader(
        self,
        subscription: str,
        kind: CommandSubscribe.SubType.ValueType,
        topic: str = TOPIC,
        name: str = "",
    ) -> Reader:
        reader = Reader(name or f"reader-{len(self.clients)}", await self.client())
        await reader.client.lookup(topic)
        await reader.open(topic, subscription, kind)
        return reader

    async def call(self, method: str, path: str, body: bytes = b"") -> Any:
        headers = {"content-type": "application/json"} if body else {}
        response = await whole(await self.app.handle(method, path, headers, body))
        assert response.status in {200, 204}, (path, response.body)
        return json.loads(response.body) if response.body else None

    async def metrics(self) -> dict[str, dict[Labels, float]]:
        with unsealed():  # figures of the process are read
            return parsed(await page_text(self.broker.service, self.page))


@asynccontextmanager
async def house(**config: Any) -> AsyncIterator[House]:
    broker = Broker(
        config=config,
        host="broker",
        port=6650,
        web_port=8080,
        clock=VirtualClock(),
        chance=Random(1),
    )
    async with broker:
        found = House(broker)
        try:
            yield found
        finally:
            for client in found.clients:
                await client.close()


SHARED, FAILOVER = CommandSubscribe.Shared, CommandSubscribe.Failover
EXCLUSIVE, KEY_SHARED = CommandSubscribe.Exclusive, CommandSubscribe.Key_Shared
