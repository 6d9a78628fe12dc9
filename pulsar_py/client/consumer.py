"""The consumer of one topic, or of one partition (edge).

    Receiver           what came and was not handed out; permits
    Acknowledger       what is done and was not sent
    Redeliveries       what was refused or not acknowledged in time
    Positions          start, seek, the topic's last message
    ConnectionHandler  the connection, and a new one when it is lost

The consumer registers with the broker whenever there is a connection (`opened`), passes news from
it to those parts, and the application's calls. What always holds: after a new registration nothing
is here that was received before it; what the application was not given will be delivered again.

A message that is here is received without suspending, and acknowledging without receipts does not
suspend either: a loop that does only this lets others run when the queue is empty.

Source: ConsumerImpl in Pulsar's Java client; section 11 of `spec/wire.md`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pulsar_py.client import consumer_commands
from pulsar_py.client.ack_grouping import (
    AcknowledgmentsGroupingTracker,
    AcknowledgmentsTracker,
    NoAcknowledgmentsTracker,
)
from pulsar_py.client.acknowledger import Acknowledger
from pulsar_py.client.chunk_assembly import ChunkAssembly
from pulsar_py.client.consumer_config import ConsumerConfig
from pulsar_py.client.consumer_interceptor import ConsumerInterceptors
from pulsar_py.client.consumer_schema import ConsumerSchema
from pulsar_py.client.consumer_statistics import BrokerConsumerStatistics
from pulsar_py.client.enums import ConsumerType
from pulsar_py.client.flow_permits import FlowPermits
from pulsar_py.client.incoming_queue import IncomingQueue, Needs
from pulsar_py.client.message import EntryKey, Message, ReceivedEntry, ReceivedMessageId
from pulsar_py.client.positions import Positions
from pulsar_py.client.receiver import Receiver
from pulsar_py.client.redeliveries import Redeliveries
from pulsar_py.client.retries import within
from pulsar_py.client.statistics import ConsumerCounters, ConsumerStatistics
from pulsar_py.common.errors import (
    AlreadyClosedError,
    CumulativeAcknowledgementNotAllowedError,
    InvalidMessageError,
    OperationNotSupportedError,
    PulsarError,
)
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.proto.PulsarApi_pb2 import CommandMessage
from pulsar_py.wire import commands

if TYPE_CHECKING:
    from pulsar_py.client.client_cnx import ClientCnx
    from pulsar_py.client.client_context import ClientContext
    from pulsar_py.client.letters import Letters
    from pulsar_py.client.message_crypto import MessageDecryptor
    from pulsar_py.client.message_listener import ListenerRunner

__all__ = ["Consumer"]

logger = logging.getLogger(__name__)

_NAME_LENGTH = 5
_NAME_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class Consumer:
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
        """Take in what is wanted; nothing happens before `open`."""
        name = TopicName.parse(topic)
        self._context = context
        self._config = config
        self._topic = str(name)
        self._partition_index = name.partition_index
        self._subscription_name = subscription_name
        self._consumer_name = config.consumer_name or "".join(
            context.random.choices(_NAME_LETTERS, k=_NAME_LENGTH)
        )
        self._subject = f"consumer {self._consumer_name} of {subscription_name} on {self._topic}"
        self._consumer_id = context.new_consumer_id()
        self._tasks = TaskOwner(self._subject)
        self._counters = ConsumerCounters(context.clock.monotonic_seconds())
        self._interceptors = ConsumerInterceptors(config.interceptors)
        self._schema = ConsumerSchema(context, self._topic, config.schema)
        self._decryptor = _decryptor_of(config)
        # Grows when what was received is thrown away; Exclusive and Failover only.
        self._epoch = 0
        self._is_batch_index_enabled = config.batch_index_ack_enabled
        self._tracker: AcknowledgmentsTracker
        if name.is_persistent:
            self._tracker = AcknowledgmentsGroupingTracker(
                max_size=config.ack_grouping_max_size,
                is_batch_index_enabled=config.batch_index_ack_enabled,
            )
        else:
            self._tracker = NoAcknowledgmentsTracker()
        self._make_parts(start_message_id)
        # Told of by the broker: Failover, and whether the topic was terminated.
        self._is_active = config.consumer_type is not ConsumerType.Failover
        self._has_reached_end = False
        # The letters and listener that close with the consumer.
        self._letters: Letters | None = None
        self._listener: ListenerRunner | None = None
        # What the broker said last about this consumer, and when.
        self._broker_statistics: tuple[float, BrokerConsumerStatistics] | None = None
        # Done when `close` is; None before it began.
        self._closing: asyncio.Future[None] | None = None
        # Whether it ended without `close`, and whether the broker knows.
        self._is_abandoned = False
        self._has_left = False
        # Whether acknowledging takes nothing but the tracker; False once closing.
        self._is_acknowledging_plainly = not (config.ack_receipt_enabled or self._interceptors)
        # One look-up less a message.
        self._take = self._receiver.take
        # Takes a message over (dead letters); see `redelivery_filter`.
        self._redelivery_filter: Callable[[Message], bool] | None = None
        self._set_before_delivery()

    def _make_parts(self, start_message_id: MessageId | None) -> None:
        context, config, clock = self._context, self._config, self._context.clock
        self._acknowledger = Acknowledger(
            self._tracker,
            consumer_id=self._consumer_id,
            subject=self._subject,
            clock=clock,
            tasks=self._tasks,
            new_request_id=context.new_request_id,
            group_seconds=config.ack_grouping_time_ms / 1000,
            is_receipt_wanted=config.ack_receipt_enabled,
            timeout_seconds=context.config.operation_timeout_seconds,
        )
        self._redeliveries = Redeliveries(
            config,
            clock,
            on_negative_acks=self._on_negative_acks,
            on_ack_timeouts=self._on_ack_timeouts,
            expire_chunks=self._expire_chunks,
        )
        queue = IncomingQueue(
            self._topic,
            self._tracker,
            ChunkAssembly(
                max_pending=config.max_pending_chunked_message,
                expire_seconds=config.expire_time_of_incomplete_chunked_message_ms / 1000,
                is_oldest_acknowledged=config.auto_ack_oldest_chunked_message_on_queue_full,
            ),
            partition_index=self._partition_index,
            decryptor=self._decryptor,
            crypto_failure_action=config.crypto_failure_action,
            decoder=self._schema.decoder,
            is_version_missing=self._schema.is_version_missing,
        )
        self._receiver = Receiver(
            queue,
            FlowPermits(config.receiver_queue_size, is_paused=config.start_paused),
            consumer_id=self._consumer_id,
            subject=self._subject,
            clock=clock,
            tasks=self._tasks,
            tracker=self._tracker,
            acknowledger=self._acknowledger,
            redeliveries=self._redeliveries,
            counters=self._counters,
            prepare=self._prepare,
            is_refused_later=config.is_shared,
        )
        self._handler = context.connection_handler(self._topic, self, description=self._subject)
        self._positions = Positions(
            context,
            self._handler,
            self._receiver,
            consumer_id=self._consumer_id,
            subject=self._subject,
            tracker=self._tracker,
            redeliveries=self._redeliveries,
            start=start_message_id,
            is_inclusive=config.start_message_id_inclusive,
            is_durable=config.is_durable,
            partition_index=self._partition_index,
        )

    def _expire_chunks(self, now: float) -> float | None:
        return self._receiver.expire_chunks(now)

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
            topic: Whole name of a topic without partitions, or of a partition.
            subscription_name: May be any text that is not empty.
            config: Options.
            start_message_id: Where a non-durable subscription begins.

        Raises:
            ServiceError, ClientError: It could not be opened within the operation timeout, and why.
        """
        consumer = cls(context, topic, subscription_name, config, start_message_id=start_message_id)
        try:
            await consumer._handler.open()
        except BaseException as error:
            consumer._abandon(error if isinstance(error, PulsarError) else None)
            raise
        context.register_child(consumer)
        context.statistics.register(consumer)
        return consumer

    # --- what it is ----------------------------------------------------------------------------

    def topic(self) -> str:
        """The whole name of the topic."""
        return self._topic

    def subscription_name(self) -> str:
        """The subscription."""
        return self._subscription_name

    def consumer_name(self) -> str:
        """The name given, or a generated one."""
        return self._consumer_name

    def is_connected(self) -> bool:
        """Whether the broker knows the consumer now."""
        return not self.is_closed and self._handler.is_connected

    @property
    def is_closed(self) -> bool:
        """Whether `close` or `unsubscribe` began."""
        return self._closing is not None or self._is_abandoned

    @property
    def is_active(self) -> bool:
        """Failover: whether this consumer gets the messages; True for other types."""
        return self._is_active

    @property
    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic was terminated and everything was delivered."""
        return self._has_reached_end

    @property
    def on_ready(self) -> Callable[[], None] | None:
        """Called (plainly, on the loop) when messages may have become available.

        For whoever merges several consumers by `receive_nowait` instead of waiting in `receive`.
        """
        return self._receiver.on_ready

    @on_ready.setter
    def on_ready(self, callback: Callable[[], None] | None) -> None:
        self._receiver.on_ready = callback

    @property
    def redelivery_filter(self) -> Callable[[Message], bool] | None:
        """Called with each message before it is handed out.

        True: it was taken over (as a dead letter), so that it is neither delivered nor acknowledged
        here.
        """
        return self._redelivery_filter

    @redelivery_filter.setter
    def redelivery_filter(self, takes_over: Callable[[Message], bool] | None) -> None:
        self._redelivery_filter = takes_over
        self._set_before_delivery()

    def own(self, part: Letters | ListenerRunner) -> None:
        """Close `part` before the consumer; it serves `reconsume_later` or the listener's pause."""
        from pulsar_py.client.letters import Letters  # noqa: PLC0415 - few consumers have any

        if isinstance(part, Letters):
            self._letters = part
        else:
            self._listener = part

    # --- receiving -----------------------------------------------------------------------------

    async def receive(self, timeout_millis: int | None = None) -> Message:
        """The next message; waits for one.

        Raises:
            ClientTimeoutError: None came within `timeout_millis`.
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The consumer ended for good, and why.
        """
        # Hot path: consume in `make bench-client`.
        message = self._take()
        if message is not None:
            return message
        return await self._receiver.receive(
            None if timeout_millis is None else timeout_millis / 1000
        )

    def receive_nowait(self) -> Message | None:
        """The next message if there is one here, else None; see `on_ready`.

        With a receiver queue of 0 there never is one without somebody in `receive`. Raises as
        `receive`.
        """
        return self._take()

    async def batch_receive(self) -> list[Message]:
        """Several messages, by `batch_receive_policy`; empty if its time passed without any.

        Raises as `receive`.
        """
        return await self._receiver.batch_receive(self._config.batch_receive_policy)

    def __aiter__(self) -> Self:
        """Messages until the consumer is closed."""
        return self

    async def __anext__(self) -> Message:
        """The next message."""
        # Hot path: consume in `make bench-client`.
        try:
            message = self._take()
            return message if message is not None else await self._receiver.receive(None)
        except AlreadyClosedError:
            raise StopAsyncIteration from None

    def _set_before_delivery(self) -> None:
        is_plain = (
            self._redelivery_filter is None
            and self._redeliveries.unacked is None
            and not self._interceptors
        )
        self._receiver.before_delivery = None if is_plain else self._before_delivery

    def _before_delivery(self, message: Message) -> Message | None:
        takes_over = self._redelivery_filter
        if takes_over is not None and takes_over(message):
            return None
        if self._redeliveries.unacked is not None:
            self._redeliveries.entry_handed_out(message.entry)
        return self._interceptors.before_consume(self, message)

    async def _prepare(self, needs: Needs) -> None:
        """Get the key or schema that an entry needs; without, it is decoded all the same."""
        seconds = self._context.config.operation_timeout_seconds
        try:
            if needs.is_key_needed and self._decryptor is not None:
                await within(
                    self._decryptor.learn_key(needs.parsed.metadata), seconds, self._subject
                )
            if needs.schema_version is not None:
                await within(self._schema.load(needs.schema_version), seconds, self._subject)
        except PulsarError as error:
            logger.warning("entry not prepared", extra={"who": self._subject, "error": str(error)})

    # --- what became of messages ---------------------------------------------------------------

    async def acknowledge(
        self, message: Message | MessageId | Sequence[Message | MessageId]
    ) -> None:
        """These messages are done: they will not be delivered again.

        Without `ack_receipt_enabled` it returns at once, and what was not sent when the connection
        is lost may be delivered again.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: With receipts: the broker did not confirm, and why.
        """
        # Hot path: consume in `make bench-client`.
        if message.__class__ is Message and self._is_acknowledging_plainly:
            if self._tracker.acknowledge(message.entry, message.batch_index):
                self._entry_acknowledged(message.entry)
            elif self._is_batch_index_enabled:
                self._acknowledger.changed()
            return
        if self.is_closed:
            raise self._closed_error()
        if isinstance(message, Message | MessageId):
            self._acknowledge_one(message)
        else:
            for each in message:
                self._acknowledge_one(each)
        if self._config.ack_receipt_enabled:
            await self._confirmed(message, is_cumulative=False)
        elif self._interceptors:
            self._tell_acknowledged(message, None, is_cumulative=False)

    def _acknowledge_one(self, message: Message | MessageId) -> None:
        if not isinstance(message, Message | ReceivedMessageId):
            self._acknowledge_foreign(message)
            return
        if self._tracker.acknowledge(message.entry, message.batch_index):
            self._entry_acknowledged(message.entry)
        elif self._is_batch_index_enabled:
            self._acknowledger.changed()

    def _entry_acknowledged(self, entry: ReceivedEntry) -> None:
        """The last message of an entry is done."""
        self._counters.acks_sent += entry.batch_size or 1
        if self._redeliveries.is_watching:
            self._redeliveries.entry_acknowledged(entry)
        self._acknowledger.changed()

    def _acknowledge_foreign(self, message_id: MessageId) -> None:
        if not isinstance(message_id, MessageId):
            raise InvalidMessageError(f"{self._subject}: {message_id!r} is no message, nor its id")
        if self._tracker.acknowledge_id(message_id):
            self._counters.acks_sent += message_id.batch_size or 1
            self._redeliveries.acknowledged((message_id.ledger_id, message_id.entry_id))
        self._acknowledger.changed()

    async def _confirmed(
        self, message: Message | MessageId | Sequence[Message | MessageId], *, is_cumulative: bool
    ) -> None:
        try:
            await self._acknowledger.receipt()
        except PulsarError as error:
            self._counters.ack_failures += 1
            self._tell_acknowledged(message, error, is_cumulative=is_cumulative)
            raise
        self._tell_acknowledged(message, None, is_cumulative=is_cumulative)

    def _tell_acknowledged(
        self,
        message: Message | MessageId | Sequence[Message | MessageId],
        error: Exception | None,
        *,
        is_cumulative: bool,
    ) -> None:
        if not self._interceptors:
            return
        messages = [message] if isinstance(message, Message | MessageId) else message
        for each in messages:
            if is_cumulative:
                self._interceptors.on_acknowledge_cumulative(self, _id_of(each), error)
            else:
                self._interceptors.on_acknowledge(self, _id_of(each), error)

    async def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """All messages up to this one are done.

        Raises:
            CumulativeAcknowledgementNotAllowedError: The subscription is Shared or KeyShared.
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: With receipts: the broker did not confirm, and why.
        """
        if self.is_closed:
            raise self._closed_error()
        if self._config.is_shared:
            raise CumulativeAcknowledgementNotAllowedError(
                f"{self._subject}: {self._config.consumer_type.name} acknowledges one by one"
            )
        done = self._tracker.acknowledge_cumulative(_id_of(message))
        self._counters.acks_sent += 1
        if done is not None:
            self._redeliveries.acknowledged_until(done)
            self._acknowledger.changed()
        if self._config.ack_receipt_enabled:
            await self._confirmed(message, is_cumulative=True)
        else:
            self._tell_acknowledged(message, None, is_cumulative=True)

    def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Deliver this message again, after the delay that was configured.

        Of a batch all is delivered again that is not acknowledged then. Unless the subscription is
        Shared or KeyShared all later messages are, too.

        Raises:
            AlreadyClosedError: The consumer is closed.
        """
        if self.is_closed:
            raise self._closed_error()
        if isinstance(message, Message | ReceivedMessageId):
            self._redeliveries.refuse_entry(message.entry)
        else:
            self._redeliveries.refuse((message.ledger_id, message.entry_id), 0)

    async def reconsume_later(
        self,
        message: Message,
        delay_millis: int = 0,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Deliver a copy of this message after a delay, by way of the retry topic.

        Raises:
            OperationNotSupportedError: The consumer has no `retry_enable`.
            PulsarError: The copy could not be published; the message stays unacknowledged.
        """
        if self._letters is None:
            raise OperationNotSupportedError(f"{self._subject}: reconsume_later needs retry_enable")
        await self._letters.reconsume_later(message, delay_millis, properties)

    def _on_negative_acks(self, entries: Sequence[EntryKey]) -> None:
        self._interceptors.on_negative_acks_send(self, entries)
        self.redeliver(entries)

    def _on_ack_timeouts(self, entries: Sequence[EntryKey]) -> None:
        logger.warning(
            "messages not acknowledged in time",
            extra={"who": self._subject, "entries": len(entries)},
        )
        self._interceptors.on_ack_timeout_send(self, entries)
        self.redeliver(entries)

    def redeliver(self, entries: Sequence[EntryKey]) -> None:
        """Ask for those entries again now (for all of them on a subscription not shared)."""
        if not entries or self.is_closed:
            return
        if not self._config.is_shared:
            self.redeliver_unacknowledged_messages()
            return
        self._counters.redeliveries_requested += len(entries)
        cnx = self._handler.cnx
        if cnx is not None:  # else all of them come with the next connection
            self._acknowledger.flush()
            cnx.write(consumer_commands.redeliver(self._consumer_id, entries))

    def redeliver_unacknowledged_messages(self) -> None:
        """Ask for everything again that was delivered and not acknowledged.

        What is in the queue counts as delivered. Without a connection there is nothing to do: the
        next one brings all of it.
        """
        cnx = self._handler.cnx
        if cnx is None or self.is_closed:
            return
        self._counters.redeliveries_requested += 1
        self._acknowledger.flush()
        if not self._config.is_shared:
            self._epoch += 1
        self._redeliveries.clear()
        epoch = None if self._config.is_shared else self._epoch
        cnx.write(consumer_commands.redeliver(self._consumer_id, (), consumer_epoch=epoch))
        self._receiver.clear()

    # --- positions -----------------------------------------------------------------------------

    async def seek(self, target: MessageId | int | Callable[[str], MessageId | int | None]) -> None:
        """Move the subscription, for all its consumers.

        Args:
            target: The message after which to go on (or with it, if `start_message_id_inclusive`);
                or a publish time in milliseconds; or a function from the topic's name to either,
                or to None for not at all.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: It was not moved, or nobody knows.
        """
        self._check_open()
        if callable(target):
            chosen = target(self._topic)
            if chosen is None:
                return
            target = chosen
        await self._positions.seek(target)

    async def get_last_message_id(self) -> MessageId:
        """The topic's last message; ledger and entry -1 if it has none.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        self._check_open()
        return await self._positions.get_last_message_id()

    async def has_message_available(self) -> bool:
        """Whether there is a message after the last one that was received.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        self._check_open()
        return await self._positions.has_message_available()

    # --- pausing and figures -------------------------------------------------------------------

    def pause(self) -> None:
        """Ask the broker for no more messages until `resume`; those here can be received."""
        self._receiver.pause()

    def resume(self) -> None:
        """Ask for messages again."""
        self._receiver.resume()

    def pause_message_listener(self) -> None:
        """Call the message listener no more until `resume_message_listener`."""
        if self._listener is not None:
            self._listener.pause()

    def resume_message_listener(self) -> None:
        """Call the message listener again."""
        if self._listener is not None:
            self._listener.resume()

    def statistics(self) -> ConsumerStatistics:
        """Figures of the interval so far, and totals."""
        self._receiver.count()
        return self._counters.peek(
            self._context.clock.monotonic_seconds(),
            receiver_queue_size=self._receiver.queue.messages_count(),
            unacknowledged=self._unacknowledged(),
        )

    def take_statistics(self, now: float) -> ConsumerStatistics:
        """End the interval; for the client's reporter."""
        self._receiver.count()
        return self._counters.take(
            now,
            receiver_queue_size=self._receiver.queue.messages_count(),
            unacknowledged=self._unacknowledged(),
        )

    def _unacknowledged(self) -> int:
        unacked = self._redeliveries.unacked
        return 0 if unacked is None else len(unacked)

    def statistics_fields(self) -> Mapping[str, str]:
        """What tells this consumer from others in the log."""
        return {
            "topic": self._topic,
            "subscription": self._subscription_name,
            "consumer": self._consumer_name,
        }

    async def broker_statistics(self) -> BrokerConsumerStatistics:
        """What the broker says; asked at most once in `broker_consumer_stats_cache_time_ms`.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        self._check_open()
        now = self._context.clock.monotonic_seconds()
        cached = self._broker_statistics
        if cached is not None and cached[0] > now:
            return cached[1]
        statistics = await self._positions.broker_statistics()
        valid_seconds = self._config.broker_consumer_stats_cache_time_ms / 1000
        self._broker_statistics = (now + valid_seconds, statistics)
        return statistics

    # --- registration: what the ConnectionHandler and ClientCnx call ------------------------------

    async def opened(self, cnx: ClientCnx) -> None:
        """Register with the broker on `cnx`."""
        start = self._positions.next_registration()
        cnx.register_consumer(self._consumer_id, self)
        request_id = cnx.next_request_id()
        frame = consumer_commands.subscribe(
            self._config,
            topic=self._topic,
            subscription_name=self._subscription_name,
            consumer_name=self._consumer_name,
            consumer_id=self._consumer_id,
            request_id=request_id,
            consumer_epoch=self._epoch,
            start_message_id=start,
            schema=self._schema.to_wire(),
            is_reconnecting=self._receiver.last is not None,
        )
        try:
            await cnx.request(
                request_id,
                frame,
                timeout_seconds=self._handler.request_timeout_seconds,
                subject=self._subject,
            )
        except BaseException:  # cancelled and timed out, too: the broker may still say yes
            cnx.unregister_consumer(self._consumer_id)
            if cnx.is_connected:
                cnx.send(commands.close_consumer(self._consumer_id, cnx.next_request_id()))
            raise
        self._acknowledger.connected(cnx)  # before the permits: what is done is not sent again
        self._receiver.connected(cnx)

    def on_connection_failed(self, error: Exception) -> None:
        """There will be no connection any more."""
        self._receiver.fail(error)
        self._acknowledger.abandon()
        self._redeliveries.close()

    def on_message(self, message: CommandMessage, headers_and_payload: bytes) -> None:
        """An entry came."""
        # Hot path: consume in `make bench-client`; once an entry.
        if self._epoch and self._is_stale(message):
            self._receiver.drop_entry(message, headers_and_payload)
        else:
            self._receiver.on_message(message, headers_and_payload)

    def _is_stale(self, message: CommandMessage) -> bool:
        """Whether it was sent before the queue was cleared."""
        return message.HasField("consumer_epoch") and message.consumer_epoch < self._epoch

    def on_batch_end(self) -> None:
        """All that was received in one go is here."""
        if self._redelivery_filter is not None:
            self._receiver.give_up(self._redelivery_filter)
        self._receiver.wake()

    def on_active_consumer_change(self, *, is_active: bool) -> None:
        """A Failover consumer got, or lost, its turn."""
        self._is_active = is_active
        listener = self._config.consumer_event_listener
        if listener is None:
            return
        try:
            if is_active:
                listener.became_active(self, self._partition_index)
            else:
                listener.became_inactive(self, self._partition_index)
        except Exception:  # the application's code must not cost the connection
            logger.exception("consumer event listener failed", extra={"who": self._subject})

    def on_reached_end_of_topic(self) -> None:
        """The topic was terminated, and everything delivered."""
        self._has_reached_end = True

    def on_close_consumer(
        self, cnx: ClientCnx, assigned_url: str | None, assigned_url_tls: str | None
    ) -> None:
        """The broker closed the consumer: register anew."""
        self._disconnected()
        self._handler.connection_closed(cnx, assigned_url, assigned_url_tls)

    def on_topic_migrated(
        self, cnx: ClientCnx, service_url: str | None, service_url_tls: str | None
    ) -> None:
        """The topic lives in another cluster; the broker closes the consumer next."""
        del cnx
        self._handler.topic_migrated(service_url, service_url_tls)

    def on_connection_closed(self, cnx: ClientCnx) -> None:
        """The connection is gone: register anew."""
        self._disconnected()
        self._handler.connection_closed(cnx)

    def _disconnected(self) -> None:
        self._receiver.disconnected()
        self._acknowledger.disconnected()

    # --- the end -------------------------------------------------------------------------------

    def _closed_error(self) -> AlreadyClosedError:
        return AlreadyClosedError(f"{self._subject}: closed")

    def _check_open(self) -> None:
        self._context.check_usable()
        if self.is_closed:
            raise self._closed_error()

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, with its backlog, and close.

        Args:
            force: Also if the subscription has other consumers, who are closed.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The subscription stays, and so does the consumer.
        """
        self._check_open()
        await self._positions.unsubscribe(is_forced=force)
        await self._close(is_registered=False)

    async def close(self) -> None:
        """Leave the subscription; it stays, and what was not acknowledged is delivered again.

        Acknowledgements that wait are sent. Ends within the operation timeout and a little; who
        waits in `receive` gets AlreadyClosedError. May be called again.
        """
        await self._close(is_registered=True)

    async def _close(self, *, is_registered: bool) -> None:
        if self._closing is not None:
            await asyncio.shield(self._closing)
            return
        if self._is_abandoned:
            return
        self._closing = asyncio.get_running_loop().create_future()
        self._is_acknowledging_plainly = False
        self._receiver.close(self._closed_error())
        try:
            for part in (self._listener, self._letters):
                if part is not None:
                    await part.close()
            if is_registered:
                await self._acknowledger.close()
                await self._leave()
            else:
                self._has_left = True
            await self._handler.close()
            await self._tasks.close()
        finally:
            self._abandon(None)
            self._closing.set_result(None)

    def abandon(self) -> None:
        """Leave at once: the broker is told, and nobody waits for anything. May be called again."""
        for part in (self._listener, self._letters):
            if part is not None:
                part.abandon()
        self._is_abandoned = True
        self._is_acknowledging_plainly = False
        self._abandon(None)

    async def _leave(self) -> None:
        """Tell the broker, whose answer is waited for but does not matter."""
        cnx = self._handler.cnx
        if cnx is None:
            return
        cnx.unregister_consumer(self._consumer_id)
        self._has_left = True
        request_id = cnx.next_request_id()
        with suppress(PulsarError):
            await cnx.request(
                request_id,
                commands.close_consumer(self._consumer_id, request_id),
                subject=self._subject,
            )

    def _abandon(self, error: PulsarError | None) -> None:
        """Let go of everything at once."""
        cnx = self._handler.cnx
        if cnx is not None:
            cnx.unregister_consumer(self._consumer_id)
            if not self._has_left:
                self._has_left = True
                cnx.send(commands.close_consumer(self._consumer_id, cnx.next_request_id()))
        self._receiver.close(error or self._closed_error())
        self._acknowledger.abandon()
        self._redeliveries.close()
        self._handler.abandon()
        self._tasks.abandon()
        self._context.unregister_child(self)
        self._context.statistics.unregister(self)
        self._interceptors.close()

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


def _id_of(message: Message | MessageId) -> MessageId:
    return message.message_id() if isinstance(message, Message) else message


def _decryptor_of(config: ConsumerConfig) -> MessageDecryptor | None:
    if config.crypto_key_reader is None:
        return None
    from pulsar_py.client.message_crypto import MessageDecryptor  # noqa: PLC0415 - late

    return MessageDecryptor(config.crypto_key_reader)
