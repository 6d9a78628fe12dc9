"""`ConsumerDialog` and `ReaderDialog`: send messages to a client, within its permits (edge).

Room is a count, kept by a `SendWindow`. A consumer in push mode begins with its
`receiverQueueSize`, and each acknowledgement, positive or negative, makes room for one more; in
pull mode only permits do. A reader's frames make room, whatever they say. One task receives, and
waits before each message until the client has taken what it was sent.

Source: ConsumerHandler, ReaderHandler in Pulsar.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.messages.topic_message_id import TopicMessageId
from pulsar_py.common.errors import AlreadyClosedError, InvalidMessageError, PulsarError
from pulsar_py.websocket.frames import (
    BadIdError,
    ConsumerCommand,
    command_of,
    end_of_topic_text,
    id_of,
    id_text,
    message_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_py.client.messages.message import Message
    from pulsar_py.client.reading.reader import Reader
    from pulsar_py.client.subscribe import AnyConsumer
    from pulsar_py.common.loops.tasks import TaskOwner
    from pulsar_py.common.message_id import MessageId
    from pulsar_py.websocket.connection import WebSocketConnection

__all__ = ["ConsumerDialog", "ReaderDialog", "SendWindow"]

INTERNAL_ERROR: Final = 1011
MAX_KNOWN_TOPICS: Final = 10_000
"""Ids of which a consumer of several topics remembers the topic. A client in push mode has at most
a thousand; one that pulls and never acknowledges loses the oldest."""


class SendWindow:
    """Counts how many more messages may be sent.

    Invariant: `room_count` is at least 0.
    """

    def __init__(self, room_count: int) -> None:
        self.room_count = room_count
        self._opened: asyncio.Future[None] | None = None  # while somebody waits

    def open(self, count: int) -> None:
        """Make room for more messages."""
        self.room_count += count
        if self._opened is not None and not self._opened.done():
            self._opened.set_result(None)

    async def take(self) -> None:
        """Wait for room, and use up that of one message."""
        while not self.room_count:
            self._opened = asyncio.get_running_loop().create_future()
            await self._opened
            self._opened = None
        self.room_count -= 1


class _Source(Protocol):
    async def next_message(self) -> Message[bytes]: ...


async def _pump(connection: WebSocketConnection, window: SendWindow, source: _Source) -> None:
    """Send messages until the source is closed."""
    try:
        while True:
            await window.take()
            await connection.until_writable()
            message = await source.next_message()
            connection.send_text(message_text(message))
    except AlreadyClosedError:
        pass
    except PulsarError as error:
        connection.close(INTERNAL_ERROR, str(error))


class ConsumerDialog:
    """The dialog of one consumer."""

    def __init__(
        self,
        connection: WebSocketConnection,
        consumer: AnyConsumer[bytes],
        window: SendWindow,
        tasks: TaskOwner,
        on_end: Callable[[], None],
        *,
        is_pull: bool,
    ) -> None:
        """`on_end` is told once that the consumer is not needed any more, and ends `tasks`."""
        self._connection = connection
        self._consumer = consumer
        self._window = window
        self._tasks = tasks
        self._on_end = on_end
        self._is_pull = is_pull
        # Where ids don't tell their topic: the topics of the messages that were sent.
        self._topics: OrderedDict[str, str] | None = None
        if isinstance(consumer, MultiTopicsConsumer):
            self._topics = OrderedDict()

    def on_open(self) -> None:
        """Start to send messages."""
        self._tasks.spawn(_pump(self._connection, self._window, self), "messages")

    async def next_message(self) -> Message[bytes]:
        """The consumer's next message."""
        message = await self._consumer.receive()
        if self._topics is not None:
            self._topics[id_text(message.message_id())] = message.topic_name()
            if len(self._topics) > MAX_KNOWN_TOPICS:
                self._topics.popitem(last=False)
        return message

    def on_text(self, text: str) -> None:
        """Do what a frame says; what is no command is ignored."""
        try:
            command = command_of(text)
            if command is not None:
                self._do(command)
        except (BadIdError, InvalidMessageError) as error:
            self._connection.close(INTERNAL_ERROR, str(error))

    def _do(self, command: ConsumerCommand) -> None:
        if command.type == "permit":
            if self._is_pull and command.permits_count > 0:
                self._window.open(command.permits_count)
        elif command.type == "unsubscribe":
            self._tasks.spawn(self._unsubscribe(), "unsubscribe")
        elif command.type == "isEndOfTopic":
            is_end = self._consumer.has_reached_end_of_topic
            self._connection.send_text(end_of_topic_text(is_end=is_end))
        else:
            message_id = self._id_of(command)
            if command.type == "negativeAcknowledge":
                if message_id is not None:
                    self._consumer.negative_acknowledge(message_id)
            elif message_id is not None:
                self._tasks.spawn(self._acknowledge(message_id), "acknowledge")
            if not self._is_pull:
                self._window.open(1)

    def _id_of(self, command: ConsumerCommand) -> MessageId | None:
        message_id = id_of(command.message_id)
        if message_id is None or self._topics is None:
            return message_id
        topic = self._topics.pop(str(command.message_id), None)
        if topic is None:
            return None if message_id.partition_index < 0 else message_id
        return TopicMessageId.of(topic, message_id)

    async def _acknowledge(self, message_id: MessageId) -> None:
        try:
            await self._consumer.acknowledge(message_id)
        except AlreadyClosedError:
            pass
        except PulsarError as error:
            self._connection.close(INTERNAL_ERROR, str(error))

    async def _unsubscribe(self) -> None:
        # Where other consumers are there nothing happens, and the client is not told.
        with suppress(PulsarError):
            await self._consumer.unsubscribe()

    def on_closed(self) -> None:
        """Leave the subscription."""
        self._on_end()


class ReaderDialog:
    """The dialog of one reader."""

    def __init__(
        self,
        connection: WebSocketConnection,
        reader: Reader[bytes],
        window: SendWindow,
        tasks: TaskOwner,
        on_end: Callable[[], None],
    ) -> None:
        """`on_end` is told once that the reader is not needed any more, and ends `tasks`."""
        self._connection = connection
        self._reader = reader
        self._window = window
        self._tasks = tasks
        self._on_end = on_end

    def on_open(self) -> None:
        """Start to send messages."""
        self._tasks.spawn(_pump(self._connection, self._window, self), "messages")

    async def next_message(self) -> Message[bytes]:
        """The reader's next message."""
        return await self._reader.read_next()

    def on_text(self, text: str) -> None:
        """Make room, or answer whether the topic has ended."""
        try:
            command = command_of(text)
        except BadIdError:
            return
        if command is None:
            return
        if command.type == "isEndOfTopic":
            is_end = self._reader.has_reached_end_of_topic
            self._connection.send_text(end_of_topic_text(is_end=is_end))
        else:
            self._window.open(1)

    def on_closed(self) -> None:
        """Leave the topic."""
        self._on_end()
