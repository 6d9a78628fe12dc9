"""The producer of one topic or partition: admits messages, flushes, closes (edge).

    send, send_nowait --permits, memory--> [deferred] --> Batcher --> Outbox --> connection
                                                                        ^-- receipts --|

What always holds: messages go on in the order in which they were accepted; each holds one permit
and its bytes of memory from then until its entry is confirmed or fails.

Source: ProducerImpl in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pulsar_py.client.producing.batcher import Batcher, plain_message
from pulsar_py.client.producing.deferred_messages import DeferredMessages
from pulsar_py.client.producing.entry_encoder import EntryEncoder
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.outbox import Outbox
from pulsar_py.client.producing.pending_messages import PendingEntry
from pulsar_py.client.producing.producer import Producer
from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.producing.producer_interceptor import ProducerInterceptors
from pulsar_py.client.producing.producer_schema import ProducerSchema
from pulsar_py.client.producing.producer_session import ProducerSession
from pulsar_py.client.producing.send_permits import SendPermits
from pulsar_py.client.producing.send_result import PlainSends, SendResult
from pulsar_py.client.producing.sequence_ids import SequenceIds
from pulsar_py.client.shared.statistics import ProducerCounters, ProducerStatistics
from pulsar_py.client.shared.type_variables import T_contra
from pulsar_py.common.errors import (
    AlreadyClosedError,
    MemoryBufferFullError,
    MessageTooBigError,
    ProducerQueueFullError,
    PulsarError,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_context import ClientContext

__all__ = ["TopicProducer"]

logger = logging.getLogger(__name__)


class TopicProducer(Producer[T_contra]):
    """Sends to one topic or partition. Owned by the application, or by a PartitionedProducer."""

    def __init__(
        self,
        context: ClientContext,
        topic: str,
        config: ProducerConfig,
        encoder: ProducerSchema,
        *,
        partition_index: int = -1,
        shared_name: str | None = None,
        max_pending_messages: int | None = None,
        counters: ProducerCounters | None = None,
    ) -> None:
        """Nothing is sent before `open` or `start`.

        Args:
            context: The client's shared parts.
            topic: Full name of the topic or partition.
            config: The options of the producer of the whole topic.
            encoder: Encodes values; shared by all partitions.
            partition_index: -1 for a topic without partitions.
            shared_name: The name that the broker gave to the first partition's producer.
            max_pending_messages: Replaces the one in `config`; None does not.
            counters: The statistics, if shared by all partitions.
        """
        self._context = context
        self._clock = context.clock
        self._topic = topic
        self._subject = f"the producer of {topic}"
        self._config = config
        self._values = encoder
        self._partition_index = partition_index
        self._tasks = TaskOwner(f"producer of {topic}")
        self._memory = context.memory_limit
        self._interceptors = ProducerInterceptors(
            () if partition_index >= 0 else config.interceptors
        )
        # Whether bytes go out as they are, seen by nobody.
        self._takes_plain = encoder.takes_bytes and not self._interceptors
        limit = (
            config.max_pending_messages if max_pending_messages is None else max_pending_messages
        )
        self._permits = SendPermits(limit)
        self.counters = counters or ProducerCounters(self._clock.monotonic_seconds())
        self._sequences = SequenceIds(config.initial_sequence_id)
        entries = EntryEncoder(producer_id := context.new_producer_id())
        self._outbox = Outbox(
            config,
            entries,
            topic=topic,
            clock=self._clock,
            tasks=self._tasks,
            on_done=self._on_done,
            on_stored=self._on_stored,
        )
        self._session = ProducerSession(
            context,
            topic,
            config,
            producer_id=producer_id,
            encoder=entries,
            outbox=self._outbox,
            sequences=self._sequences,
            schema=encoder.wire_schema,
            shared_name=shared_name,
            on_failed=self._on_failed,
        )
        self._batcher = Batcher(
            config,
            self._outbox,
            clock=self._clock,
            sequences=self._sequences,
            counters=self.counters,
            partition_index=partition_index,
        )
        self._deferred = DeferredMessages(
            self._tasks,
            encoder,
            wait_opened=self._wait_opened,
            go_on=self._batcher.post,
            give_back=self._on_deferred_failed,
            on_empty=self._go_direct,
        )
        # Whether messages go to the batcher at once: it is open, and none are deferred.
        self._is_direct = False
        # The error that sends raise once the producer has ended; None before.
        self._refusal: Exception | None = None
        self._opening: asyncio.Task[None] | None = None  # of `start`

    # --- opening -------------------------------------------------------------------------------

    async def open(self) -> None:
        """Return when registered for the first time.

        Raises:
            ServiceError, ClientError: It could not be registered; the producer has ended.
        """
        try:
            encryptor = self._outbox.encryptor
            if encryptor is not None:
                await encryptor.rotate(self._clock.monotonic_seconds())
            await self._session.connection.open()
        except BaseException as error:  # cancelled, too; raised again
            self._session.abandon()
            self._on_failed(
                error
                if isinstance(error, Exception)
                else AlreadyClosedError(f"{self._topic}: creating the producer was cancelled")
            )
            raise
        self._batcher.fit(self._outbox.max_message_size)
        self._go_direct()

    def _go_direct(self) -> None:
        self._is_direct = (
            self._refusal is None and not self._deferred and self._session.is_registered_once
        )

    async def _wait_opened(self) -> None:
        if self._opening is not None:
            await asyncio.wait([self._opening])

    def start(self) -> None:
        """Begin to open; messages are accepted meanwhile, and fail if opening fails."""
        self._opening = self._tasks.spawn(self._start(), "open")

    async def _start(self) -> None:
        try:
            await self.open()
        except PulsarError as error:
            logger.warning(
                "%s: producer not opened: %s",
                self._topic,
                error,
                extra={"topic": self._topic, "error": str(error)},
            )

    # --- accepting -----------------------------------------------------------------------------

    def _send_plain(self, content: Any) -> SendResult:  # Any: as `send_nowait`
        # Hot path: produce in `make bench-client`.
        if self._takes_plain and type(content) is bytes:
            return self.submit_plain(content)
        return self._send_message(OutgoingMessage(content))

    def submit_plain(self, payload: bytes) -> SendResult:
        """Accept a message that has nothing but a payload; raises as `send_nowait`."""
        # Hot path: produce in `make bench-client`.
        size = len(payload)
        if (
            not self._is_direct
            or self._context.closed_error is not None
            or size > self._outbox.largest_payload
        ):
            return self.submit_nowait(plain_message(payload))
        permits = self._permits
        if not permits.used:  # seldom, while a check costs too much for each message
            self._context.check_loop(self._subject)
        if permits.used >= permits.limit > 0 and not self._config.block_if_queue_full:
            raise self._queue_full()
        if not self._memory.try_reserve(size):
            raise self._memory_full(size)
        permits.used += 1
        return self._batcher.post_plain(payload, size)

    def submit_alone(self, payload: bytes) -> PlainSends | None:
        """As `Producer.submit_alone`."""
        # Hot path: latency in `make bench-client`, blocking.
        size, permits, memory = len(payload), self._permits, self._memory
        if (
            not self._takes_plain
            or not self._is_direct
            or self._context.closed_error is not None
            or permits.used >= permits.limit > 0
            or memory.current_bytes >= memory.limit_bytes > 0
        ):
            return None
        sequence_id = self._sequences.next_id
        permits.used += 1
        memory.current_bytes += size
        try:
            entry = self._batcher.post_alone(payload, size, in_loop=False)
        except BaseException:  # Ctrl-C, between any two steps; raised again
            if not self._outbox.interrupted(sequence_id):
                permits.used -= 1
                memory.current_bytes -= size
            raise
        if entry is None:
            permits.used -= 1
            memory.current_bytes -= size
            return None
        return entry, -1, 1

    def submit_plain_run(self, payloads: Sequence[bytes]) -> Sequence[PlainSends]:
        """As `Producer.submit_plain_run`."""
        # Hot path: produce in `make bench-client`, blocking.
        permits, count = self._permits, len(payloads)
        sizes = list(map(len, payloads))
        ends = list(accumulate(sizes))
        largest_size = max(sizes)
        if (
            not self._takes_plain
            or not self._is_direct
            or self._context.closed_error is not None
            or largest_size > self._outbox.largest_payload
            or not self._batcher.takes_run(largest_size)
            or (0 < permits.limit < permits.used + count and not self._config.block_if_queue_full)
            or not self._memory.try_reserve_within(ends[-1])
        ):
            return ()
        if not permits.used:
            self._context.check_loop(self._subject)
        permits.used += count
        return self._batcher.post_plain_run(payloads, ends)

    def _send_message(self, message: OutgoingMessage) -> SendResult:
        if self._interceptors:
            return self._interceptors.submit_nowait(self, message, self._encode_nowait)
        return self._encode_nowait(message)

    def _encode_nowait(self, message: OutgoingMessage) -> SendResult:
        self._values.encode(message)
        return self.submit_nowait(message)

    async def _send_plain_and_wait(self, content: Any) -> MessageId:  # Any: as `send`
        # Hot path: latency in `make bench-client`.
        permits = self._permits
        if (
            not self._takes_plain
            or type(content) is not bytes
            or permits.waiters_count  # they come first
            or permits.used >= permits.limit > 0
        ):
            return await self._send_and_wait(OutgoingMessage(content))
        try:
            result = self.submit_plain(content)
        except MemoryBufferFullError:
            return await self._send_and_wait(OutgoingMessage(content))
        self._batcher.flush_soon()
        return await result

    async def submit_waiting(self, message: OutgoingMessage) -> SendResult:
        """As `Producer.submit_waiting`."""
        if self._interceptors:
            return await self._interceptors.submit(self, message, self._encode)
        return await self._encode(message)

    def _encode(self, message: OutgoingMessage) -> Awaitable[SendResult]:
        self._values.encode(message)
        return self.submit(message)

    def submit_nowait(self, message: OutgoingMessage) -> SendResult:
        """Accept an encoded message; raises as `send_nowait`."""
        size = self._checked_size(message)
        permits = self._permits
        if permits.used >= permits.limit > 0 and not self._config.block_if_queue_full:
            raise self._queue_full()
        if not self._memory.try_reserve(size):
            raise self._memory_full(size)
        permits.used += 1
        return self._accept(message, size)

    async def submit(self, message: OutgoingMessage) -> SendResult:
        """Accept an encoded message when there is room; raises as `send`."""
        if not self._config.block_if_queue_full:
            result = self.submit_nowait(message)
        else:
            size = self._checked_size(message)
            if self._permits.try_take():
                if not self._memory.try_reserve(size):
                    await self._wait_for_memory(size)
            else:
                self._batcher.flush_soon()
                await self._permits.take()
                await self._wait_for_memory(size)
            result = self._accept(message, size)
        self._batcher.flush_soon()
        return result

    async def _wait_for_memory(self, size: int) -> None:
        """Reserve memory; the caller holds a permit, which is given back if this fails."""
        self._batcher.flush_soon()
        with OnFailure(partial(self._permits.give_back, 1)):
            await self._memory.reserve(size, self)
        if self._refusal is not None:
            self._permits.give_back(1)
            self._memory.release(size)
            raise self._refusal

    def _checked_size(self, message: OutgoingMessage) -> int:
        if self._context.closed_error is not None:
            raise self._context.closed_error
        if self._refusal is not None:
            raise self._refusal
        self._context.check_loop(self._subject)
        size = len(message.payload)
        if size > self._outbox.largest_payload:
            raise MessageTooBigError(
                f"{self._topic}: {size} bytes, the broker's limit is "
                f"{self._outbox.max_message_size}; larger messages need chunking_enabled, and a "
                f"persistent topic"
            )
        return size + message.extra_bytes

    def _queue_full(self) -> ProducerQueueFullError:
        return ProducerQueueFullError(
            f"{self._topic}: {self._permits.used} messages have no receipt, "
            f"max_pending_messages is {self._permits.limit}"
        )

    def _memory_full(self, size: int) -> MemoryBufferFullError:
        return MemoryBufferFullError(
            f"{self._topic}: no room for {size} bytes, {self._memory.current_bytes} of "
            f"memory_limit_bytes={self._memory.limit_bytes} are taken"
        )

    def _accept(self, message: OutgoingMessage, size: int) -> SendResult:
        if self._is_direct and not self._values.needs_version(message):
            return self._batcher.post(message, size)
        # Messages behind a deferred one have to wait, too, so that they stay in order.
        self._is_direct = False
        return self._deferred.add(message, size)

    def _on_deferred_failed(self, size: int) -> None:
        self.counters.send_failures += 1
        self._give_back(1, size)

    # --- closing -------------------------------------------------------------------------------

    def _on_done(self, entries: Sequence[PendingEntry], is_stored: bool) -> None:  # noqa: FBT001 - a callback
        # Hot path: produce in `make bench-client`.
        count = size = 0
        for entry in entries:
            count += entry.messages_count
            size += entry.bytes_count
        counters = self.counters
        if is_stored:
            now = self._clock.monotonic_seconds()
            record = counters.latencies.record
            created_at, alike = entries[0].created_at, 0
            for entry in entries:
                if entry.created_at != created_at and alike:
                    record(now - created_at, alike)
                    alike = 0
                created_at = entry.created_at
                alike += entry.messages_count
            if alike:
                record(now - created_at, alike)
            counters.receipts_received += count
            self._sequences.confirmed(max(entry.highest_sequence_id for entry in entries))
        else:
            counters.send_failures += count
        self._give_back(count, size)

    def _on_stored(self, entry: PendingEntry) -> None:
        # Hot path: latency in `make bench-client`.
        counters, count = self.counters, entry.messages_count
        if count:
            now = self._clock.monotonic_seconds()
            counters.latencies.record(now - entry.created_at, count)
            counters.receipts_received += count
        self._sequences.confirmed(entry.highest_sequence_id)
        # Once, if Ctrl-C ends this anywhere and the entry is sent again; see `Outbox.detach`.
        bytes_count = entry.bytes_count
        entry.messages_count = entry.bytes_count = 0
        self._permits.give_back(count)
        self._memory.release(bytes_count)

    def _give_back(self, count: int, size: int) -> None:
        self._permits.give_back(count)
        self._memory.release(size)

    def _on_failed(self, error: Exception) -> None:
        """The producer will not reconnect: all messages fail with this error."""
        if self._refusal is None:
            self._refusal = error
        self._is_direct = False
        self._fail_waiters(error)
        batched = self._batcher.close()
        self._outbox.fail_all(error)
        self._outbox.end(batched, error)
        self._deferred.fail_all(error)
        self._outbox.close()
        if self._context.closed_error is not None:
            self._let_go()

    def _fail_waiters(self, error: Exception) -> None:
        self._permits.fail_waiters(error)
        self._memory.fail_waiters(self, error)

    async def flush(self) -> None:
        """As `Producer.flush`."""
        await self._deferred.drained()
        self._batcher.send_batches()
        entries = self._outbox.outstanding
        for entry in reversed(entries):  # usually one wait suffices: the last one is done last
            await entry.wait()
        for entry in entries:
            if entry.error is not None:
                raise entry.error.with_traceback(None)

    async def close(self) -> None:
        """As `Producer.close`."""
        if self._refusal is None:
            self._refusal = AlreadyClosedError(f"{self._topic}: the producer is closed")
        self._is_direct = False
        await self._close_once(self._context.tasks, self._close)

    def abandon(self) -> None:
        """End at once, without waiting for anybody. May be called again."""
        self._session.abandon()
        self._on_failed(
            self._refusal or AlreadyClosedError(f"{self._topic}: the producer is closed")
        )
        self._let_go()

    def _let_go(self) -> None:
        self._tasks.abandon()
        self._context.statistics.unregister(self)
        self._context.unregister_child(self)
        interceptors, self._interceptors = self._interceptors, ProducerInterceptors(())
        interceptors.close()

    async def _close(self) -> None:
        assert self._refusal is not None, "closing begins with refusing"
        self._fail_waiters(self._refusal)
        try:
            async with asyncio.timeout(self._context.config.operation_timeout_seconds):
                try:
                    await self.flush()
                except PulsarError:
                    logger.debug("flush on close failed", extra={"topic": self._topic})
                await self._session.close()
        except (TimeoutError, PulsarError) as error:
            logger.warning(
                "%s: producer not closed cleanly: %s",
                self._topic,
                error,
                extra={"topic": self._topic, "error": str(error)},
            )
        finally:
            self.abandon()
            await self._session.connection.close()
            await self._tasks.close()

    # --- properties ----------------------------------------------------------------------------

    def topic(self) -> str:
        """As `Producer.topic`."""
        return self._topic

    def producer_name(self) -> str:
        """As `Producer.producer_name`; empty before the first registration."""
        return self._session.producer_name or ""

    def last_sequence_id(self) -> int:
        """As `Producer.last_sequence_id`."""
        return self._sequences.last_confirmed

    @property
    def is_closed(self) -> bool:
        """As `Producer.is_closed`."""
        return self._refusal is not None

    def is_connected(self) -> bool:
        """As `Producer.is_connected`."""
        return self._session.connection.is_connected

    def partitions_count(self) -> int:
        """As `Producer.partitions_count`."""
        return 0

    def pending_count(self) -> int:
        """As `Producer.pending_count`."""
        return self._permits.used

    def pending_limit(self) -> int:
        """As `Producer.pending_limit`."""
        return self._permits.limit

    def blocks_if_full(self) -> bool:
        """As `Producer.blocks_if_full`."""
        return self._config.block_if_queue_full

    def watch_room(self, on_room: Callable[[], None] | None) -> None:
        """As `Producer.watch_room`."""
        self._permits.on_given_back = on_room

    def flush_soon(self) -> None:
        """As `Producer.flush_soon`."""
        self._batcher.flush_soon()

    def has_interceptors(self) -> bool:
        """As `Producer.has_interceptors`."""
        return bool(self._interceptors)

    def encode_ahead(self, message: OutgoingMessage) -> None:
        """As `Producer.encode_ahead`."""
        self._values.encode(message)
        message.is_encoded = True

    def set_max_pending_messages(self, limit: int) -> None:
        """Change the limit of messages without receipt; 0 for no limit."""
        self._permits.set_limit(limit)

    def statistics(self) -> ProducerStatistics:
        """As `Producer.statistics`."""
        now = self._clock.monotonic_seconds()
        return self.counters.peek(now, pending_queue_size=self._permits.used)

    def peek(self) -> ProducerStatistics:
        """As `statistics`, for the client's."""
        return self.statistics()

    def take_statistics(self, now: float) -> ProducerStatistics:
        """End the interval, and return its statistics; called by the client's reporter."""
        return self.counters.take(now, pending_queue_size=self._permits.used)

    def statistics_fields(self) -> dict[str, str]:
        """Log fields that identify the producer."""
        return {"topic": self._topic, "producer": self.producer_name()}


async def open_single(
    context: ClientContext, name: TopicName, config: ProducerConfig, values: ProducerSchema
) -> TopicProducer:
    """Create the producer of a topic without partitions, or of one partition, and open it."""
    producer = TopicProducer(context, str(name), config, values)
    await producer.open()
    context.register_child(producer)
    context.statistics.register(producer)
    return producer
