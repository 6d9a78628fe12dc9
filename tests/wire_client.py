"""A small client of the binary protocol for tests: one coroutine per request, no cleverness.

It parses nothing it need not, so that tests can break the protocol on purpose. Commands that
belong to no request (MESSAGE, CLOSE_*, …) wait in `pushed` in the order they came.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import crc32c

from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandSubscribe,
    MessageMetadata,
)

REPLIES = {
    kind: BaseCommand.DESCRIPTOR.fields_by_number[kind].name
    for kind in (
        BaseCommand.PRODUCER_SUCCESS,
        BaseCommand.SUCCESS,
        BaseCommand.ERROR,
        BaseCommand.LOOKUP_RESPONSE,
        BaseCommand.ACK_RESPONSE,
        BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE,
    )
}


def encode(command: BaseCommand, rest: bytes = b"") -> bytes:
    """One frame."""
    data = command.SerializeToString()
    return struct.pack(">II", 4 + len(data) + len(rest), len(data)) + data + rest


def stored_entry(
    body: bytes, sequence_id: int = 0, producer_name: str = "test", **metadata: object
) -> bytes:
    """What follows the command in a SEND: checksum, metadata, body."""
    header = MessageMetadata(
        producer_name=producer_name,
        sequence_id=sequence_id,
        publish_time=1_700_000_000_000,
        **metadata,
    ).SerializeToString()
    checked = struct.pack(">I", len(header)) + header + body
    return b"\x0e\x01" + struct.pack(">I", crc32c.crc32c(checked)) + checked


def send_frame(
    producer_id: int, sequence_id: int, body: bytes, producer_name: str = "test"
) -> bytes:
    """A SEND; with deduplication the name is that of its producer, as real clients write it."""
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id = producer_id
    command.send.sequence_id = sequence_id
    return encode(command, stored_entry(body, sequence_id, producer_name))


def body_of(headers_and_payload: bytes) -> bytes:
    """The payload of an unbatched, uncompressed entry."""
    size = struct.unpack_from(">I", headers_and_payload, 6)[0]
    return headers_and_payload[10 + size :]


@dataclass
class Received:
    """One frame that came."""

    command: BaseCommand
    headers_and_payload: bytes


@dataclass
class WireClient:
    """One connection, shaken hands."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    pushed: asyncio.Queue[Received] = field(default_factory=asyncio.Queue)
    on_receipt: Callable[[BaseCommand], None] | None = None
    on_message: Callable[[Received], None] | None = None
    on_ack_response: Callable[[int], None] | None = None
    _waiting: dict[int, asyncio.Future[BaseCommand]] = field(default_factory=dict)
    _task: asyncio.Task[None] | None = None
    _request_id: int = 0

    @classmethod
    async def connect(cls, host: str, port: int, protocol_version: int = 21) -> WireClient:
        """Open a connection and shake hands."""
        reader, writer = await asyncio.open_connection(host, port, limit=1 << 24)
        client = cls(reader, writer)
        command = BaseCommand(type=BaseCommand.CONNECT)
        command.connect.client_version = "test"
        command.connect.protocol_version = protocol_version
        writer.write(encode(command))
        answer = await client._read()
        assert answer.command.type == BaseCommand.CONNECTED
        client._task = asyncio.get_running_loop().create_task(client._read_all())
        return client

    async def _read(self) -> Received:
        (total,) = struct.unpack(">I", await self.reader.readexactly(4))
        data = await self.reader.readexactly(total)
        (size,) = struct.unpack_from(">I", data)
        return Received(BaseCommand.FromString(data[4 : 4 + size]), data[4 + size :])

    async def _read_all(self) -> None:
        try:
            while True:
                self._take(await self._read())
        except (asyncio.IncompleteReadError, ConnectionError):
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(ConnectionResetError("closed by the broker"))

    def _take(self, received: Received) -> None:
        command = received.command
        if command.type == BaseCommand.SEND_RECEIPT and self.on_receipt is not None:
            self.on_receipt(command)
        elif command.type == BaseCommand.MESSAGE and self.on_message is not None:
            self.on_message(received)
        elif command.type == BaseCommand.PING:
            self.writer.write(encode(BaseCommand(type=BaseCommand.PONG, pong={})))
        elif command.type in REPLIES:
            request_id = getattr(command, REPLIES[command.type]).request_id
            future = self._waiting.pop(request_id, None)
            if future is not None:
                future.set_result(command)
            elif command.type == BaseCommand.ACK_RESPONSE and self.on_ack_response is not None:
                self.on_ack_response(request_id)
            else:
                self.pushed.put_nowait(received)
        else:
            self.pushed.put_nowait(received)

    def next_request_id(self) -> int:
        """A fresh request id."""
        self._request_id += 1
        return self._request_id

    async def request(self, command: BaseCommand, request_id: int) -> BaseCommand:
        """Send a command; the answer with its id."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        self.writer.write(encode(command))
        return await asyncio.wait_for(future, 120)

    async def lookup(self, topic: str) -> None:
        """Settle the topic's owner."""
        command = BaseCommand(type=BaseCommand.LOOKUP)
        command.lookupTopic.topic = topic
        command.lookupTopic.request_id = self.next_request_id()
        await self.request(command, self._request_id)

    async def create_producer(self, topic: str, producer_id: int = 1) -> BaseCommand:
        """A producer with a generated name."""
        command = BaseCommand(type=BaseCommand.PRODUCER)
        command.producer.topic = topic
        command.producer.producer_id = producer_id
        command.producer.request_id = self.next_request_id()
        return await self.request(command, self._request_id)

    async def subscribe(
        self,
        topic: str,
        subscription: str,
        kind: CommandSubscribe.SubType.ValueType = CommandSubscribe.Exclusive,
        consumer_id: int = 1,
        *,
        durable: bool = True,
        name: str = "",
    ) -> BaseCommand:
        """A consumer from the earliest message."""
        command = BaseCommand(type=BaseCommand.SUBSCRIBE)
        command.subscribe.topic = topic
        command.subscribe.subscription = subscription
        command.subscribe.subType = kind
        command.subscribe.consumer_id = consumer_id
        command.subscribe.durable = durable
        command.subscribe.consumer_name = name
        command.subscribe.initialPosition = CommandSubscribe.Earliest
        command.subscribe.request_id = self.next_request_id()
        return await self.request(command, self._request_id)

    def flow(self, permits: int, consumer_id: int = 1) -> None:
        """Allow messages."""
        command = BaseCommand(type=BaseCommand.FLOW)
        command.flow.consumer_id = consumer_id
        command.flow.messagePermits = permits
        self.writer.write(encode(command))

    def acknowledge(self, ids: list[tuple[int, int]], consumer_id: int = 1) -> int:
        """Acknowledge entries one by one; the request id of the ACK_RESPONSE."""
        command = BaseCommand(type=BaseCommand.ACK)
        command.ack.consumer_id = consumer_id
        command.ack.ack_type = CommandAck.Individual
        command.ack.request_id = self.next_request_id()
        for ledger_id, entry_id in ids:
            command.ack.message_id.add(ledgerId=ledger_id, entryId=entry_id)
        self.writer.write(encode(command))
        return self._request_id

    async def close(self) -> None:
        """Drop the connection; no task and no open socket is left, whatever is still to be sent."""
        if self._task is not None:
            if self._task.done() and not self._task.cancelled():
                self._task.result()
            self._task.cancel()
            await asyncio.wait([self._task])
        await drop(self.writer)


async def drop(writer: asyncio.StreamWriter) -> None:
    """Close a connection at once, and wait until it is."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
