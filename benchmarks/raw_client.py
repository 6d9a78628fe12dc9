"""A load generator for one connection: frames encoded beforehand, answers only counted.

It does as little as it can for each message, so that the figures are the broker's: SEND frames are
joined into blocks before the clock starts, and only the sizes of received frames are read.
It speaks the binary protocol with any Pulsar broker.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import struct
from collections.abc import Callable
from typing import cast

import crc32c

from pulsar_py.common.varint import varint, varints_in_row
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandPong,
    CommandSubscribe,
    MessageMetadata,
    SingleMessageMetadata,
)

_SIZE = struct.Struct(">I")
_UNSIGNED_MAX = 2**64 - 1

_FIRST_ID = 1 << 21
"""The sequence id with which messages at a rate begin: up to 2^28 ids have one length, and so have
their frames."""

_OTHER_FRAMES = frozenset(
    (
        BaseCommand.PING,
        BaseCommand.SEND_ERROR,
        BaseCommand.ERROR,
        BaseCommand.CLOSE_PRODUCER,
        BaseCommand.CLOSE_CONSUMER,
    )
)
"""What comes beside receipts and messages: a PING, or the news that no more will come."""


def frame(command: BaseCommand, rest: bytes = b"") -> bytes:
    """One frame: sizes, command, and what follows it."""
    data = command.SerializeToString()
    return struct.pack(">II", 4 + len(data) + len(rest), len(data)) + data + rest


def batch_entry(bodies: list[bytes]) -> bytes:
    """Checksum, metadata and payload of a batch."""
    metadata = MessageMetadata(
        producer_name="bench",
        sequence_id=0,
        publish_time=1_700_000_000_000,
        num_messages_in_batch=len(bodies),
    ).SerializeToString()
    parts: list[bytes] = []
    for body in bodies:
        single = SingleMessageMetadata(payload_size=len(body)).SerializeToString()
        parts += (_SIZE.pack(len(single)), single, body)
    return _checked(metadata, b"".join(parts))


def entry(body: bytes, *, key: str | None = None) -> bytes:
    """Checksum, metadata and payload of an unbatched message, as SEND carries them."""
    metadata = MessageMetadata(
        producer_name="bench", sequence_id=0, publish_time=1_700_000_000_000, partition_key=key
    ).SerializeToString()
    return _checked(metadata, body)


def _checked(metadata: bytes, body: bytes) -> bytes:
    checked = _SIZE.pack(len(metadata)) + metadata + body
    return b"\x0e\x01" + _SIZE.pack(crc32c.crc32c(checked)) + checked


def send_block(
    producer_id: int, first_sequence_id: int, count: int, stored: bytes, *, batch: int = 1
) -> bytes:
    """`count` SEND frames in one buffer, of so many messages each."""
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id = producer_id
    if batch > 1:
        command.send.num_messages = batch
    parts = []
    end = first_sequence_id + count * batch
    for sequence_id in range(first_sequence_id, end, batch):
        command.send.sequence_id = sequence_id
        if batch > 1:
            command.send.highest_sequence_id = sequence_id + batch - 1
        parts.append(frame(command, stored))
    return b"".join(parts)


class StampedSends:
    """SEND frames of one producer: sequence ids ascend, those of one write end with one stamp."""

    def __init__(self, producer_id: int, padding: bytes) -> None:
        stored = entry(padding + bytes(8))
        self._next_id = _FIRST_ID
        whole = send_block(producer_id, self._next_id, 1, stored)
        command, self._magic = whole[: -len(stored)], stored[:2]
        self._head = command[: -len(varint(self._next_id))]  # the id is the last field
        self._checked = stored[6:-8]
        self._checksum = crc32c.crc32c(self._checked)

    def frames(self, stamp: bytes, count: int) -> bytes:
        """The next `count` frames, at least one, with these 8 bytes at the end of each."""
        checksum = _SIZE.pack(crc32c.crc32c(stamp, self._checksum))
        after_id = b"".join((self._magic, checksum, self._checked, stamp))
        ids = varints_in_row(self._next_id, count)
        self._next_id += count
        return b"".join((self._head, (after_id + self._head).join(ids), after_id))


def chunked_block(producer_id: int, sequence_id: int, count: int, chunk_bytes: int) -> bytes:
    """One message in `count` chunks, as a SEND frame each, in one buffer."""
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id = producer_id
    command.send.sequence_id = sequence_id
    command.send.is_chunk = True
    metadata = MessageMetadata(
        producer_name="bench",
        sequence_id=sequence_id,
        publish_time=1_700_000_000_000,
        uuid=f"bench-{sequence_id}",
        num_chunks_from_msg=count,
        total_chunk_msg_size=count * chunk_bytes,
    )
    body = os.urandom(chunk_bytes)
    parts = []
    for chunk_id in range(count):
        metadata.chunk_id = chunk_id
        parts.append(frame(command, _checked(metadata.SerializeToString(), body)))
    return b"".join(parts)


class RawConnection(asyncio.Protocol):
    """A connection that does requests one by one, then counts frames as fast as it can."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.frames_count = 0
        self.bytes_count = 0
        self.on_frames: Callable[[int], None] | None = None
        self.on_frame: Callable[[memoryview], None] | None = None
        self.last_frame = b""
        self._rest = b""
        self._answers: asyncio.Queue[BaseCommand | None] = asyncio.Queue()
        self._counting = False
        self._request_id = 0
        self._is_closed = False
        self.failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Says why the broker serves it no more; not done as long as all is well."""
        self.is_writable = asyncio.Event()
        self.is_writable.set()

    @classmethod
    async def connect(
        cls, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> RawConnection:
        """Connect and shake hands."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, host, port, ssl=tls)
        command = BaseCommand(type=BaseCommand.CONNECT)
        command.connect.client_version = "pulsar_py-bench"
        command.connect.protocol_version = 20
        connection.write(frame(command))
        answer = await connection.answer()
        if answer.type != BaseCommand.CONNECTED:
            raise RuntimeError(f"no CONNECTED but {answer}")
        return connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are of no common class.
        self.transport.set_write_buffer_limits(high=4 * 1024 * 1024)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._is_closed:
            self._fail(f"the broker closed the connection ({error or 'without an error'})")

    def _fail(self, reason: str) -> None:
        """Note the first reason, and let go of who waits for an answer."""
        if not self.failed.done():
            self.failed.set_result(reason)
            self._answers.put_nowait(None)

    def raise_if_failed(self) -> None:
        """Tell that no more answers come.

        Raises:
            RuntimeError: The broker has closed the connection, or refused a message.
        """
        if self.failed.done():
            raise RuntimeError(self.failed.result())

    def pause_writing(self) -> None:
        self.is_writable.clear()

    def resume_writing(self) -> None:
        self.is_writable.set()

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.transport is not None
        self.transport.write(data)

    def close(self) -> None:
        """Drop the connection."""
        assert self.transport is not None
        self._is_closed = True
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        # Hot path: every row of the table.
        self.bytes_count += len(data)
        if self._rest:
            data = self._rest + data
        start, position, end, count = 0, 0, len(data), 0
        unpack, others = _SIZE.unpack_from, _OTHER_FRAMES
        view = memoryview(data)
        while position + 4 <= end:
            following = position + 4 + unpack(data, position)[0]
            if following > end:
                break
            count += 1
            if not self._counting:
                size = unpack(data, position + 4)[0]
                command = BaseCommand.FromString(data[position + 8 : position + 8 + size])
                count -= self._take(command)
            elif data[position + 9] in others:
                size = unpack(data, position + 4)[0]
                count -= self._take_other(
                    BaseCommand.FromString(data[position + 8 : position + 8 + size])
                )
            elif self.on_frame is not None:
                self.on_frame(view[position:following])
            start, position = position, following
        if count:
            self.last_frame = data[start:position]
        self._rest = data[position:]
        self.frames_count += count
        if count and self.on_frames is not None:
            self.on_frames(count)

    def _take(self, command: BaseCommand) -> int:
        if command.type == BaseCommand.PING:
            self.write(frame(BaseCommand(type=BaseCommand.PONG, pong=CommandPong())))
        elif command.type not in (BaseCommand.SEND_RECEIPT, BaseCommand.MESSAGE):
            self._answers.put_nowait(command)
        else:
            return 0
        return 1

    def _take_other(self, command: BaseCommand) -> int:
        """A frame that is no answer to a message; returns whether it must not be counted."""
        if command.type == BaseCommand.PING:
            return self._take(command)
        self._fail(f"the broker sent {' '.join(str(command).split())}")
        return 0

    async def answer(self) -> BaseCommand:
        """The next answer to a request.

        Raises:
            RuntimeError: None came in 30 s, or the connection was closed.
        """
        try:
            answer = await asyncio.wait_for(self._answers.get(), 30)
        except TimeoutError:
            raise RuntimeError("the broker did not answer within 30 s") from None
        if answer is None:
            self.raise_if_failed()
            raise AssertionError("the connection did not fail")
        return answer

    async def request(self, command: BaseCommand, expected: int) -> BaseCommand:
        """Send a command and take its answer."""
        self.write(frame(command))
        answer = await self.answer()
        if answer.type != expected:
            raise RuntimeError(f"{command} was answered with {answer}")
        return answer

    def next_request_id(self) -> int:
        """A fresh request id."""
        self._request_id += 1
        return self._request_id

    async def lookup(self, topic: str) -> None:
        """Settle who owns the topic."""
        command = BaseCommand(type=BaseCommand.LOOKUP)
        command.lookupTopic.topic = topic
        command.lookupTopic.request_id = self.next_request_id()
        await self.request(command, BaseCommand.LOOKUP_RESPONSE)

    async def create_producer(self, topic: str, producer_id: int) -> None:
        """Open a producer with a generated name."""
        await self.lookup(topic)
        command = BaseCommand(type=BaseCommand.PRODUCER)
        command.producer.topic = topic
        command.producer.producer_id = producer_id
        command.producer.request_id = self.next_request_id()
        await self.request(command, BaseCommand.PRODUCER_SUCCESS)

    async def subscribe(
        self,
        topic: str,
        subscription: str,
        consumer_id: int,
        *,
        from_earliest: bool = False,
        kind: CommandSubscribe.SubType.ValueType = CommandSubscribe.Exclusive,
    ) -> None:
        """Open a consumer; it gets nothing before `flow`."""
        await self.lookup(topic)
        command = BaseCommand(type=BaseCommand.SUBSCRIBE)
        subscribe = command.subscribe
        subscribe.topic = topic
        subscribe.subscription = subscription
        subscribe.subType = kind
        subscribe.consumer_id = consumer_id
        subscribe.request_id = self.next_request_id()
        if from_earliest:
            subscribe.initialPosition = CommandSubscribe.Earliest
        await self.request(command, BaseCommand.SUCCESS)

    def flow(self, consumer_id: int, permits: int) -> None:
        """Allow messages."""
        command = BaseCommand(type=BaseCommand.FLOW)
        command.flow.consumer_id = consumer_id
        command.flow.messagePermits = permits
        self.write(frame(command))

    def acknowledge_cumulatively(self, consumer_id: int, ledger_id: int, entry_id: int) -> None:
        """Acknowledge everything up to an entry, without a receipt."""
        command = BaseCommand(type=BaseCommand.ACK)
        command.ack.consumer_id = consumer_id
        command.ack.ack_type = command.ack.Cumulative
        command.ack.message_id.add(ledgerId=ledger_id, entryId=entry_id)
        self.write(frame(command))

    def start_counting(self) -> None:
        """From now on frames are only counted (and handed to `on_frame`, if set)."""
        self._counting = True
        self.frames_count = 0
