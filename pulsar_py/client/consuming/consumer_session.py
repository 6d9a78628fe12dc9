"""Subscribes one consumer at its broker, and again whenever the connection is lost (edge).

`ConsumerSession` owns the parts of a consumer, and is called by its ConnectionHandler and
ClientCnx. Each registration begins with an empty queue: what was received before is dropped, and
comes again unless it was acknowledged. A queue that is cleared without a new registration (a
redelivery on an Exclusive or Failover subscription) begins a new consumer epoch, which tells
entries that were under way from those that come again.

Source: ConsumerImpl in Pulsar's Java client.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from pulsar_py.client.acknowledging import ack_commands
from pulsar_py.client.acknowledging.ack_grouping import (
    AcknowledgmentsGroupingTracker,
    AcknowledgmentsTracker,
    NoAcknowledgmentsTracker,
)
from pulsar_py.client.acknowledging.acknowledger import Acknowledger
from pulsar_py.client.acknowledging.negative_acks import NegativeAcksTracker
from pulsar_py.client.acknowledging.redeliveries import Redeliveries
from pulsar_py.client.acknowledging.unacked_tracker import unacked_tracker
from pulsar_py.client.brokers.connection_handler import ConnectionHandler
from pulsar_py.client.consuming import subscribe_command
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.interceptor_calls import InterceptorCalls
from pulsar_py.client.consuming.subscription_position import SubscriptionPosition
from pulsar_py.client.messages.message import EntryKey, Message
from pulsar_py.client.receiving.chunk_assembly import ChunkAssembly
from pulsar_py.client.receiving.consumer_schema import ConsumerSchema
from pulsar_py.client.receiving.entry_decoder import MAX_INFLATED_BYTES
from pulsar_py.client.receiving.flow_permits import FlowPermits
from pulsar_py.client.receiving.incoming_queue import IncomingQueue, Needs
from pulsar_py.client.receiving.receiver import Receiver
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.client.shared.retries import within
from pulsar_py.client.shared.statistics import ConsumerCounters
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import PulsarError
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import CommandMessage
from pulsar_py.wire import commands

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_cnx import ClientCnx
    from pulsar_py.client.brokers.client_context import ClientContext
    from pulsar_py.client.brokers.handlers import BrokerConnection
    from pulsar_py.client.security.message_crypto import MessageDecryptor

__all__ = ["ConsumerSession"]

logger = logging.getLogger(__name__)

_NAME_LENGTH = 5
_NAME_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class ConsumerSession:
    """One consumer's parts and registration. Made by the consumer, lives as long."""

    def __init__(
        self,
        context: ClientContext,
        topic: str,
        subscription_name: str,
        config: ConsumerConfig,
        *,
        interceptors: InterceptorCalls,
        on_active_change: Callable[[bool, int], None],
        start_message_id: MessageId | None,
    ) -> None:
        """Make the parts; nothing happens before the handler is opened.

        Args:
            context: The client's shared parts.
            topic: Full name of a topic without partitions, or of a partition.
            subscription_name: Any text that is not empty.
            config: The options.
            interceptors: Called with messages and redeliveries.
            on_active_change: Called with whether a Failover consumer is active, and the partition's
                index (-1: none).
            start_message_id: Where a non-durable subscription begins.
        """
        name = TopicName.parse(topic)
        self._context = context
        self._config = config
        self.topic = str(name)
        self._partition_index = name.partition_index
        self.subscription_name = subscription_name
        self.consumer_name = config.consumer_name or "".join(
            context.random.choices(_NAME_LETTERS, k=_NAME_LENGTH)
        )
        self.subject = f"consumer {self.consumer_name} of {subscription_name} on {self.topic}"
        self._consumer_id = context.new_consumer_id()
        self.tasks = TaskOwner(self.subject)
        self.counters = ConsumerCounters(context.clock.monotonic_seconds())
        self._interceptors = interceptors
        self._on_active_change = on_active_change
        self._schema = ConsumerSchema(context, self.topic, config.schema)
        self._decryptor = _decryptor_of(config)
        # The consumer epoch: counts clearings of the queue; Exclusive and Failover only.
        self._epoch = 0
        self.tracker: AcknowledgmentsTracker
        if name.is_persistent:
            self.tracker = AcknowledgmentsGroupingTracker(
                max_size=config.ack_grouping_max_size,
                is_batch_index_enabled=config.batch_index_ack_enabled,
            )
        else:
            self.tracker = NoAcknowledgmentsTracker()
        self._make_parts(start_message_id)
        # What the broker reported last: the active Failover consumer, the end of the topic.
        self.is_active = config.consumer_type is not ConsumerType.Failover
        self.has_reached_end = False
        # Whether CLOSE_CONSUMER was sent, or the broker has closed the consumer.
        self.has_left = False
        # The dead-letter filter; see `Consumer.redelivery_filter`.
        self._takes_over: Callable[[Message], bool] | None = None
        self.take_over_by(None)

    def _make_parts(self, start_message_id: MessageId | None) -> None:
        context, config, clock = self._context, self._config, self._context.clock
        self.acknowledger = Acknowledger(
            self.tracker,
            consumer_id=self._consumer_id,
            subject=self.subject,
            clock=clock,
            tasks=self.tasks,
            new_request_id=context.new_request_id,
            group_seconds=config.ack_grouping_time_ms / 1000,
            is_receipt_wanted=config.ack_receipt_enabled,
            timeout_seconds=context.config.operation_timeout_seconds,
        )
        self.redeliveries = self._make_redeliveries()
        queue = IncomingQueue(
            self.topic,
            self.tracker,
            ChunkAssembly(
                max_pending=config.max_pending_chunked_message,
                expire_seconds=config.expire_time_of_incomplete_chunked_message_ms / 1000,
                is_oldest_acknowledged=config.auto_ack_oldest_chunked_message_on_queue_full,
                listener=config.chunk_listener,
            ),
            partition_index=self._partition_index,
            decryptor=self._decryptor,
            crypto_failure_action=config.crypto_failure_action,
            decoder=self._schema.decoder,
            is_version_missing=self._schema.is_version_missing,
            keeps_batches=config.keeps_batches,
            problem_listener=config.problem_listener,
            max_inflated_bytes=config.max_uncompressed_message_bytes or MAX_INFLATED_BYTES,
        )
        self.receiver = Receiver(
            queue,
            FlowPermits(config.receiver_queue_size, is_paused=config.start_paused),
            consumer_id=self._consumer_id,
            subject=self.subject,
            clock=clock,
            tasks=self.tasks,
            tracker=self.tracker,
            acknowledger=self.acknowledger,
            redeliveries=self.redeliveries,
            counters=self.counters,
            prepare=self._prepare,
            load_schema=self._load_schema,
            is_refused_later=config.is_shared,
        )
        self.handler = ConnectionHandler(context, self.topic, self, description=self.subject)
        self.position = SubscriptionPosition(
            context,
            self.handler,
            self.receiver,
            consumer_id=self._consumer_id,
            subject=self.subject,
            tracker=self.tracker,
            redeliveries=self.redeliveries,
            start=start_message_id,
            is_inclusive=config.start_message_id_inclusive,
            is_durable=config.is_durable,
            partition_index=self._partition_index,
        )

    def _make_redeliveries(self) -> Redeliveries:
        config = self._config
        return Redeliveries(
            self._context.clock,
            NegativeAcksTracker(
                config.negative_ack_redelivery_delay_ms / 1000,
                config.negative_ack_redelivery_backoff,
            ),
            unacked_tracker(
                config.unacked_messages_timeout_ms,
                config.unacked_messages_tick_ms,
                config.ack_timeout_redelivery_backoff,
            ),
            on_negative_acks=self._on_negative_acks,
            on_ack_timeouts=self._on_ack_timeouts,
            expire_chunks=self._expire_chunks,
        )

    def _expire_chunks(self, now: float) -> float | None:
        return self.receiver.expire_chunks(now, is_active=self.is_active)

    # --- before messages are handed out -----------------------------------------------------------

    @property
    def takes_over(self) -> Callable[[Message], bool] | None:
        """See `Consumer.redelivery_filter`."""
        return self._takes_over

    def take_over_by(self, takes_over: Callable[[Message], bool] | None) -> None:
        """Set `Consumer.redelivery_filter`."""
        self._takes_over = takes_over
        is_plain = (
            takes_over is None and self.redeliveries.unacked is None and not self._interceptors
        )
        self.receiver.before_delivery = None if is_plain else self._before_delivery

    def _before_delivery(self, message: Message) -> Message | None:
        takes_over = self._takes_over
        if takes_over is not None and takes_over(message):
            return None
        if self.redeliveries.unacked is not None:
            self.redeliveries.entry_handed_out(message.entry)
        return self._interceptors.before_consume(message)

    async def _prepare(self, needs: Needs) -> None:
        """Get the key or schema that an entry needs; if that fails, decoding reports why."""
        if needs.is_key_needed and self._decryptor is not None:
            await self._prepared(self._decryptor.learn_key(needs.parsed.metadata))
        if needs.schema_version is not None:
            await self._load_schema(needs.schema_version)

    async def _load_schema(self, version: bytes) -> None:
        await self._prepared(self._schema.load(version))

    async def _prepared(self, work: Awaitable[None]) -> None:
        seconds = self._context.config.operation_timeout_seconds
        try:
            await within(work, seconds, self.subject)
        except PulsarError as error:
            logger.warning(
                "%s: entry not prepared: %s",
                self.subject,
                error,
                extra={"who": self.subject, "error": str(error)},
            )

    # --- redelivery ----------------------------------------------------------------------------

    def _on_negative_acks(self, entries: Sequence[EntryKey]) -> None:
        self._interceptors.on_negative_acks_send(entries)
        self.redeliver(entries)

    def _on_ack_timeouts(self, entries: Sequence[EntryKey]) -> None:
        logger.warning(
            "%s: %d entries not acknowledged in time, they are asked for again",
            self.subject,
            len(entries),
            extra={"who": self.subject, "entries": len(entries)},
        )
        self._interceptors.on_ack_timeout_send(entries)
        self.redeliver(entries)

    def redeliver(self, entries: Sequence[EntryKey]) -> None:
        """See `Consumer.redeliver`."""
        cnx = self.handler.cnx
        if not entries or cnx is None:  # without a connection: the next one brings them
            return
        if not self._config.is_shared:
            self.redeliver_all()
            return
        self.counters.redeliveries_requested += len(entries)
        # First what is acknowledged: the broker would redeliver it with the rest.
        self.acknowledger.flush()
        cnx.write(ack_commands.redeliver(self._consumer_id, entries))

    def redeliver_all(self) -> None:
        """Ask for everything again that was delivered and not acknowledged.

        Messages in the queue count as delivered. Without a connection there is nothing to do: the
        next one brings all of it.
        """
        cnx = self.handler.cnx
        if cnx is None:
            return
        self.counters.redeliveries_requested += 1
        self.acknowledger.flush()
        # Consumer epochs are for Exclusive and Failover subscriptions (PIP-84).
        if not self._config.is_shared:
            self._epoch += 1
        self.redeliveries.clear()
        epoch = None if self._config.is_shared else self._epoch
        cnx.write(ack_commands.redeliver(self._consumer_id, (), consumer_epoch=epoch))
        self.receiver.clear()

    # --- what the ConnectionHandler and ClientCnx call -------------------------------------------

    async def opened(self, cnx: ClientCnx) -> None:
        """Register with the broker on `cnx`."""
        start = self.position.next_registration()
        cnx.register_consumer(self._consumer_id, self)
        request_id = cnx.next_request_id()
        frame = subscribe_command.subscribe(
            self._config,
            topic=self.topic,
            subscription_name=self.subscription_name,
            consumer_name=self.consumer_name,
            consumer_id=self._consumer_id,
            request_id=request_id,
            consumer_epoch=self._epoch,
            start_message_id=start,
            schema=self._schema.to_wire(),
            is_reconnecting=self.receiver.last is not None,
        )
        # Cancelled and timed out, too: the broker may still create the consumer.
        with OnFailure(partial(self._unregister, cnx)):
            await cnx.request(
                request_id,
                frame,
                timeout_seconds=self.handler.request_timeout_seconds,
                subject=self.subject,
            )
        self.acknowledger.connected(
            cnx
        )  # before the permits, so that the broker does not send what is acknowledged
        self.receiver.connected(cnx)

    def _unregister(self, cnx: ClientCnx) -> None:
        cnx.unregister_consumer(self._consumer_id)
        if cnx.is_connected:
            cnx.send(commands.close_consumer(self._consumer_id, cnx.next_request_id()))

    def on_connection_failed(self, error: Exception) -> None:
        """The consumer has ended: callers that wait get the error."""
        self.receiver.fail(error)
        self.acknowledger.abandon()
        self.redeliveries.close()

    def on_message(
        self,
        message: CommandMessage,
        headers_and_payload: EntryBytes,
        key: EntryKey | None = None,
    ) -> None:
        """An entry came; see `ConsumerHandler`."""
        # Hot path: consume in `make bench-client`; once an entry.
        if self._epoch and self._is_stale(message):
            self.receiver.drop_entry(message, headers_and_payload)
        else:
            self.receiver.on_message(message, headers_and_payload, key)

    def takes_in_turn(self, message: CommandMessage) -> bool:
        """Whether `take_in_turn` may be called for it."""
        # Hot path: latency in `make bench-client`, blocking.
        return self.receiver.takes_in_turn and not (self._epoch and self._is_stale(message))

    def take_in_turn(
        self, message: CommandMessage, headers_and_payload: EntryBytes, key: EntryKey | None
    ) -> list[Message]:
        """An entry came, and a thread takes its messages; see `ConsumerHandler`."""
        # Hot path: latency in `make bench-client`, blocking.
        return self.receiver.take_in_turn(message, headers_and_payload, key)

    @property
    def has_to_go_on(self) -> bool:
        """Whether a `take_in_turn` has left something to the loop."""
        return self.receiver.has_to_go_on

    def go_on(self) -> None:
        """Do what a `take_in_turn` has left to the loop."""
        self.receiver.go_on()

    def _is_stale(self, message: CommandMessage) -> bool:
        """Whether it was sent before the queue was cleared: its epoch is an older one."""
        return message.HasField("consumer_epoch") and message.consumer_epoch < self._epoch

    def on_batch_end(self) -> None:
        """All that was received in one read is in the queue: wake waiters, send permits."""
        if self._takes_over is not None:
            self.receiver.give_up(self._takes_over)
        self.receiver.wake()

    @property
    def is_awaited(self) -> bool:
        """Whether a thread waits for the next message."""
        is_awaited = self.receiver.is_awaited
        return is_awaited is not None and is_awaited()

    def on_active_consumer_change(self, *, is_active: bool) -> None:
        """A Failover consumer became the active one, or ceased to be it."""
        self.is_active = is_active
        self._on_active_change(is_active, self._partition_index)

    def on_reached_end_of_topic(self) -> None:
        """The topic was terminated, and everything delivered."""
        self.has_reached_end = True

    def on_close_consumer(
        self, cnx: BrokerConnection, assigned_url: str | None, assigned_url_tls: str | None
    ) -> None:
        """The broker closed the consumer: register anew."""
        self.position.closed_by_broker()
        self._disconnected()
        self.handler.connection_closed(cnx, assigned_url, assigned_url_tls)

    def on_topic_migrated(
        self, cnx: BrokerConnection, service_url: str | None, service_url_tls: str | None
    ) -> None:
        """The topic lives in another cluster; the broker closes the consumer next."""
        del cnx
        self.handler.topic_migrated(service_url, service_url_tls)

    def on_connection_closed(self, cnx: BrokerConnection) -> None:
        """The connection is gone: register anew."""
        self._disconnected()
        self.handler.connection_closed(cnx)

    def _disconnected(self) -> None:
        self.receiver.disconnected()
        self.acknowledger.disconnected()

    # --- closing ---------------------------------------------------------------------------------

    async def leave(self) -> None:
        """Send CLOSE_CONSUMER, and wait for the answer, whatever it is."""
        cnx = self.handler.cnx
        if cnx is None:
            return
        # Unregistered before the request, so that entries that still come are dropped.
        cnx.unregister_consumer(self._consumer_id)
        self.has_left = True
        request_id = cnx.next_request_id()
        with suppress(PulsarError):
            await cnx.request(
                request_id,
                commands.close_consumer(self._consumer_id, request_id),
                subject=self.subject,
            )

    def abandon(self, error: Exception) -> None:
        """End the parts at once; callers that wait get `error`."""
        cnx = self.handler.cnx
        if cnx is not None:
            cnx.unregister_consumer(self._consumer_id)
            if not self.has_left:
                self.has_left = True
                cnx.send(commands.close_consumer(self._consumer_id, cnx.next_request_id()))
        self.receiver.close(error)
        self.acknowledger.abandon()
        self.redeliveries.close()
        self.handler.abandon()
        self.tasks.abandon()
        self._interceptors.close()


def _decryptor_of(config: ConsumerConfig) -> MessageDecryptor | None:
    if config.crypto_key_reader is None:
        return None
    from pulsar_py.client.security.message_crypto import MessageDecryptor  # noqa: PLC0415 - at first use

    return MessageDecryptor(config.crypto_key_reader)
