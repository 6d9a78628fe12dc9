"""`ThreadReads`: how threads that wait for messages read a connection's socket themselves (edge).

    thread:  LentReading.take | waits for the socket | [turn: ThreadReads.read] | give_back
                                                              |
                             a receipt, a message for it <----+----> anything else: the loop

A thread that has the loop's turn (`blocking.turn_loop`) reads once. What may be handled without the
loop is a message that comes alone, for the consumer that the thread waits for, and the next receipt
of a producer, alone or before that message. Everything else the loop handles as if it had read it,
and nobody reads before it has.

Which of the two a read is, is known before anything of it is handled.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol

from pulsar_py.client.brokers.direct_socket import DirectSocket
from pulsar_py.client.brokers.lent_reading import LentReading, can_lend
from pulsar_py.wire.framing import SIZES_SIZE

if TYPE_CHECKING:
    from pulsar_py.client.brokers.handler_table import HandlerTable
    from pulsar_py.client.brokers.handlers import ConsumerHandler, ProducerHandler
    from pulsar_py.client.messages.message import Message
    from pulsar_py.wire.alike_commands import AlikeCommands
    from pulsar_py.wire.frame_receiver import FrameReceiver

__all__ = ["MessageReader", "Read", "ThreadReads", "thread_reads"]


class Read(Enum):
    """What came of a thread's read."""

    TAKEN = auto()
    """A message, which its reader has."""
    NOTHING = auto()
    """Nothing, or a receipt: the thread waits on."""
    LEFT = auto()
    """The loop handles it: the thread waits for that."""


class MessageReader(Protocol):
    """A thread that reads for a consumer, as the connection sees it."""

    @property
    def consumer_id(self) -> int:
        """The consumer's id on its connections."""

    @property
    def calls_back(self) -> bool:
        """Whether it may call what waits for the receipts of messages."""

    def is_wanted(self) -> bool:
        """Whether the thread still waits, and nobody else."""

    def took(self, run: list[Message]) -> bool:
        """Messages came; returns whether the thread has what it waits for."""


class ReadConnection(Protocol):
    """A `ClientCnx`, as its `ThreadReads` sees it."""

    turn: AbstractContextManager[object]
    frames: FrameReceiver
    alike: AlikeCommands
    handlers: HandlerTable

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes were read; called by the loop."""

    def on_thread_read(self) -> None:
        """A thread has read something, and handles it."""

    def on_failed_read(self, error: BaseException) -> None:
        """What was read could not be handled; called by the loop."""

    def give_up(self, reason: str) -> None:
        """Have the loop close it; called by any thread."""


def thread_reads(
    connection: ReadConnection,
    loop: asyncio.AbstractEventLoop,
    transport: asyncio.Transport,
    direct: DirectSocket | None,
) -> ThreadReads | None:
    """Those of a connection; None where threads can't read it, as with TLS."""
    if direct is None or not can_lend:
        return None
    return ThreadReads(connection, loop, transport, direct)


class ThreadReads:
    """Reads one connection's socket by threads, and by the loop meanwhile. Owned by the ClientCnx.

    Invariant: `lent.is_reading` from a thread's read until that is handled.
    """

    __slots__ = ("_connection", "_direct", "_loop", "lent")

    def __init__(
        self,
        connection: ReadConnection,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        direct: DirectSocket,
    ) -> None:
        """Of a connection with these; its transport reads."""
        self._connection = connection
        self._loop = loop
        self._direct = direct
        self.lent: Final = LentReading(loop, transport, direct, self._read_in_loop)

    def read(self, reader: MessageReader) -> Read:
        """Read once; called in the loop's turn by a thread that has taken the reading."""
        # Hot path: latency in `make bench-client`, blocking.
        lent, connection = self.lent, self._connection
        if not lent.is_for(reader):
            return Read.LEFT
        # From here on nobody else reads, not even if Ctrl-C ends this here.
        lent.is_reading = True
        try:
            try:
                size = self._direct.receive_into(connection.frames.buffer())
                if size is None:
                    lent.is_reading = False
                    return Read.NOTHING
                piece = connection.frames.piece(size) if size else None
                if piece is not None and (read := self._handle(piece, reader)) is not None:
                    lent.is_reading = False
                    lent.served()
                    return read
            except Exception as error:  # noqa: BLE001 - the outermost edge of what a connection does
                self._loop.call_soon_threadsafe(connection.on_failed_read, error)
                return Read.LEFT
            self._loop.call_soon_threadsafe(self._handle_left, reader, size)
        except BaseException:  # Ctrl-C; raised again
            connection.give_up("a thread was interrupted while it read")
            raise
        return Read.LEFT

    def _handle(self, piece: bytes, reader: MessageReader) -> Read | None:
        """Handle what was read; None, and nothing is done, if the loop has to."""
        # Hot path: latency in `make bench-client`, blocking.
        connection = self._connection
        alike, handlers = connection.alike, connection.handlers
        consumer: ConsumerHandler | None = None
        alone = alike.find_alone(piece)
        if alone is not None:
            message, key, payload, start = alone
            consumer = handlers.consumers.get(message.consumer_id)
            if (
                message.consumer_id != reader.consumer_id
                or consumer is None
                or not consumer.takes_in_turn(message)
                or not reader.is_wanted()
            ):
                return None
        elif alike.is_receipt_frame(piece):
            start = len(piece)
        else:
            return None
        producer: ProducerHandler | None = None
        if start:
            receipt = alike.receipt_at(piece, SIZES_SIZE)
            if receipt is None:
                return None
            producer_id, sequence_id, ledger_id, entry_id, highest = receipt
            producer = handlers.producers.get(producer_id)
            if producer is not None and not producer.expects_receipt(
                sequence_id, highest, calls_back=reader.calls_back
            ):
                return None
        connection.on_thread_read()
        if producer is not None:
            producer.on_lone_receipt(sequence_id, highest, ledger_id, entry_id)
        if alone is None or consumer is None:
            return Read.NOTHING
        has_taken = reader.took(consumer.take_in_turn(message, payload, key))
        if consumer.has_to_go_on:
            self._loop.call_soon_threadsafe(consumer.go_on)
        return Read.TAKEN if has_taken else Read.NOTHING

    def _handle_left(self, reader: MessageReader, size: int) -> None:
        """Handle what a thread has read, `size` bytes, and must not handle; in the loop."""
        lent = self.lent
        lent.is_reading = False
        if size:
            self._handle_in_loop(size)
        else:
            lent.end()
        lent.give_back(reader)

    def _read_in_loop(self) -> None:
        """Read in place of the transport, which does not while the reading is lent."""
        with self._connection.turn:
            if self.lent.is_reading:  # since the loop woke up
                return
            size = self._direct.receive_into(self._connection.frames.buffer())
            if size:
                self._handle_in_loop(size)
            elif size is not None:
                self.lent.end()

    def _handle_in_loop(self, size: int) -> None:
        """Handle what was read; if that fails the connection ends, as a transport ends it."""
        try:
            self._connection.buffer_updated(size)
        except BaseException as error:  # noqa: BLE001 - of a callback, which must not raise
            self._connection.on_failed_read(error)
