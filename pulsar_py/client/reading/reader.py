"""`Reader`: reads a topic from a chosen position, without a durable subscription (edge).

A reader is an exclusive consumer, of one topic or of all its partitions, with a subscription that
lives in the broker's memory only. It acknowledges what it hands out, so that the broker's
statistics show its progress; the application remembers where to start again.

Source: ReaderImpl and MultiTopicsReaderImpl in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Generic, Self

from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.message_listener import ListenerRunner
from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.messages.message import Message
from pulsar_py.client.messages.option_checks import check_seek_target, own_members
from pulsar_py.client.messages.topic_message_id import SeekTarget, TopicMessageId
from pulsar_py.client.reading.reader_config import ReaderConfig
from pulsar_py.client.shared import absent_names
from pulsar_py.client.shared.absent_names import blocks, lacks
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.client.shared.state_texts import state_text
from pulsar_py.client.shared.statistics import ConsumerStatistics
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.errors import (
    AlreadyClosedError,
    InvalidConfigurationError,
    OperationNotSupportedError,
)
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, MessageId
from pulsar_py.common.names import TopicName

__all__ = ["Reader", "create_reader"]

_NAME_LENGTH: Final = 10
_NAME_LETTERS: Final = "0123456789abcdef"


@blocks
@lacks(absent_names.READER)
class Reader(Generic[T_co]):
    """Reads one topic, or all partitions of one. Made by `Client.create_reader`."""

    def __init__(
        self, consumer: Consumer[T_co] | MultiTopicsConsumer[T_co], config: ReaderConfig
    ) -> None:
        """Take over an open consumer."""
        self._consumer = consumer
        # None without a listener.
        self._listener: ListenerRunner | None = None
        if (listener := config.reader_listener) is not None:
            self._listener = ListenerRunner(
                _Listened(self),
                lambda _, message: listener(self, message),
                name=f"reader of {consumer.topic()}",
                consumer_type=ConsumerType.Exclusive,
            )
            self._listener.start()

    @property
    def consumer(self) -> Consumer[T_co] | MultiTopicsConsumer[T_co]:
        """What the reader reads with, for other parts of the library."""
        return self._consumer

    def topic(self) -> str:
        """The topic's full name."""
        return self._consumer.topic()

    def topics(self) -> list[str]:
        """The full names of the topic, or of its partitions, that are read."""
        if isinstance(self._consumer, MultiTopicsConsumer):
            return self._consumer.topics()
        return [self._consumer.topic()]

    def subscription_name(self) -> str:
        """The name of the reader's subscription in the broker's statistics."""
        return self._consumer.subscription_name()

    def is_connected(self) -> bool:
        """Whether it is registered with its brokers now; it reconnects by itself."""
        return self._consumer.is_connected()

    @property
    def is_closed(self) -> bool:
        """Whether `close` began."""
        return self._consumer.is_closed

    @property
    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic was terminated and everything was delivered."""
        return self._consumer.has_reached_end_of_topic

    def statistics(self) -> ConsumerStatistics:
        """Statistics of the reader."""
        return self._consumer.statistics()

    async def read_next(self, timeout_millis: int | None = None) -> Message[T_co]:
        """The next message; waits for one.

        Raises:
            ClientTimeoutError: None came within `timeout_millis`.
            AlreadyClosedError: The reader is closed.
            OperationNotSupportedError: It has a `reader_listener`.
        """
        if self._listener is not None:
            raise OperationNotSupportedError(
                f"reader of {self.topic()}: read_next is not allowed with a reader_listener"
            )
        return await self._read(timeout_millis)

    async def _read(self, timeout_millis: int | None = None) -> Message[T_co]:
        message = await self._consumer.receive(timeout_millis)
        await self._consumer.acknowledge_cumulative(message)
        return message

    async def read_nowait(self) -> Message[T_co] | None:
        """The next queued message, None if there is none; does not wait for messages.

        It is a coroutine because it acknowledges the message, as `read_next` does. On a reader with
        a `reader_listener` it takes messages away from the listener.

        Raises:
            AlreadyClosedError: The reader is closed.
        """
        message = self._consumer.receive_nowait()
        if message is not None:
            await self._consumer.acknowledge_cumulative(message)
        return message

    async def has_message_available(self) -> bool:
        """Whether there is a message after the last one that was read.

        Raises:
            AlreadyClosedError: The reader is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        return await self._consumer.has_message_available()

    async def seek(self, target: SeekTarget) -> None:
        """Go to earliest, latest, a message, or a publish time in milliseconds since 1970.

        With partitions, earliest, latest and times apply to all of them, and a message id to its
        own. A mapping from full names to ids, or a function of full names, moves those it names.

        Raises:
            InvalidConfigurationError: `target` is none of these.
            OperationNotSupportedError: A mapping, and the topic has no partitions.
            ServiceError, ClientError: It was not moved, or it is not known whether it was.
        """
        check_seek_target(target)
        if isinstance(self._consumer, MultiTopicsConsumer):
            await self._consumer.seek(target)
        elif isinstance(target, Mapping):
            raise OperationNotSupportedError(
                f"reader of {self.topic()}: a mapping of ids is for partitioned topics"
            )
        else:
            await self._consumer.seek(target)

    async def get_last_message_ids(self) -> list[TopicMessageId]:
        """The last message of the topic, or of each partition.

        Raises as `has_message_available`.
        """
        if isinstance(self._consumer, MultiTopicsConsumer):
            return await self._consumer.get_last_message_ids()
        return [TopicMessageId.of(self.topic(), await self._consumer.get_last_message_id())]

    def __aiter__(self) -> Self:
        """Messages until the reader is closed."""
        return self

    async def __anext__(self) -> Message[T_co]:
        """The next message."""
        try:
            return await self.read_next()
        except AlreadyClosedError:
            raise StopAsyncIteration from None

    async def close(self) -> None:
        """Leave the topic. May be called again."""
        try:
            if self._listener is not None:
                await self._listener.close()
        finally:
            await self._consumer.close()

    def abandon(self) -> None:
        """Leave at once, without waiting for anybody."""
        if self._listener is not None:
            self._listener.abandon()
        self._consumer.abandon()

    async def __aenter__(self) -> Self:
        """The reader itself, which is open."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    def __repr__(self) -> str:
        state = state_text(is_closed=self.is_closed, is_connected=self.is_connected())
        return f"Reader({self.topic()}, {state})"


class _Listened:
    """A reader as a `ListenedConsumer`: a message whose listener failed is not delivered again."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def receive_for_listener(self) -> Message[T_co]:
        return await self._reader._read()  # noqa: SLF001 - `read_next` is the application's

    def negative_acknowledge(self, message: Message) -> None:
        del message


async def create_reader(
    context: ClientContext,
    topic: str,
    start_message_id: MessageId | Mapping[str, MessageId] | None = None,
    **options: Any,  # Any: the fields of ReaderConfig
) -> Reader:
    """Create a reader, and open it; see `Client.create_reader`.

    Args:
        context: The client's shared parts.
        topic: A topic, one partition, or a partitioned topic.
        start_message_id: `MessageId.earliest`, `MessageId.latest`, or an id after which to begin
            (at which, with `start_message_id_inclusive`). For a partitioned topic, a mapping from
            partitions' full names to ids; partitions that are left out are read from the
            beginning. None: the time among the options, or latest.
        **options: The fields of `ReaderConfig`.

    Raises:
        InvalidConfigurationError: An argument or option is not valid.
        ServiceError, ClientError: It could not be opened within the operation timeout.
    """
    context.check_usable()
    config = ReaderConfig(**own_members(options, ReaderConfig))
    consumer_config = config.to_consumer_config()
    name = TopicName.parse(topic)
    count = 0 if name.is_partition else await context.partitions_count(str(name))
    subscription_name = _subscription_name(context, config)
    start = _start_of(name, start_message_id, config, count)
    consumer: Consumer | MultiTopicsConsumer
    if count == 0:
        assert not isinstance(start, Mapping), "checked above"
        consumer = await Consumer.open(
            context, str(name), subscription_name, consumer_config, start_message_id=start
        )
    else:
        consumer = MultiTopicsConsumer(
            context, [str(name)], subscription_name, consumer_config, start_message_id=start
        )
        await consumer.start()
    if config.start_message_from_timestamp_millis is not None:
        async with OnFailureAwait(consumer.close):
            await consumer.seek(config.start_message_from_timestamp_millis)
    return Reader(consumer, config)


def _subscription_name(context: ClientContext, config: ReaderConfig) -> str:
    if config.subscription_name is not None:
        return config.subscription_name
    name = "reader-" + "".join(context.random.choices(_NAME_LETTERS, k=_NAME_LENGTH))
    prefix = config.subscription_role_prefix
    return f"{prefix}-{name}" if prefix else name


def _start_of(
    topic: TopicName,
    start: MessageId | Mapping[str, MessageId] | None,
    config: ReaderConfig,
    partitions_count: int,
) -> MessageId | Mapping[str, MessageId]:
    if start is None:
        # A start by time is a rollback from now, which the broker applies only if the start is the
        # beginning (ReaderBuilderImpl in Pulsar's Java client).
        by_rollback = config.start_message_from_rollback_duration_seconds > 0
        return EARLIEST_MESSAGE_ID if by_rollback else LATEST_MESSAGE_ID
    if config.is_start_by_time:
        raise InvalidConfigurationError(
            f"reader of {topic}: start_message_id ({start}) and a start by time exclude each other"
        )
    if isinstance(start, Mapping):
        return _starts_by_partition(topic, start, partitions_count)
    if partitions_count > 0 and start not in (EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID):
        raise InvalidConfigurationError(
            f"reader of {topic}: start_message_id {start} is of one partition, and there are "
            f"{partitions_count}: give earliest, latest, or an id by each partition's name"
        )
    return start


def _starts_by_partition(
    topic: TopicName, start: Mapping[str, MessageId], partitions_count: int
) -> MessageId | Mapping[str, MessageId]:
    named = {str(TopicName.parse(name)): message_id for name, message_id in start.items()}
    if partitions_count == 0 and set(named) == {str(topic)}:
        return named[str(topic)]
    allowed = {str(topic.partition(index)) for index in range(partitions_count)}
    if unknown := sorted(named.keys() - allowed):
        raise InvalidConfigurationError(
            f"reader of {topic}: start_message_id names {', '.join(unknown)}, which is no "
            f"partition of its {partitions_count}"
        )
    return named
