"""A thread handles a receipt and a message for it, and leaves everything else as it came."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import nullcontext

import pytest

from benchmarks.raw_client import frame
from pulsar_py.client.brokers.direct_socket import DirectSocket
from pulsar_py.client.brokers.handler_table import HandlerTable
from pulsar_py.client.brokers.thread_reads import Read, ThreadReads, thread_reads
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandMessage,
    CommandSendReceipt,
    MessageIdData,
)
from pulsar_py.wire.alike_commands import AlikeCommands
from pulsar_py.wire.frame_receiver import FrameReceiver
from pulsar_py.wire.receipt_runs import Receipt

CONSUMER, PRODUCER = 4, 5


def message(entry_id: int, *, consumer_id: int = CONSUMER) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.MESSAGE)
    command.message.consumer_id = consumer_id
    command.message.message_id.ledgerId, command.message.message_id.entryId = 7, entry_id
    return command


def receipt(sequence_id: int) -> BaseCommand:
    sent = CommandSendReceipt(
        producer_id=PRODUCER,
        sequence_id=sequence_id,
        message_id=MessageIdData(ledgerId=7, entryId=sequence_id),
    )
    return BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=sent)


class Handler:
    """A producer and a consumer, which write down what they are told."""

    def __init__(self) -> None:
        self.news: list[tuple[object, ...]] = []
        self.expects = True
        self.takes = True
        self.has_to_go_on = False

    def expects_receipt(self, sequence_id: int, highest: int, *, calls_back: bool) -> bool:
        return self.expects

    def on_lone_receipt(self, sequence_id: int, *rest: int) -> None:
        self.news.append(("receipt", sequence_id))

    def takes_in_turn(self, message: CommandMessage) -> bool:
        return self.takes

    def take_in_turn(
        self, message: CommandMessage, payload: bytes, key: tuple[int, int]
    ) -> list[str]:
        self.news.append(("message", key, payload))
        return ["a message"]

    def go_on(self) -> None:
        self.news.append(("go on",))


class Connection:
    """A connection that knows how a message and a receipt look, and its one reader."""

    consumer_id = CONSUMER
    calls_back = True

    def __init__(self, theirs: socket.socket) -> None:
        self.theirs = theirs
        self.turn = nullcontext()
        self.frames = FrameReceiver(100_000)
        self.alike = AlikeCommands()
        first = message(1)
        self.alike.learn_message(first.SerializeToString(), first.message)
        self.alike.learn_receipt(receipt(1).SerializeToString(), Receipt(PRODUCER, 1, 7, 1))
        self.handler = Handler()
        self.handlers = HandlerTable()
        self.handlers.consumers[CONSUMER] = self.handlers.producers[PRODUCER] = self.handler
        self.by_loop: list[int] = []
        self.failures: list[BaseException] = []
        self.ends: list[str] = []
        self.fails = False
        self.wanted = True
        self.run: list[str] = []
        self.reads: ThreadReads

    def is_wanted(self) -> bool:
        return self.wanted

    def took(self, run: list[str]) -> bool:
        self.run += run
        return bool(run)

    def buffer_updated(self, nbytes: int) -> None:
        if self.fails:
            raise ValueError("in a callback")
        self.by_loop.append(nbytes)

    def on_thread_read(self) -> None:
        pass

    def on_failed_read(self, error: BaseException) -> None:
        self.failures.append(error)

    def give_up(self, reason: str) -> None:
        self.ends.append(reason)

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        self.ends.append("the transport reads")

    def is_closing(self) -> bool:
        return False

    def read(self, data: bytes) -> Read:
        """As a thread that has the reading."""
        assert self.reads.lent.take(self)
        if data:
            self.theirs.send(data)
        try:
            return self.reads.read(self)
        finally:
            self.reads.lent.give_back(self)


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        made = Connection(theirs)
        direct = DirectSocket(made, ours.fileno())
        made.reads = ThreadReads(made, asyncio.get_running_loop(), made, direct)
        for _ in range(8):
            made.reads.lent.came_alone()
        yield made
        made.reads.lent.close()
        direct.close()


async def test_a_receipt_and_a_message_are_handled_in_their_order(connection: Connection) -> None:
    assert connection.read(b"") is Read.NOTHING
    assert connection.read(frame(receipt(2))) is Read.NOTHING
    assert connection.read(frame(message(2), b"alone")) is Read.TAKEN
    assert connection.read(frame(receipt(3)) + frame(message(3), b"both")) is Read.TAKEN
    assert connection.handler.news == [
        ("receipt", 2),
        ("message", (7, 2), b"alone"),
        ("receipt", 3),
        ("message", (7, 3), b"both"),
    ]
    assert connection.run == ["a message"] * 2
    await asyncio.sleep(0.01)
    assert not connection.by_loop


@pytest.mark.parametrize(
    "data",
    [
        frame(message(2, consumer_id=CONSUMER + 1), b"x"),
        frame(message(300), b"x"),
        frame(message(2), b"x")[:-1],
        frame(message(2), b"x") * 2,
        frame(receipt(300)),
        frame(receipt(2)) * 2,
        frame(receipt(2)) + frame(message(300), b"x"),
        frame(BaseCommand(type=BaseCommand.PING)),
    ],
)
async def test_everything_else_is_left_to_the_loop_as_it_came(
    connection: Connection, data: bytes
) -> None:
    assert connection.read(data) is Read.LEFT
    assert not connection.handler.news
    assert not connection.reads.lent.take(object())  # before the loop has handled it
    await asyncio.sleep(0.01)
    assert connection.by_loop == [len(data)]
    assert connection.read(frame(message(2), b"x")) is Read.TAKEN


@pytest.mark.parametrize("refuses", ["expects", "takes", "wanted"])
async def test_so_is_what_its_handler_or_the_thread_does_not_take(
    connection: Connection, refuses: str
) -> None:
    setattr(connection if refuses == "wanted" else connection.handler, refuses, False)
    assert connection.read(frame(receipt(2)) + frame(message(2), b"x")) is Read.LEFT
    assert not connection.handler.news


async def test_the_loop_goes_on_where_a_message_leaves_something(connection: Connection) -> None:
    connection.handler.has_to_go_on = True
    assert connection.read(frame(message(2), b"x")) is Read.TAKEN
    assert connection.handler.news[1:] == []
    await asyncio.sleep(0.01)
    assert connection.handler.news[1:] == [("go on",)]


async def test_a_receipt_of_a_producer_that_is_gone_is_dropped(connection: Connection) -> None:
    del connection.handlers.producers[PRODUCER]
    assert connection.read(frame(receipt(2)) + frame(message(2), b"x")) is Read.TAKEN
    assert connection.handler.news == [("message", (7, 2), b"x")]


async def test_who_has_not_taken_the_reading_reads_nothing(connection: Connection) -> None:
    connection.theirs.send(frame(message(2), b"x"))
    assert connection.reads.read(connection) is Read.LEFT
    await asyncio.sleep(0.01)
    assert connection.by_loop == [len(frame(message(2), b"x"))]


async def test_the_end_of_the_stream_is_the_transports_to_hear(connection: Connection) -> None:
    connection.theirs.close()
    assert connection.read(b"") is Read.LEFT
    await asyncio.sleep(0.01)
    assert connection.ends == ["the transport reads"]
    assert not connection.reads.lent.is_lent


async def test_a_fault_in_a_thread_ends_the_connection_and_nobody_reads_on(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("in a callback")

    monkeypatch.setattr(connection.handler, "on_lone_receipt", fail)
    assert connection.read(frame(receipt(2))) is Read.LEFT
    await asyncio.sleep(0.01)
    assert [str(each) for each in connection.failures] == ["in a callback"]
    assert not connection.reads.lent.take(object())


async def test_ctrl_c_in_a_thread_ends_it_too(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(connection.handler, "on_lone_receipt", interrupt)
    with pytest.raises(KeyboardInterrupt):
        connection.read(frame(receipt(2)))
    assert connection.ends == ["a thread was interrupted while it read"]
    assert not connection.reads.lent.take(object())


async def test_a_fault_in_the_loop_ends_it_as_well(connection: Connection) -> None:
    connection.fails = True
    connection.theirs.send(b"x")
    await asyncio.sleep(0.01)
    assert [str(each) for each in connection.failures] == ["in a callback"]


async def test_there_are_none_without_a_direct_socket(connection: Connection) -> None:
    assert thread_reads(connection, asyncio.get_running_loop(), connection, None) is None
