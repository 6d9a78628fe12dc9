"""A consumer of several topics: of a list, of partitions, or of the matches of a pattern (edge).

Each topic or partition is a part: a `Consumer` of its own, with its own queue and permits. Parts
tell when they have messages; `receive` takes one message of the next part in turn, so none starves,
and nothing is copied between queues. What is prefetched is bounded by
`max_total_receiver_queue_size_across_partitions`, split evenly; a part whose share is full
gets no more.

Acknowledgements, negative ones and seeks by message go to the part the message came from. Order is
kept within each topic only. New partitions of a topic are found by polling.

Source: MultiTopicsConsumerImpl in Pulsar's Java client.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from types import TracebackType
from typing import Final, Generic, Self

from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.consumer_interceptor import tell_partitions_change
from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy
from pulsar_py.client.consuming.message_listener import ListenerRunner, listener_concurrency
from pulsar_py.client.consuming.message_loops import MessageLoops
from pulsar_py.client.many_topics.combined_statistics import combine
from pulsar_py.client.many_topics.merged_receiver import MergedReceiver
from pulsar_py.client.many_topics.part_opener import PartOpener
from pulsar_py.client.many_topics.topic_lists import receiver_queue_size_per_topic
from pulsar_py.client.many_topics.topic_parts import TopicParts
from pulsar_py.client.messages.message import Message
from pulsar_py.client.messages.option_checks import check_message, check_seek_target, messages_of
from pulsar_py.client.messages.topic_message_id import (
    MultiMessageId,
    SeekTarget,
    TopicMessageId,
    last_of,
    newest_by_topic,
    route,
    seek_targets,
    topic_of,
)
from pulsar_py.client.receiving.receiver import Receiver
from pulsar_py.client.shared import absent_names
from pulsar_py.client.shared.absent_names import blocks, lacks
from pulsar_py.client.shared.state_texts import state_text
from pulsar_py.client.shared.statistics import ConsumerStatistics
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    InvalidConfigurationError,
    OperationNotSupportedError,
    PulsarError,
)
from pulsar_py.common.failures import OnFailure, OnFailureAwait
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.loops.finished import FINISHED
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName

__all__ = ["MultiTopicsConsumer"]

logger = logging.getLogger(__name__)

_NAME_LENGTH: Final = 10
_NAME_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


@blocks
@lacks(absent_names.CONSUMER)
class MultiTopicsConsumer(Generic[T_co]):
    """Receives the messages of several topics for one subscription, with `Consumer`'s methods."""

    def __init__(
        self,
        context: ClientContext,
        topics: Sequence[str],
        subscription_name: str,
        config: ConsumerConfig,
        *,
        policy: ConsumerDeadLetterPolicy | None = None,
        start_message_id: MessageId | Mapping[str, MessageId] | None = None,
    ) -> None:
        """Nothing happens before `start`.

        Args:
            context: The client's shared parts.
            topics: Names in any form; a partitioned topic stands for all its partitions.
            subscription_name: Common to all topics.
            config: Options; its queue sizes are those of all parts together.
            policy: The dead-letter policy, with the names of its topics.
            start_message_id: Where a non-durable subscription begins, in all topics or topic by
                topic (full names); those left out begin with their oldest message.

        Raises:
            InvalidConfigurationError: `receiver_queue_size` is 0.
        """
        if config.receiver_queue_size == 0:
            raise InvalidConfigurationError(
                f"receiver_queue_size=0: expected at least 1 for several topics or partitions "
                f"({', '.join(topics) or 'pattern'})"
            )
        self._context = context
        self._wanted_topics = [str(TopicName.parse(topic)) for topic in topics]
        self._subscription_name = subscription_name
        self._config = config = replace(
            config, consumer_name=config.consumer_name or _generated_name(context)
        )
        self._tasks = TaskOwner(f"consumer of {subscription_name} on {self.topic()}")
        # Parts are opened paused, so that none receives before all of a change are open; they are
        # resumed then, unless this consumer is paused.
        self._opener = PartOpener(
            context,
            subscription_name,
            replace(config, start_paused=True),
            policy=policy,
            start_message_id=start_message_id,
        )
        self._is_paused = config.start_paused
        self._parts: TopicParts[Consumer[T_co]] = TopicParts(
            self._opener.open,
            self._partitions_count,
            on_opened=self._on_part_opened,
            on_closed=self._on_part_closed,
        )
        # The same object throughout, so hot paths look it up once.
        self._parts_by_topic = self._parts.by_topic
        self._receiver: MergedReceiver[Receiver] = MergedReceiver(
            self._check_receiving, self._on_part_failed
        )
        # The receiver queue size that parts were last set to; 0 before the first part was opened.
        self._share = 0
        self._interceptors = config.interceptors
        self._listener = self._make_listener()
        self._is_closed = False
        # As that of `Consumer`.
        self.takes_plain_acks = not (config.ack_receipt_enabled or config.interceptors)
        self._is_draining = False  # nothing is handed out any more
        self._loops = MessageLoops(self)

    # --- opening and closing -------------------------------------------------------------------

    async def start(self) -> None:
        """Subscribe to all topics; on a failure none stays open.

        Raises:
            ServiceError, ClientError: The error of the first topic that could not be subscribed to.
        """
        async with OnFailureAwait(self.close):
            await self._start_parts()
        self._context.register_child(self)
        self._spawn_tasks()
        if self._listener is not None:
            self._listener.start()

    async def _start_parts(self) -> None:
        await self._parts.add(self._wanted_topics)

    def _spawn_tasks(self) -> None:
        if self._config.auto_update_partitions:
            self._tasks.spawn(self._look_for_partitions(), "look for partitions")

    async def _partitions_count(self, topic: str) -> int:
        return await self._context.partitions_count(topic)

    def _on_part_opened(self, part: Consumer) -> None:
        self._receiver.add(part.receiver)
        if not self._is_paused:
            part.resume()

    def _on_part_closed(self, part: Consumer) -> None:
        self._receiver.discard(part.receiver)

    def _on_part_failed(self, receiver: Receiver, error: PulsarError) -> None:
        """A part ended for good: raise its error to the caller that receives now, once."""
        del receiver
        raise error

    def _make_listener(self) -> ListenerRunner | None:
        config = self._config
        if config.message_listener is None:
            return None
        return ListenerRunner(
            self,
            config.message_listener,
            name=f"{self._subscription_name} on {self.topic()}",
            consumer_type=config.consumer_type,
            concurrency=listener_concurrency(self._context, config.listener_concurrency),
        )

    async def _look_for_partitions(self) -> None:
        while True:
            await self._context.clock.sleep(self._config.auto_update_partitions_interval_seconds)
            await self._update_partitions()

    async def _update_partitions(self) -> None:
        for topic, count in (await self._parts.update_partitions()).items():
            logger.info(
                "%s: %s has %d partitions now",
                self,
                topic,
                count,
                extra={"topic": topic, "partitions": count},
            )
            tell_partitions_change(self._interceptors, topic, count)
        self._share_queue()

    def _share_queue(self) -> None:
        """Set each part's share of the queue, after their number changed."""
        config = self._config
        size = receiver_queue_size_per_topic(
            config.receiver_queue_size,
            config.max_total_receiver_queue_size_across_partitions,
            len(self._parts_by_topic),
        )
        if size != self._share:
            self._share = size
            for part in self._all_parts():
                part.resize_receiver_queue(size)

    async def drain(self) -> None:
        """As `Consumer.drain`, of all topics."""
        self._check_open()
        self.pause()
        if self._listener is not None:
            await self._listener.drain()
        self._is_draining = True
        self._receiver.close()
        await self._loops.end()
        await self.close()

    async def close(self) -> None:
        """Leave the subscription on all topics. May be called again."""
        self._refuse()
        with OnFailure(self.abandon):  # cancelled: what is left ends without waiting
            await self._tasks.close()
            if self._listener is not None:
                await self._listener.close()
            await self._parts.close()

    def abandon(self) -> None:
        """As `close`, at once: commands are sent, and no answers awaited."""
        self._refuse()
        self._tasks.abandon()
        if self._listener is not None:
            self._listener.abandon()
        self._parts.abandon()

    def _refuse(self) -> None:
        self._is_closed = True
        self.takes_plain_acks = False
        self._context.unregister_child(self)
        self._receiver.close()

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription on all topics, and close.

        Raises:
            ServiceError, ClientError: The error of the first topic that failed; others are closed.
        """
        self._check_open()
        await each_result(lambda part: part.unsubscribe(force=force), self._all_parts())
        await self.close()

    async def __aenter__(self) -> Self:
        """The consumer itself, which is open."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    def _check_open(self) -> None:
        self._context.check_usable(self._subject())
        if self._is_closed:
            raise AlreadyClosedError(f"{self._subject()} is closed")

    def _check_receiving(self) -> None:
        self._check_open()
        if self._is_draining:
            raise AlreadyClosedError(f"{self._subject()} is closed")

    def _subject(self) -> str:
        return f"the consumer of {self._subscription_name} on {self.topic()}"

    def _all_parts(self) -> list[Consumer[T_co]]:
        return list(self._parts_by_topic.values())

    def _part_of(self, message: Message | MessageId) -> Consumer[T_co] | None:
        """The part of a message; None if its topic was removed and nothing is left to do.

        Raises:
            InvalidMessageError: It is not of these topics, or not a message at all.
        """
        self._check_open()
        parts = self._parts.by_topic
        if isinstance(message, Message):
            part = parts.get(message.entry.topic)
            if part is not None:
                return part
            message = message.message_id()
        check_message(message, self._subject())
        topic = topic_of(message)
        if topic is not None and topic not in parts and self._is_topic_gone(topic):
            return None
        return parts[route(message, parts)]

    def _is_topic_gone(self, topic: str) -> bool:
        """Whether a topic that has no part may have had one; a message of it is ignored then."""
        del topic
        return False

    # --- properties ----------------------------------------------------------------------------

    def topic(self) -> str:
        """The full names of the topics that were subscribed to, separated by commas."""
        return ",".join(self._wanted_topics)

    def topics(self) -> list[str]:
        """Full names of all topics now, partitions one by one."""
        return sorted(self._parts.by_topic)

    def subscription_name(self) -> str:
        """The name of the subscription."""
        return self._subscription_name

    def consumer_name(self) -> str:
        """The option `consumer_name`, or a generated name; all parts have it."""
        assert self._config.consumer_name is not None, "it was generated"
        return self._config.consumer_name

    def is_connected(self) -> bool:
        """Whether all parts are registered with their brokers now."""
        return not self._is_closed and all(part.is_connected() for part in self._all_parts())

    @property
    def is_closed(self) -> bool:
        """Whether `close` or `unsubscribe` began."""
        return self._is_closed

    @property
    def has_reached_end_of_topic(self) -> bool:
        """Whether all topics were terminated and everything was delivered."""
        parts = self._all_parts()
        return bool(parts) and all(part.has_reached_end_of_topic for part in parts)

    def statistics(self) -> ConsumerStatistics:
        """The statistics of all parts, added up."""
        return combine([part.statistics() for part in self._all_parts()])

    # --- receiving -----------------------------------------------------------------------------

    def receive_nowait(self) -> Message[T_co] | None:
        """The next message if there is one here, else None. Raises as `receive`."""
        if self._listener is not None:
            raise self._listened_error()
        if self._is_draining:
            self._check_receiving()
        return self._receiver.receive_nowait()

    def _listened_error(self) -> OperationNotSupportedError:
        self._check_open()
        return OperationNotSupportedError(
            f"{self._subject()}: receiving is not allowed with a message_listener"
        )

    async def receive(self, timeout_millis: int | None = None) -> Message[T_co]:
        """The next message; waits for one.

        Raises:
            ClientTimeoutError: None came within `timeout_millis`.
            AlreadyClosedError: The consumer is closed.
            OperationNotSupportedError: It has a `message_listener`.
        """
        if self._listener is not None:
            raise self._listened_error()
        return await self._receive(timeout_millis)

    async def receive_for_listener(self) -> Message[T_co]:
        """The next message for the listener; for parts of this package only."""
        return await self._receive(None)

    async def _receive(self, timeout_millis: int | None) -> Message[T_co]:
        # Hot path: consume of a partitioned topic in `make bench-client`.
        message = None if self._is_draining else self._receiver.receive_nowait()
        if message is not None:
            return message
        self._check_receiving()
        try:
            return await self._receiver.receive(
                None if timeout_millis is None else timeout_millis / 1000
            )
        except TimeoutError:
            raise ClientTimeoutError(
                f"no message within {timeout_millis} ms for {self._subscription_name} on "
                f"{self.topic()}"
            ) from None

    async def batch_receive(self) -> list[Message[T_co]]:
        """Several messages, by `batch_receive_policy`; empty if its time passed without any.

        Raises:
            AlreadyClosedError: The consumer is closed.
            OperationNotSupportedError: It has a `message_listener`.
        """
        self._check_receiving()
        if self._listener is not None:
            raise self._listened_error()
        return await self._receiver.batch_receive(self._config.batch_receive_policy)

    def __aiter__(self) -> AsyncIterator[Message[T_co]]:
        """Messages until the consumer is closed, or drained: see `Consumer.drain`."""
        return self._loops.begin()

    async def __anext__(self) -> Message[T_co]:
        """The next message."""
        try:
            return await self.receive()
        except AlreadyClosedError:
            raise StopAsyncIteration from None

    # --- acknowledging -------------------------------------------------------------------------

    async def acknowledge(
        self, message: Message | MessageId | Sequence[Message | MessageId]
    ) -> None:
        """Acknowledge messages; see `Consumer.acknowledge`.

        Raises:
            InvalidMessageError: One came from none of the topics; nothing is acknowledged then.
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: With receipts: the broker did not confirm it.
        """
        # Hot path: consume of a partitioned topic in `make bench-client`.
        part: Consumer[T_co] | None
        if type(message) is Message:
            part = self._parts_by_topic.get(message.entry.topic)
            if part is not None:
                await part.acknowledge(message)
                return
        if isinstance(message, Message | MessageId):
            part = self._part_of(message)
            if part is not None:
                await part.acknowledge(message)
            return
        by_part: dict[Consumer[T_co], list[Message | MessageId]] = {}
        for each in messages_of(message, self._subject()):
            if (part := self._part_of(each)) is not None:
                by_part.setdefault(part, []).append(each)
        await each_result(lambda item: item[0].acknowledge(item[1]), by_part.items())

    def acknowledge_all(self, messages: Iterable[Message]) -> None:
        """As `Consumer.acknowledge_all`; those of topics that were removed are ignored."""
        for topic, run in groupby(messages, lambda message: message.entry.topic):
            if (part := self._parts_by_topic.get(topic)) is not None:
                part.acknowledge_all(run)

    async def acknowledge_cumulative(self, message: Message | MessageId | MultiMessageId) -> None:
        """Acknowledge all messages of a topic up to this one; with a `MultiMessageId`, of several.

        Raises as `acknowledge`, and as `Consumer.acknowledge_cumulative`.
        """
        if isinstance(message, MultiMessageId):
            await each_result(self.acknowledge_cumulative, last_of(message))
            return
        part = self._part_of(message)
        if part is not None:
            await part.acknowledge_cumulative(message)

    def negative_acknowledge(self, message: Message | MessageId) -> Awaitable[None]:
        """Deliver this message again, after the delay that was configured.

        See `Consumer.negative_acknowledge`; raises as it and `acknowledge`.
        """
        part = self._part_of(message)
        if part is not None:
            part.negative_acknowledge(message)
        return FINISHED

    async def reconsume_later(
        self,
        message: Message,
        delay_millis: int = 0,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Deliver a copy of this message after a delay, by way of the retry topic.

        The delay is as exact as that of `deliver_after` of `Producer.send`. There is none if the
        subscription is neither Shared nor Key_Shared: the copy comes at once.

        After `max_redeliver_count` times it goes to the dead-letter topic instead. `properties` are
        added to the copy's.

        Raises:
            OperationNotSupportedError: The consumer has no `retry_enable`.
            PulsarError: The copy could not be published; the message stays unacknowledged.
        """
        part = self._part_of(message)
        if part is not None:
            await part.reconsume_later(message, delay_millis, properties)

    def redeliver_unacknowledged_messages(self) -> Awaitable[None]:
        """As `Consumer.redeliver_unacknowledged_messages`, of all topics."""
        self._check_open()
        for part in self._all_parts():
            part.redeliver_unacknowledged_messages()
        return FINISHED

    # --- positions -----------------------------------------------------------------------------

    async def seek(self, target: SeekTarget) -> None:
        """Move the subscription: to earliest, latest or a time everywhere, or topic by topic.

        Args:
            target: For all topics: `MessageId.earliest`, `MessageId.latest`, or a publish time in
                milliseconds. For one topic: an id of it. For some: a mapping from full names to
                ids, or a function from full names to an id, milliseconds, or None for not at
                all.

        Raises:
            InvalidConfigurationError: It is something else, or a time below 0.
            InvalidMessageError: An id belongs to none of the topics.
            ServiceError, ClientError: The error of the first topic that could not be moved.
        """
        self._check_open()
        check_seek_target(target)
        targets = seek_targets(target, self._parts_by_topic)
        parts = self._parts_by_topic
        await each_result(lambda item: parts[item[0]].seek(item[1]), targets.items())

    async def get_last_message_ids(self) -> list[TopicMessageId]:
        """The last message of each topic or partition."""
        self._check_open()
        parts = dict(self._parts.by_topic)
        ids = await each_result(lambda part: part.get_last_message_id(), parts.values())
        return last_of(dict(zip(parts, ids, strict=True)))

    async def get_last_message_id(self) -> MultiMessageId:
        """The last message of each topic or partition, as one value."""
        return newest_by_topic(await self.get_last_message_ids())

    async def has_message_available(self) -> bool:
        """Whether any topic has a message after the last one that was received."""
        self._check_open()
        return any(await each_result(lambda part: part.has_message_available(), self._all_parts()))

    # --- pausing -------------------------------------------------------------------------------

    def pause(self) -> None:
        """Ask the brokers for no more messages until `resume`; new topics start paused, too."""
        self._is_paused = True
        for part in self._all_parts():
            part.pause()

    def resume(self) -> None:
        """Ask for messages again."""
        self._is_paused = False
        for part in self._all_parts():
            part.resume()

    def pause_message_listener(self) -> None:
        """Stop calling the listener until `resume_message_listener`.

        Raises:
            OperationNotSupportedError: There is no listener.
        """
        self._listener_or_raise().pause()

    def resume_message_listener(self) -> None:
        """Call the listener again.

        Raises:
            OperationNotSupportedError: There is no listener.
        """
        self._listener_or_raise().resume()

    def _listener_or_raise(self) -> ListenerRunner:
        if self._listener is None:
            raise OperationNotSupportedError(f"{self._subject()} has no message_listener")
        return self._listener

    def __repr__(self) -> str:
        state = state_text(is_closed=self._is_closed, is_connected=self.is_connected())
        return f"{type(self).__name__}({self._subscription_name!r} on {self.topic()}, {state})"


def _generated_name(context: ClientContext) -> str:
    return "".join(context.random.choices(_NAME_LETTERS, k=_NAME_LENGTH))
