"""`Producer`: the public interface of producers.

`TopicProducer` implements it for a topic without partitions (or one partition), and
`PartitionedProducer` for a topic with partitions. A message without options takes the short way
through `_send_plain`.

Source: `Producer` of the official Python client; Producer in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.send_result import PlainSends, SendResult
from pulsar_py.client.shared import absent_names
from pulsar_py.client.shared.absent_names import blocks, lacks
from pulsar_py.client.shared.state_texts import state_text
from pulsar_py.client.shared.statistics import ProducerStatistics
from pulsar_py.client.shared.type_variables import T_contra
from pulsar_py.common.errors import InvalidConfigurationError, PulsarError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pulsar_py.schema.schema import Schema

__all__ = ["Producer"]

Other = TypeVar("Other")


@blocks
@lacks(absent_names.PRODUCER)
class Producer(ABC, Generic[T_contra]):
    """Sends messages to one topic. Made by `Client.create_producer`; use it with `async with`."""

    _clock: Clock
    # The task of `close`; None before it began.
    _closing: asyncio.Task[None] | None = None

    @overload
    async def send(
        self,
        content: T_contra | None,
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        key: str | bytes | None = None,
        schema: None = None,
    ) -> MessageId: ...
    @overload
    async def send(
        self,
        content: Other | None,
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        key: str | bytes | None = None,
        schema: Schema[Other],
    ) -> MessageId: ...
    async def send(  # noqa: PLR0917 - the official client's order
        self,
        content: Any,  # Any: whatever the producer's schema takes
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        key: str | bytes | None = None,
        schema: Any = None,  # Any: a `schema.Schema` of whatever values
    ) -> MessageId:
        """Publish a message; returns its id once the broker has stored it.

        With batching, messages that tasks send in the same step of the loop share a batch, which
        goes out at the end of that step: awaiting the receipt does not wait for the batch to
        fill. Where the producer is full it waits for room if `block_if_queue_full` is set.
        Cancelling stops the wait; a message that was accepted goes out all the same.

        With deduplication on the broker, a message whose sequence id it has seen is not stored
        again: the id returned then has ledger and entry -1, as the receipt does not tell where the
        first one is.

        Args:
            content: The value; None for a null value (a tombstone in compacted topics).
            properties: Names and values, both texts, that consumers get with the message.
            partition_key: The key for choosing the partition, for compaction and for Key_Shared.
            ordering_key: The key for Key_Shared, instead of the partition key.
            sequence_id: The message's own number; by default they count up by one.
            replication_clusters: Replicate it to these clusters only.
            disable_replication: Replicate it to no other cluster.
            event_timestamp: The application's time of the event, milliseconds since 1970.
            deliver_at: Not before this time, milliseconds since 1970, and less than one tick
                after it (`delayedDeliveryTickTimeMillis`, 1 s by default). A broker of Apache
                Pulsar may be early by that much and its rounding, unless its
                `isDelayedDeliveryDeliverAtTimeStrict` is on. Only Shared and Key_Shared
                subscriptions wait: Exclusive and Failover ones get the message at once.
            deliver_after: Not before so long from now; as exact as `deliver_at`.
            key: Short for `partition_key`.
            schema: The value's schema, where that is not the producer's; registered if it is new.

        Raises:
            ProducerQueueFullError, MemoryBufferFullError: No room, and `block_if_queue_full` off.
            MessageTooBigError: The broker doesn't take messages of that size.
            ClientTimeoutError: No receipt within `send_timeout_millis`.
            SchemaSerializationError: The value doesn't fit the schema.
            AlreadyClosedError: The producer or client is closed, or was while this waited.
            ServiceError: The broker refused the message.
        """
        if (
            properties is None
            and partition_key is None
            and key is None
            and ordering_key is None
            and sequence_id is None
            and replication_clusters is None
            and not disable_replication
            and event_timestamp is None
            and deliver_at is None
            and deliver_after is None
            and schema is None
        ):
            return await self._send_plain_and_wait(content)
        return await self._send_and_wait(
            OutgoingMessage(
                content,
                properties,
                partition_key if key is None else _only_key(partition_key, key),
                ordering_key,
                sequence_id,
                replication_clusters,
                disable_replication=disable_replication,
                event_timestamp=event_timestamp,
                deliver_at=deliver_at,
                deliver_after=deliver_after,
                schema=schema,
                now_millis=self._clock.wall_time_millis() if deliver_after is not None else 0,
            )
        )

    @overload
    def send_nowait(
        self,
        content: T_contra | None,
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        key: str | bytes | None = None,
        schema: None = None,
    ) -> SendResult: ...
    @overload
    def send_nowait(
        self,
        content: Other | None,
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        key: str | bytes | None = None,
        schema: Schema[Other],
    ) -> SendResult: ...
    def send_nowait(  # noqa: PLR0917, D417 - as `send`
        self,
        content: Any,  # Any: whatever the producer's schema takes
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        key: str | bytes | None = None,
        schema: Any = None,  # Any: a `schema.Schema` of whatever values
    ) -> SendResult:
        """Accept a message and return at once; await what it returns for the message's id.

        It need not be awaited: the failure of a message whose result is not awaited is logged. With
        `block_if_queue_full` on, it accepts beyond `max_pending_messages`, up to the client's
        memory limit. Messages go out only while the event loop runs: await something now and then.

        Args:
            content: See `send` for all arguments.

        Raises:
            ProducerQueueFullError, MemoryBufferFullError: No room; nothing was accepted.
            MessageTooBigError, SchemaSerializationError, AlreadyClosedError: As `send`.
        """
        # Hot path: produce in `make bench-client`.
        if (
            properties is None
            and partition_key is None
            and key is None
            and ordering_key is None
            and sequence_id is None
            and replication_clusters is None
            and not disable_replication
            and event_timestamp is None
            and deliver_at is None
            and deliver_after is None
            and schema is None
        ):
            return self._send_plain(content)
        return self._send_message(
            OutgoingMessage(
                content,
                properties,
                partition_key if key is None else _only_key(partition_key, key),
                ordering_key,
                sequence_id,
                replication_clusters,
                disable_replication=disable_replication,
                event_timestamp=event_timestamp,
                deliver_at=deliver_at,
                deliver_after=deliver_after,
                schema=schema,
                now_millis=self._clock.wall_time_millis() if deliver_after is not None else 0,
            )
        )

    @abstractmethod
    def _send_plain(self, content: Any) -> SendResult:  # Any: as `send_nowait`
        """`send_nowait` of a message that has nothing but a value."""

    @abstractmethod
    def _send_message(self, message: OutgoingMessage) -> SendResult:
        """`send_nowait` of any message."""

    async def _send_plain_and_wait(self, content: Any) -> MessageId:  # Any: as `send`
        """`send` of a message that has nothing but a value."""
        return await self._send_and_wait(OutgoingMessage(content))

    async def _send_and_wait(self, message: OutgoingMessage) -> MessageId:
        """`send` of any message."""
        return await (await self.submit_waiting(message))

    @abstractmethod
    async def submit_waiting(self, message: OutgoingMessage) -> SendResult:
        """Accept a message once there is room, if it blocks when full; raises as `send`."""

    @abstractmethod
    async def flush(self) -> None:
        """Send open batches, and wait for the receipts of all messages accepted so far.

        Raises:
            ClientError, ServiceError: The error of the first message that failed meanwhile.
        """

    @abstractmethod
    async def close(self) -> None:
        """Send open batches, wait for receipts, and close; within the operation timeout.

        Messages without a receipt by then fail with AlreadyClosedError. May be called again.
        """

    async def drain(self) -> None:
        """End without losing what is under way, then close; for the end of a service.

        Waits for the receipts of all that was accepted, however long a broker is away: put it under
        a time limit of yours. `close` gives up after the operation timeout. Cancelled, it closes
        nothing.

        Raises:
            ClientError, ServiceError: A message failed meanwhile; the producer is closed.
        """
        try:
            await self.flush()
        except PulsarError:
            await self.close()
            raise
        await self.close()

    def __repr__(self) -> str:
        state = state_text(is_closed=self.is_closed, is_connected=self.is_connected())
        return f"{type(self).__name__}({self.producer_name()!r} on {self.topic()}, {state})"

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Whether it accepts nothing any more: `close` began, or it ended by itself."""

    async def _close_once(
        self, tasks: TaskOwner, close: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Return when `close` has ended; the first call starts it, as a task of the client's.

        So cancelling a caller does not stop the closing, and further callers wait for the same end.
        """
        if self._closing is None:
            try:
                self._closing = tasks.spawn(close(), "close producer")
            except RuntimeError:  # the client is closed: there is no connection to send on
                self.abandon()
                return
            # If the client drops the task before its first step, nothing of `close` has run.
            self._closing.add_done_callback(lambda _: self.abandon())
        await asyncio.wait([self._closing])

    @abstractmethod
    def abandon(self) -> None:
        """Close at once: messages without receipt fail, and the broker's answer is not awaited."""

    @abstractmethod
    def topic(self) -> str:
        """The topic's full name."""

    @abstractmethod
    def producer_name(self) -> str:
        """The option `producer_name`, or the name that the broker generated."""

    @abstractmethod
    def last_sequence_id(self) -> int:
        """The highest sequence id that the broker has confirmed; -1 before the first.

        With deduplication, a producer continues the ids of an earlier one of the same name.
        """

    @abstractmethod
    def is_connected(self) -> bool:
        """Whether it is registered with its broker now; it reconnects by itself."""

    @abstractmethod
    def partitions_count(self) -> int:
        """The number of partitions that the producer knows; 0 for a topic without."""

    @abstractmethod
    def statistics(self) -> ProducerStatistics:
        """Statistics of the current interval and since the producer was made."""

    # --- for the blocking client, whose threads hand messages over ------------------------------

    @abstractmethod
    def pending_count(self) -> int:
        """The number of messages without receipt; may be asked by any thread."""

    @abstractmethod
    def pending_limit(self) -> int:
        """The most messages without receipt that the options allow; 0 for no limit."""

    @abstractmethod
    def blocks_if_full(self) -> bool:
        """The option `block_if_queue_full`."""

    @abstractmethod
    def watch_room(self, on_room: Callable[[], None] | None) -> None:
        """Call `on_room` whenever messages got their receipts, or failed; None to end that."""

    def submit_alone(self, payload: bytes) -> PlainSends | None:
        """Accept a message that has nothing but a payload, and write it, without the loop's help.

        For a thread that has taken the loop's turn while it waits. None, and nothing was accepted,
        if the loop has to do it: what is sent now would have to wait for something, or the producer
        has no such way, as here.
        """
        del payload
        return None

    @abstractmethod
    def submit_plain_run(self, payloads: Sequence[bytes]) -> Sequence[PlainSends]:
        """`send_nowait` of each, where nothing about any of them needs a look of its own.

        Where something does it returns nothing, and has accepted none: each goes by itself then.
        """

    @abstractmethod
    def flush_soon(self) -> None:
        """Send open batches at the end of this step of the loop."""

    @abstractmethod
    def has_interceptors(self) -> bool:
        """Whether interceptors have to see values before they are encoded."""

    @abstractmethod
    def encode_ahead(self, message: OutgoingMessage) -> None:
        """Encode the value now, in any thread; not with interceptors.

        Raises:
            SchemaSerializationError: The value doesn't fit the schema.
        """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def _only_key(partition_key: str | bytes | None, key: str | bytes) -> str | bytes:
    if partition_key is not None and partition_key != key:
        raise InvalidConfigurationError(
            f"partition_key={partition_key!r}, key={key!r}: give only one of them"
        )
    return key
