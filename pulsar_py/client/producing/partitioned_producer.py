"""The producer of a topic with partitions: one TopicProducer for each, and a router (edge).

Partitions share the schema, the counters, and the producer name that the broker gave to the first
of them. A lazily started partition opens with its first message, which waits meanwhile. Once a
minute the broker is asked for the number of partitions; new ones are opened before messages are
routed there.

Source: PartitionedProducerImpl in Pulsar's Java client.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.message_router import CustomRouter, message_router
from pulsar_py.client.producing.producer import Producer
from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.producing.producer_interceptor import ProducerInterceptors
from pulsar_py.client.producing.producer_schema import ProducerSchema
from pulsar_py.client.producing.send_result import PlainSends, SendResult
from pulsar_py.client.producing.topic_producer import TopicProducer
from pulsar_py.client.shared.statistics import ProducerCounters, ProducerStatistics
from pulsar_py.client.shared.type_variables import T_contra
from pulsar_py.common.errors import AlreadyClosedError, PulsarError
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.concurrently import concurrently, each_result
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import TopicName

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_context import ClientContext

__all__ = ["PartitionedProducer", "open_partitioned", "pending_messages_limit"]

logger = logging.getLogger(__name__)


def pending_messages_limit(config: ProducerConfig, partitions_count: int) -> int:
    """`max_pending_messages` of each partition: its own option, or its share of the total if less.

    0 for no limit.
    """
    own, total = config.max_pending_messages, config.max_pending_messages_across_partitions
    share = max(total // partitions_count, 1) if total else 0
    if own and share:
        return min(own, share)
    return own or share


class PartitionedProducer(Producer[T_contra]):
    """Sends to the partitions of one topic. Made by `Client.create_producer`.

    Invariant: `_producers` has an item for each partition of the router; None for a partition
    whose producer was not started yet (`lazy_start_partitioned_producers`).
    """

    def __init__(
        self,
        context: ClientContext,
        topic: TopicName,
        config: ProducerConfig,
        values: ProducerSchema,
        partitions_count: int,
    ) -> None:
        """Nothing is sent before `open`."""
        self._context = context
        self._clock = context.clock
        self._topic = topic
        self._config = config
        self._values = values
        self._interceptors = ProducerInterceptors(config.interceptors)
        self._router = message_router(config, context.random)
        self._is_plain = (
            values.takes_bytes
            and not self._interceptors
            and not isinstance(self._router, CustomRouter)
        )
        self._counters = ProducerCounters(self._clock.monotonic_seconds())
        self._producers: list[TopicProducer | None] = [None] * partitions_count
        # The name that the broker gave to the first partition's producer; the others use it, too.
        self._name: str | None = None
        self._tasks = TaskOwner(f"producer of {topic}")
        self._refusal: Exception | None = None

    async def open(self) -> None:
        """Return when all partitions are open, or the first one if they start lazily.

        Raises:
            ServiceError, ClientError: One could not be opened; the others are closed again.
        """
        first = self._router.first_partition(len(self._producers))
        async with OnFailureAwait(self._close_started):
            await self._open(first)
            self._name = self._started[0].producer_name()
            if not self._config.lazy_start_partitioned_producers:
                rest = [each for each in range(len(self._producers)) if each != first]
                await each_result(self._open, rest)
        if self._config.auto_update_partitions:
            self._tasks.spawn(self._watch_partitions(), "partitions")

    async def _close_started(self) -> None:
        self._refusal = AlreadyClosedError(f"{self._topic}: the producer was not opened")
        await concurrently(TopicProducer.close, self._started)

    async def _open(self, partition: int) -> None:
        producer = self._make(partition, len(self._producers))
        await producer.open()
        self._producers[partition] = producer

    def _make(self, partition: int, partitions_count: int) -> TopicProducer:
        return TopicProducer(
            self._context,
            str(self._topic.partition(partition)),
            self._config,
            self._values,
            partition_index=partition,
            shared_name=self._name,
            max_pending_messages=pending_messages_limit(self._config, partitions_count),
            counters=self._counters,
        )

    @property
    def _started(self) -> list[TopicProducer]:
        return [each for each in self._producers if each is not None]

    # --- sending -------------------------------------------------------------------------------

    def _send_plain(self, content: Any) -> SendResult:  # Any: as `send_nowait`
        # Hot path: produce to partitions in `make bench-client`.
        if type(content) is not bytes or not self._is_plain:
            return self._send_message(OutgoingMessage(content))
        partition = self._router.choose_plain(
            len(content), self._clock.monotonic_seconds(), len(self._producers)
        )
        producer = self._producers[partition] or self._start(partition)
        return producer.submit_plain(content)

    def submit_plain_run(self, payloads: Sequence[bytes]) -> Sequence[PlainSends]:
        """As `Producer.submit_plain_run`: each message has a partition of its own."""
        del payloads
        return ()

    def _send_message(self, message: OutgoingMessage) -> SendResult:
        if self._interceptors:
            return self._interceptors.submit_nowait(self, message, self._route_nowait)
        return self._route_nowait(message)

    def _route_nowait(self, message: OutgoingMessage) -> SendResult:
        return self._producer_for(message).submit_nowait(message)

    async def submit_waiting(self, message: OutgoingMessage) -> SendResult:
        """As `Producer.submit_waiting`."""
        if self._interceptors:
            return await self._interceptors.submit(self, message, self._route)
        return await self._route(message)

    def _route(self, message: OutgoingMessage) -> Awaitable[SendResult]:
        return self._producer_for(message).submit(message)

    def _producer_for(self, message: OutgoingMessage) -> TopicProducer:
        self._values.encode(message)
        partition = self._router.choose(
            message, self._clock.monotonic_seconds(), len(self._producers)
        )
        return self._producers[partition] or self._start(partition)

    def _start(self, partition: int) -> TopicProducer:
        if self._refusal is not None:
            raise self._refusal
        producer = self._make(partition, len(self._producers))
        producer.start()
        self._producers[partition] = producer
        return producer

    # --- growth --------------------------------------------------------------------------------

    async def _watch_partitions(self) -> None:
        while True:
            await self._clock.sleep(self._config.auto_update_partitions_interval_seconds)
            try:
                await self.update_partitions()
            except PulsarError as error:
                logger.warning(
                    "%s: the number of partitions could not be read: %s",
                    self._topic,
                    error,
                    extra={"topic": str(self._topic), "error": str(error)},
                )

    async def update_partitions(self) -> None:
        """Ask for the number of partitions, and use those that were added.

        Raises:
            ServiceError, ClientError: No answer, or a new partition could not be opened; none of
                the new ones is used then.
        """
        count = await self._context.partitions_count(str(self._topic))
        known = len(self._producers)
        if count < known:
            logger.warning(
                "%s: %d partitions, fewer than the %d known",
                self._topic,
                count,
                known,
                extra={"topic": str(self._topic), "partitions": count, "known": known},
            )
        if count <= known:
            return
        added: Sequence[TopicProducer | None] = [None] * (count - known)
        if not self._config.lazy_start_partitioned_producers:
            added = await self._open_added(range(known, count), count)
        self._producers += added
        limit = pending_messages_limit(self._config, count)
        for producer in self._started:
            producer.set_max_pending_messages(limit)
        self._interceptors.on_partitions_change(str(self._topic), count)

    async def _open_added(self, partitions: Sequence[int], count: int) -> list[TopicProducer]:
        producers = [self._make(each, count) for each in partitions]
        async with OnFailureAwait(partial(concurrently, TopicProducer.close, producers)):
            await each_result(TopicProducer.open, producers)
        return producers

    # --- closing -------------------------------------------------------------------------------

    async def flush(self) -> None:
        """As `Producer.flush`."""
        await each_result(TopicProducer.flush, self._started)

    async def close(self) -> None:
        """As `Producer.close`."""
        if self._refusal is None:
            self._refusal = AlreadyClosedError(f"{self._topic}: the producer is closed")
        await self._close_once(self._context.tasks, self._close)

    def abandon(self) -> None:
        """End at once, without waiting for anybody. May be called again."""
        for producer in self._started:
            producer.abandon()
        self._tasks.abandon()
        self._context.statistics.unregister(self)
        self._context.unregister_child(self)
        interceptors, self._interceptors = self._interceptors, ProducerInterceptors(())
        interceptors.close()

    async def _close(self) -> None:
        await self._tasks.close()
        await concurrently(TopicProducer.close, self._started)

    # --- properties ----------------------------------------------------------------------------

    def topic(self) -> str:
        """As `Producer.topic`."""
        return str(self._topic)

    def producer_name(self) -> str:
        """As `Producer.producer_name`; all partitions share it."""
        return self._name or ""

    def last_sequence_id(self) -> int:
        """As `Producer.last_sequence_id`: the highest of all partitions."""
        return max(each.last_sequence_id() for each in self._started)

    @property
    def is_closed(self) -> bool:
        """As `Producer.is_closed`."""
        return self._refusal is not None

    def is_connected(self) -> bool:
        """As `Producer.is_connected`, for all partitions that were started."""
        return all(each.is_connected() for each in self._started)

    def partitions_count(self) -> int:
        """As `Producer.partitions_count`."""
        return len(self._producers)

    def statistics(self) -> ProducerStatistics:
        """As `Producer.statistics`, of all partitions together."""
        now = self._clock.monotonic_seconds()
        return self._counters.peek(now, pending_queue_size=self.pending_count())

    def peek(self) -> ProducerStatistics:
        """As `statistics`, for the client's."""
        return self.statistics()

    def take_statistics(self, now: float) -> ProducerStatistics:
        """End the interval, and return its statistics; called by the client's reporter."""
        return self._counters.take(now, pending_queue_size=self.pending_count())

    def pending_count(self) -> int:
        """As `Producer.pending_count`, of all partitions together."""
        return sum(each.pending_count() for each in self._started)

    def pending_limit(self) -> int:
        """As `Producer.pending_limit`, of all partitions together."""
        count = len(self._producers)
        return pending_messages_limit(self._config, count) * count

    def blocks_if_full(self) -> bool:
        """As `Producer.blocks_if_full`."""
        return self._config.block_if_queue_full

    def watch_room(self, on_room: Callable[[], None] | None) -> None:
        """As `Producer.watch_room`, of the partitions that were started."""
        for each in self._started:
            each.watch_room(on_room)

    def flush_soon(self) -> None:
        """As `Producer.flush_soon`."""
        for each in self._started:
            each.flush_soon()

    def has_interceptors(self) -> bool:
        """As `Producer.has_interceptors`."""
        return bool(self._interceptors)

    def encode_ahead(self, message: OutgoingMessage) -> None:
        """As `Producer.encode_ahead`."""
        self._values.encode(message)
        message.is_encoded = True

    def statistics_fields(self) -> Mapping[str, str]:
        """Log fields that identify the producer."""
        return {"topic": str(self._topic), "producer": self.producer_name()}


async def open_partitioned(
    context: ClientContext,
    name: TopicName,
    config: ProducerConfig,
    values: ProducerSchema,
    partitions_count: int,
) -> PartitionedProducer:
    """Create the producer of a topic with so many partitions, and open it."""
    producer = PartitionedProducer(context, name, config, values, partitions_count)
    await producer.open()
    context.register_child(producer)
    context.statistics.register(producer)
    return producer
