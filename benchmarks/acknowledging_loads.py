"""The loads that acknowledge each message by a command of its own, with receipts or without."""

from __future__ import annotations

import asyncio
import random
import struct
import time
from typing import Final

from benchmarks.loads import BLOCK, Figures, Publisher, Subscriber, fresh_topic, until
from benchmarks.raw_client import RawConnection, frame
from benchmarks.targets import Target
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe, MessageIdData

_ACK_RESPONSE_START: Final = bytes((1 << 3, BaseCommand.ACK_RESPONSE))  # of a command: its type
_HOLES_A_COMMAND: Final = 1000
_SHUFFLED_COUNT: Final = 50
_CHANCE: Final = random.Random(1)


def _message_id(data: memoryview) -> MessageIdData:
    """Of a MESSAGE's frame."""
    size = struct.unpack_from(">I", data, 4)[0]
    return BaseCommand.FromString(bytes(data[8 : 8 + size])).message.message_id


class Acknowledger(Subscriber):
    """Acknowledges each message by a command of its own, with a receipt or without."""

    def __init__(
        self, connection: RawConnection, *, asks_for_receipts: bool, shuffled_count: int = 1
    ) -> None:
        """Of each `shuffled_count` messages in a row the order is one of chance."""
        super().__init__(connection)
        self.acknowledged_count = 0  # with receipts: those that came
        self._asks_for_receipts = asks_for_receipts
        self._shuffled_count = shuffled_count
        self._waiting: list[bytes] = []  # commands for messages that were received

    def start(self) -> None:
        """Open the tap."""
        self.connection.start_counting()
        self.connection.on_frame = self._on_frame
        self.connection.flow(1, self._queue)

    def _on_frame(self, data: memoryview) -> None:
        if data[8:10] == _ACK_RESPONSE_START:
            self.acknowledged_count += 1
            return
        answer = BaseCommand(type=BaseCommand.ACK)
        answer.ack.consumer_id = 1
        answer.ack.ack_type = answer.ack.Individual
        answer.ack.message_id.add().CopyFrom(_message_id(data))
        self.received_count += 1
        if self._asks_for_receipts:
            answer.ack.request_id = self.received_count
        self._waiting.append(frame(answer))
        if len(self._waiting) == self._shuffled_count:
            self._send()
        self._not_flowed += 1
        if self._not_flowed >= self._queue // 2:
            self.connection.flow(1, self._not_flowed)
            self._not_flowed = 0

    def _send(self) -> None:
        if self._shuffled_count > 1:
            _CHANCE.shuffle(self._waiting)
        for command in self._waiting:
            self.connection.write(command)
        if not self._asks_for_receipts:
            self.acknowledged_count += len(self._waiting)
        self._waiting.clear()


async def acknowledge(
    target: Target, *, asks_for_receipts: bool, count: int = 30_000, size_bytes: int = 100
) -> Figures:
    """A Shared subscription takes a backlog and acknowledges each message by itself."""
    topic = fresh_topic()
    consuming = await _subscribed(target, topic)
    await _publish_backlog(target, topic, count // BLOCK * BLOCK, size_bytes)
    return await _acknowledge(
        target,
        Acknowledger(consuming, asks_for_receipts=asks_for_receipts),
        count // BLOCK * BLOCK,
    )


async def with_holes_acknowledged(target: Target, holes_count: int) -> str:
    """A topic, whose subscription has acknowledged every second entry but the first.

    The broker must keep all of them in one ledger.
    """
    topic = fresh_topic()
    consuming = await _subscribed(target, topic)
    await _publish_backlog(target, topic, 2 * holes_count // BLOCK * BLOCK, 16)
    ledger_id = (await _one_message(target, consuming)).ledgerId
    answers: list[int] = []
    consuming.on_frame = lambda data: answers.append(len(data))
    for start in range(1, 2 * holes_count, 2 * _HOLES_A_COMMAND):
        command = BaseCommand(type=BaseCommand.ACK)
        command.ack.consumer_id = 1
        command.ack.ack_type = command.ack.Individual
        for entry_id in range(start, min(start + 2 * _HOLES_A_COMMAND, 2 * holes_count), 2):
            command.ack.message_id.add(ledgerId=ledger_id, entryId=entry_id)
        command.ack.request_id = start
        consuming.write(frame(command))
        await asyncio.sleep(0)
    await until(target, lambda: len(answers), -(-holes_count // _HOLES_A_COMMAND), consuming)
    consuming.close()
    return topic


async def acknowledge_amid_holes(
    target: Target, topic: str, *, asks_for_receipts: bool, count: int
) -> Figures:
    """`count` messages of a topic with holes are taken and acknowledged, neighbours in any order.

    What the first one held stays, as it was never acknowledged.
    """
    consuming = await _subscribed(target, topic)
    first = await _one_message(target, consuming)
    assert first.entryId == 0, f"the first entry comes first, not {first}"
    consumer = Acknowledger(
        consuming, asks_for_receipts=asks_for_receipts, shuffled_count=_SHUFFLED_COUNT
    )
    return await _acknowledge(target, consumer, count // _SHUFFLED_COUNT * _SHUFFLED_COUNT)


async def _one_message(target: Target, consuming: RawConnection) -> MessageIdData:
    """The id of the only message that a new consumer lets come."""
    ids: list[MessageIdData] = []

    consuming.start_counting()
    consuming.on_frame = lambda data: ids.append(_message_id(data))
    consuming.flow(1, 1)
    await until(target, lambda: len(ids), 1, consuming)
    return ids[0]


async def _subscribed(target: Target, topic: str) -> RawConnection:
    consuming = await RawConnection.connect(target.host, target.port, target.tls)
    kind = CommandSubscribe.Shared
    await consuming.subscribe(topic, "s", 1, from_earliest=True, kind=kind)
    return consuming


async def _publish_backlog(target: Target, topic: str, count: int, size_bytes: int) -> None:
    publishing = await RawConnection.connect(target.host, target.port, target.tls)
    await publishing.create_producer(topic, 1)
    publisher = Publisher(publishing, size_bytes, 4 << 20)
    publisher.limit = count
    publisher.start()
    await until(target, lambda: publisher.receipts_count, count, publishing, look_seconds=0.05)
    publishing.close()


async def _acknowledge(target: Target, consumer: Acknowledger, count: int) -> Figures:
    cpu, start = target.cpu_seconds(), time.perf_counter()
    consumer.start()
    await until(target, lambda: consumer.acknowledged_count, count, consumer.connection)
    elapsed = time.perf_counter() - start
    used = target.cpu_seconds() - cpu
    consumer.connection.close()
    return Figures(entries_per_second=count / elapsed, cpu_micros_per_entry=used / count * 1e6)
