"""The consumer of one topic, or of one partition (edge).

    ConsumerSession           subscribes, and again whenever the connection was lost
        Receiver              messages that were not handed out yet; permits
        Acknowledger          acknowledgements that were not sent yet
        Redeliveries          messages to redeliver: refused, or not acknowledged in time
        SubscriptionPosition  start, seek, the topic's last message
        ConnectionHandler     the connection, and a new one when it is lost
    Settlement                acknowledges and negatively acknowledges messages
    ConsumerStatisticsSource  counts

`Consumer` is their interface to the application, and closes them. What always holds: after a new
registration the queue has nothing that was received before it; the broker delivers again what the
application did not get.

Receiving a message that is in the queue does not suspend, and neither does acknowledging without
receipts: a loop that only does these two lets other tasks run when the queue is empty.

Source: ConsumerImpl in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, Self

from pulsar_py.client.consuming.broker_statistics import BrokerConsumerStatistics
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.consumer_interceptor import ConsumerInterceptors
from pulsar_py.client.consuming.consumer_session import ConsumerSession
from pulsar_py.client.consuming.message_loops import MessageLoops
from pulsar_py.client.consuming.settlement import Settlement
from pulsar_py.client.consuming.statistics_source import ConsumerStatisticsSource
from pulsar_py.client.messages.message import EntryKey, Message, ReceivedEntry
from pulsar_py.client.messages.option_checks import check_seek_target
from pulsar_py.client.shared import absent_names
from pulsar_py.client.shared.absent_names import blocks, lacks
from pulsar_py.client.shared.state_texts import state_text
from pulsar_py.client.shared.statistics import ConsumerStatistics
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.errors import AlreadyClosedError, OperationNotSupportedError, PulsarError
from pulsar_py.common.failures import ErrorsLogged
from pulsar_py.common.loops.finished import FINISHED
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.position import Position

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_context import ClientContext
    from pulsar_py.client.consuming.dead_letter_sender import DeadLetterSender
    from pulsar_py.client.consuming.message_listener import ListenerRunner
    from pulsar_py.client.receiving.receiver import Receiver

__all__ = ["Consumer"]

logger = logging.getLogger(__name__)

_entry_of: Final[Callable[[Message], ReceivedEntry]] = attrgetter("entry")
_batch_index_of: Final[Callable[[Message], int]] = attrgetter("batch_index")


@blocks
@lacks(absent_names.CONSUMER)
class Consumer(Generic[T_co]):
    """Receives the messages of one topic for one subscription. Made by `open`."""

    def __init__(
        self,
        context: ClientContext,
        topic: str,
        subscription_name: str,
        config: ConsumerConfig,
        *,
        start_message_id: MessageId | None = None,
    ) -> None:
        """Make the parts; nothing is sent before `open`."""
        self._context = context
        self._config = config
        interceptors = ConsumerInterceptors(self, config.interceptors)
        self._session = session = ConsumerSession(
            context,
            topic,
            subscription_name,
            config,
            interceptors=interceptors,
            on_active_change=self._on_active_change,
            start_message_id=start_message_id,
        )
        # The session's parts, as attributes of our own: hot paths save a look-up.
        self._subject = session.subject
        self._handler = session.handler
        self._receiver = session.receiver
        self._tracker = session.tracker
        self._acknowledger = session.acknowledger
        self._position = session.position
        self._settlement = Settlement(
            context,
            subject=session.subject,
            tracker=session.tracker,
            acknowledger=session.acknowledger,
            redeliveries=session.redeliveries,
            counters=session.counters,
            interceptors=interceptors,
            consumer_type=config.consumer_type,
            is_receipt_wanted=config.ack_receipt_enabled,
            is_batch_index_enabled=config.batch_index_ack_enabled,
        )
        self._statistics = ConsumerStatisticsSource(
            session.counters,
            session.receiver,
            session.redeliveries,
            context.clock,
            log_fields={
                "topic": session.topic,
                "subscription": session.subscription_name,
                "consumer": session.consumer_name,
            },
            ask_broker=session.position.broker_statistics,
            broker_valid_seconds=config.broker_consumer_stats_cache_time_ms / 1000,
        )
        self._is_batch_index_enabled = config.batch_index_ack_enabled
        # The sender of dead letters and the listener that close with the consumer.
        self._dead_letters: DeadLetterSender | None = None
        self._listener: ListenerRunner | None = None
        # Done when `close` has ended; None before it began.
        self._closing: asyncio.Future[None] | None = None
        # Whether it ended without `close`.
        self._is_abandoned = False
        # Whether `acknowledge` only has to tell the tracker: open, no receipts, no interceptors. A
        # plain attribute, since hot paths of any thread read it.
        self.takes_plain_acks = not (config.ack_receipt_enabled or interceptors)
        self._loops = MessageLoops(self)
        # Bound methods, which saves hot paths a look-up for each message, or each entry.
        self._take = self._receiver.take
        self._entry_done = self._settlement.entry_done

    @classmethod
    async def open(
        cls,
        context: ClientContext,
        topic: str,
        subscription_name: str,
        config: ConsumerConfig,
        *,
        start_message_id: MessageId | None = None,
    ) -> Self:
        """Subscribe; returns when the broker has answered.

        Args:
            context: The client's shared parts.
            topic: Full name of a topic without partitions, or of a partition.
            subscription_name: Any text that is not empty.
            config: The options.
            start_message_id: Where a non-durable subscription begins.

        Raises:
            ServiceError, ClientError: It could not be opened within the operation timeout.
        """
        consumer = cls(context, topic, subscription_name, config, start_message_id=start_message_id)
        try:
            await consumer._handler.open()
        except BaseException as error:  # cancelled, too; raised again
            consumer._abandon(error if isinstance(error, PulsarError) else None)
            raise
        context.register_child(consumer)
        context.statistics.register(consumer._statistics)
        return consumer

    # --- properties ----------------------------------------------------------------------------

    def topic(self) -> str:
        """The full name of the topic or partition."""
        return self._session.topic

    def subscription_name(self) -> str:
        """The name of the subscription."""
        return self._session.subscription_name

    def consumer_name(self) -> str:
        """The option `consumer_name`, or a generated name."""
        return self._session.consumer_name

    def is_connected(self) -> bool:
        """Whether the consumer is registered with its broker now; it reconnects by itself."""
        return not self.is_closed and self._handler.is_connected

    @property
    def is_closed(self) -> bool:
        """Whether `close` or `unsubscribe` began."""
        return self._closing is not None or self._is_abandoned

    @property
    def is_active(self) -> bool:
        """Whether this is the active consumer of a Failover subscription; True for other types."""
        return self._session.is_active

    @property
    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic was terminated and everything was delivered."""
        return self._session.has_reached_end

    @property
    def receiver(self) -> Receiver:
        """The consumer's receiver, for parts of the library that merge several."""
        return self._receiver

    @property
    def redelivery_filter(self) -> Callable[[Message], bool] | None:
        """A function called with each message before it is handed out; None for none.

        If it returns True it has taken the message over (as a dead letter): the consumer neither
        delivers nor acknowledges it.
        """
        return self._session.takes_over

    @redelivery_filter.setter
    def redelivery_filter(self, takes_over: Callable[[Message], bool] | None) -> None:
        self._session.take_over_by(takes_over)

    def own(self, part: DeadLetterSender | ListenerRunner) -> None:
        """Close `part` before the consumer; it serves `reconsume_later` or the listener's pause."""
        from pulsar_py.client.consuming.dead_letter_sender import (  # noqa: PLC0415 - at first use
            DeadLetterSender,
        )

        if isinstance(part, DeadLetterSender):
            self._dead_letters = part
        else:
            self._listener = part

    def _on_active_change(self, is_active: bool, partition_index: int) -> None:  # noqa: FBT001 - a callback
        listener = self._config.consumer_event_listener
        if listener is None:
            return
        # The application's error must not cost the connection.
        extra = {"who": self._subject}
        with ErrorsLogged(logger, "%s: consumer event listener failed", self._subject, extra=extra):
            if is_active:
                listener.became_active(self, partition_index)
            else:
                listener.became_inactive(self, partition_index)

    # --- receiving -----------------------------------------------------------------------------

    async def receive(self, timeout_millis: int | None = None) -> Message[T_co]:
        """The next message; waits for one.

        Raises:
            ClientTimeoutError: None came within `timeout_millis`.
            AlreadyClosedError: The consumer is closed.
            OperationNotSupportedError: It has a `message_listener`.
            ServiceError, ClientError: The consumer ended for good; the error that ended it.
        """
        # Hot path: consume in `make bench-client`.
        if self._listener is not None:
            raise self._listened_error()
        message = self._take()
        if message is not None:
            return message
        self._context.check_loop(self._subject)
        return await self._receiver.receive(
            None if timeout_millis is None else timeout_millis / 1000
        )

    def receive_nowait(self) -> Message[T_co] | None:
        """The next message if there is one in the queue, else None. Raises as `receive`.

        With `receiver_queue_size` 0 there never is one, because only `receive` asks for messages.
        """
        if self._listener is not None:
            raise self._listened_error()
        return self._take()

    async def receive_run(
        self,
        timeout_millis: int,
        *,
        messages_limit: int,
        bytes_limit: int,
        until: EntryKey | None = None,
    ) -> Sequence[Message[T_co]]:
        """Queued messages, up to about the limits; waits for some. For other parts of the library.

        Empty if none came in time, or if the queue is empty and the entry `until` was passed (see
        `passed_key`). With `keeps_batches` a large batch comes alone, as a `ReceivedBatch`. Raises
        as `receive`.
        """
        return await self._receiver.receive_run(
            timeout_millis / 1000, messages_limit, bytes_limit, until
        )

    @property
    def hands_out_runs(self) -> bool:
        """Whether `Receiver.take_run` may be used: nobody has to see messages one by one."""
        return self._listener is None and self._receiver.before_delivery is None

    @property
    def passed_key(self) -> EntryKey:
        """The last entry up to which nothing waits in the queue. For other parts of the library.

        All messages up to it were handed out, or left out (before the start, already acknowledged,
        damaged). (-1, -1) if no entry came since the last registration.
        """
        return self._receiver.queue.passed_key

    async def receive_for_listener(self) -> Message[T_co]:
        """The next message for the listener; for parts of this package only."""
        return self._take() or await self._receive()

    async def _receive(self) -> Message[T_co]:
        """The next message, which has yet to come."""
        self._context.check_loop(self._subject)
        return await self._receiver.receive(None)

    def _listened_error(self) -> PulsarError:
        if self.is_closed:
            return self._closed_error()
        return OperationNotSupportedError(
            f"{self._subject}: receiving is not allowed with a message_listener"
        )

    async def batch_receive(self) -> list[Message[T_co]]:
        """Several messages, by `batch_receive_policy`; empty if its time passed without any.

        Raises as `receive`.
        """
        if self._listener is not None:
            raise self._listened_error()
        self._context.check_loop(self._subject)
        return await self._receiver.batch_receive(self._config.batch_receive_policy)

    def __aiter__(self) -> AsyncIterator[Message[T_co]]:
        """Messages until the consumer is closed, or drained: see `drain`."""
        return self._loops.begin()

    async def __anext__(self) -> Message[T_co]:
        """The next message."""
        # Hot path: consume in `make bench-client`.
        try:
            if self._listener is not None:
                raise self._listened_error()
            return self._take() or await self._receive()
        except AlreadyClosedError:
            raise StopAsyncIteration from None

    # --- acknowledging -------------------------------------------------------------------------

    async def acknowledge(
        self, message: Message | MessageId | Sequence[Message | MessageId]
    ) -> None:
        """Acknowledge messages: they will not be delivered again.

        Without `ack_receipt_enabled` it returns at once. An acknowledgement that was not sent yet
        when the connection is lost may be lost with it, and its message is delivered again.

        Raises:
            InvalidMessageError: One is neither a message nor an id; nothing is acknowledged then.
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: With receipts: the broker did not confirm it.
        """
        # Hot path: consume in `make bench-client`.
        if message.__class__ is Message and self.takes_plain_acks:
            if self._tracker.acknowledge(message.entry, message.batch_index):
                self._entry_done(message.entry)
            elif self._is_batch_index_enabled:
                self._acknowledger.changed()
            return
        if self.is_closed:
            raise self._closed_error()
        await self._settlement.acknowledge(message)

    def acknowledge_all(self, messages: Iterable[Message]) -> None:
        """Acknowledge messages without receipts and interceptors, unless closed.

        For the blocking client, whose threads hand over many at a time.
        """
        # Hot path: consume in `make bench-client`.
        if not self.takes_plain_acks:
            return
        tracker = self._tracker
        for entry, run in groupby(messages, key=_entry_of):
            indexes = list(map(_batch_index_of, run))
            for index in indexes[tracker.count_in_order(entry, indexes) :]:
                if tracker.acknowledge(entry, index):
                    self._entry_done(entry)
                elif self._is_batch_index_enabled:
                    self._acknowledger.changed()

    async def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """Acknowledge all messages of the subscription up to this one.

        Raises:
            CumulativeAcknowledgementNotAllowedError: The subscription is Shared or KeyShared.
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: With receipts: the broker did not confirm it.
        """
        if self.is_closed:
            raise self._closed_error()
        await self._settlement.acknowledge_cumulative(message)

    def negative_acknowledge(self, message: Message | MessageId) -> Awaitable[None]:
        """Deliver this message again, after the delay that was configured.

        It waits for nothing: what it returns may be awaited, and need not be.

        The broker redelivers whole entries. Of a batch all messages come again unless all were
        acknowledged; with `batch_index_ack_enabled` only those that were not. They come once,
        after the delay of the last negative acknowledgement. Unless the subscription is Shared or
        KeyShared all later messages come again, too.

        Raises:
            AlreadyClosedError: The consumer is closed.
        """
        if self.is_closed:
            raise self._closed_error()
        self._settlement.refuse(message)
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

        Raises:
            OperationNotSupportedError: The consumer has no `retry_enable`.
            PulsarError: The copy could not be published; the message stays unacknowledged.
        """
        if self._dead_letters is None:
            raise OperationNotSupportedError(f"{self._subject}: reconsume_later needs retry_enable")
        await self._dead_letters.reconsume_later(message, delay_millis, properties)

    def redeliver(self, entries: Sequence[EntryKey]) -> None:
        """Ask for these entries again now; unless Shared or KeyShared, for all unacknowledged."""
        if not self.is_closed:
            self._session.redeliver(entries)

    def redeliver_unacknowledged_messages(self) -> Awaitable[None]:
        """Ask for everything again that was delivered and not acknowledged.

        Messages in the queue count as delivered. Without a connection there is nothing to do: the
        next one brings all of it. What it returns need not be awaited.
        """
        if not self.is_closed:
            self._session.redeliver_all()
        return FINISHED

    # --- positions -----------------------------------------------------------------------------

    async def seek(self, target: MessageId | int | Callable[[str], MessageId | int | None]) -> None:
        """Move the subscription, for all its consumers.

        Args:
            target: The message after which to go on (or with it, if `start_message_id_inclusive`);
                or `MessageId.earliest`, `MessageId.latest`; or a publish time in milliseconds; or a
                function from the topic's name to one of these, or to None for not at all.

        Raises:
            InvalidConfigurationError: It is something else, or a time below 0.
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: It was not moved, or it is not known whether it was.
        """
        self._check_open()
        check_seek_target(target)
        if callable(target):
            chosen = target(self._session.topic)
            if chosen is None:
                return
            target = chosen
        check_seek_target(target)
        await self._position.seek(target)

    async def get_last_message_id(self) -> MessageId:
        """The topic's last message; ledger and entry -1 if it has none.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        self._check_open()
        return await self._position.get_last_message_id()

    async def ends(self) -> tuple[Position, Position]:
        """The topic's last entry, and the subscription's mark-delete position.

        The broker moves the latter past entries that it delivers to nobody, such as markers. For
        other parts of the library. Raises as `get_last_message_id`.
        """
        self._check_open()
        return await self._position.ends()

    async def has_message_available(self) -> bool:
        """Whether there is a message after the last one that was received.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        self._check_open()
        return await self._position.has_message_available()

    # --- pausing and statistics ----------------------------------------------------------------

    def pause(self) -> None:
        """Ask the broker for no more messages until `resume`; queued ones can be received."""
        self._receiver.pause()

    def resume(self) -> None:
        """Ask for messages again."""
        self._receiver.resume()

    def resize_receiver_queue(self, size: int) -> None:
        """Set `receiver_queue_size`, at least 1; it must not have been 0 before."""
        self._receiver.permits.resize(size)
        self._receiver.drop(0)  # sends the permits that a larger queue allows

    def pause_message_listener(self) -> None:
        """Stop calling the message listener, if there is one, until `resume_message_listener`."""
        if self._listener is not None:
            self._listener.pause()

    def resume_message_listener(self) -> None:
        """Call the message listener again."""
        if self._listener is not None:
            self._listener.resume()

    def statistics(self) -> ConsumerStatistics:
        """The client's counts of the current interval, and since the consumer was made."""
        return self._statistics.peek()

    async def broker_statistics(self) -> BrokerConsumerStatistics:
        """The broker's statistics, cached for `broker_consumer_stats_cache_time_ms`.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        self._check_open()
        return await self._statistics.of_broker()

    # --- closing -------------------------------------------------------------------------------

    def _closed_error(self) -> AlreadyClosedError:
        return AlreadyClosedError(f"{self._subject}: closed")

    def _check_open(self) -> None:
        self._context.check_usable(self._subject)
        if self.is_closed:
            raise self._closed_error()

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, with its backlog, and close.

        Args:
            force: Whether to delete it though it has other consumers, which are closed then.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused or did not answer; the consumer is open.
        """
        self._check_open()
        await self._position.unsubscribe(is_forced=force)
        await self._close(is_registered=False)

    async def close(self) -> None:
        """Leave the subscription; it stays, and what was not acknowledged is delivered again.

        Collected acknowledgements are sent before. Ends within about the operation timeout; callers
        that wait in `receive` get AlreadyClosedError. May be called again.
        """
        await self._close(is_registered=True)

    async def drain(self) -> None:
        """End without losing what is under way, then close; for the end of a service.

        No more messages are handed out. Calls of a `message_listener` that run come to their end,
        and so does what `async for` loops of other tasks do with the message at hand, however long
        that takes: such a loop ends when it asks for the next message, and until then it can
        acknowledge. Then acknowledgements that wait are sent. What was received and not handed out,
        or not acknowledged, goes to other consumers or comes again: tasks that `receive` should be
        done before. Cancelled, it leaves a consumer that receives nothing more; `close` it.

        Raises:
            AlreadyClosedError: The consumer is closed.
        """
        self._check_open()
        self._receiver.pause()
        if self._listener is not None:
            await self._listener.drain()
        self._receiver.close(self._closed_error())
        await self._loops.end()
        await self.close()

    async def _close(self, *, is_registered: bool) -> None:
        if self._closing is not None:
            await asyncio.shield(self._closing)
            return
        if self._is_abandoned:
            return
        self._closing = asyncio.get_running_loop().create_future()
        self.takes_plain_acks = False
        self._receiver.close(self._closed_error())
        try:
            for part in (self._listener, self._dead_letters):
                if part is not None:
                    await part.close()
            if is_registered:
                await self._acknowledger.close()
                await self._session.leave()
            else:
                self._session.has_left = True
            await self._handler.close()
            await self._session.tasks.close()
        finally:
            self._abandon(None)
            self._closing.set_result(None)

    def abandon(self) -> None:
        """Leave at once: CLOSE_CONSUMER is sent, and no answer awaited. May be called again."""
        for part in (self._listener, self._dead_letters):
            if part is not None:
                part.abandon()
        self._is_abandoned = True
        self.takes_plain_acks = False
        self._abandon(None)

    def _abandon(self, error: PulsarError | None) -> None:
        """End the parts at once; callers that wait get `error`, or AlreadyClosedError."""
        self._session.abandon(error or self._closed_error())
        self._context.unregister_child(self)
        self._context.statistics.unregister(self._statistics)

    def __repr__(self) -> str:
        state = state_text(is_closed=self.is_closed, is_connected=self.is_connected())
        return f"Consumer({self._subject.removeprefix('consumer ')}, {state})"

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
