"""`Producer` without `await`: sends from any thread.

`send` and `send_nowait` give their messages to a `HandOver`, everything else is the asyncio
producer's, run by the loop. Values are encoded in the thread that sends them.

Source: `Producer` of the official Python client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from pulsar_py.blocking import absent_names
from pulsar_py.blocking.client_parts import ClientParts
from pulsar_py.blocking.hand_over import HandOver
from pulsar_py.blocking.send_result import SendResult
from pulsar_py.client.producing import producer
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.shared.absent_names import lacks
from pulsar_py.client.shared.statistics import ProducerStatistics
from pulsar_py.client.shared.type_variables import T_contra
from pulsar_py.common.errors import AlreadyClosedError, InvalidConfigurationError, PulsarError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pulsar_py.schema.schema import Schema

__all__ = ["PartitionedProducer", "Producer"]

Other = TypeVar("Other")


@lacks(absent_names.PRODUCER)
class Producer(Generic[T_contra]):
    """Sends messages to one topic, from any thread. Made by `Client.create_producer`."""

    def __init__(self, shared: ClientParts, inner: producer.Producer[T_contra]) -> None:
        """Take over an open producer; called in the loop."""
        self._shared = shared
        self._thread = shared.thread
        self._loop = shared.thread.loop
        self._context = shared.context
        self._inner = inner
        self._hand_over = HandOver(shared.thread, inner)
        self._clock = SystemClock()
        self._has_interceptors = inner.has_interceptors()
        shared.parts[self] = None

    def hand_over(self) -> None:
        """Submit what threads have handed over; called in the loop."""
        self._hand_over.take()

    @overload
    def send(
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
    def send(
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
    def send(  # noqa: PLR0917 - the official client's order
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

        With batching, messages that threads send at about the same time share a batch, which goes
        out at once. Ctrl-C and time limits end the wait; the message goes out all the same. See
        `pulsar_py.Producer.send` for arguments and errors.
        """
        # Hot path: one by one in `make bench-client`.
        if (
            content.__class__ is bytes
            and not self._has_interceptors
            and properties is None
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
            self._check_open()
            return self._hand_over.send(content, len(content))
        message = self._message_of(
            content,
            properties,
            partition_key,
            ordering_key,
            sequence_id,
            replication_clusters,
            disable_replication,
            event_timestamp,
            deliver_at,
            deliver_after,
            key,
            schema,
        )
        if not self._has_interceptors:
            return self._hand_over.send(message, len(message.payload))
        result = self._add_intercepted(message)
        self._hand_over.flush_soon()
        return result.result()

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
    def send_nowait(  # noqa: PLR0917 - as `send`
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
        """Accept a message; ask the `SendResult` for the message's id later, or not at all.

        With `block_if_queue_full` it waits while the producer is full: a thread can. What the
        client finds only when it takes the message (too large, its memory full) the result and
        `flush` raise; the failure of a message whose result nobody asks for is logged.

        Raises:
            ProducerQueueFullError: No room, and `block_if_queue_full` is off.
            SchemaSerializationError: The value doesn't fit the schema.
            AlreadyClosedError: The producer or client is closed.
        """
        # Hot path: produce in `make bench-client`.
        if (
            content.__class__ is bytes
            and not self._has_interceptors
            and properties is None
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
            hand_over = self._hand_over
            if not hand_over.is_due:  # what goes out now finds out whether the producer is open
                alone = self._loop.call_between(hand_over.send_in_turn, content)
                if alone is not None:
                    return alone
            if self._context.closed_error is not None or self._inner.is_closed:
                self._check_open()
            return hand_over.add(content, len(content))
        message = self._message_of(
            content,
            properties,
            partition_key,
            ordering_key,
            sequence_id,
            replication_clusters,
            disable_replication,
            event_timestamp,
            deliver_at,
            deliver_after,
            key,
            schema,
        )
        if self._has_interceptors:
            return self._add_intercepted(message)
        return self._hand_over.add(message, len(message.payload))

    def _message_of(  # noqa: PLR0917 - as `send`
        self,
        content: Any,  # Any: whatever the producer's schema takes
        properties: Mapping[str, str] | None,
        partition_key: str | bytes | None,
        ordering_key: str | bytes | None,
        sequence_id: int | None,
        replication_clusters: Sequence[str] | None,
        disable_replication: bool,  # noqa: FBT001 - as `send`
        event_timestamp: int | None,
        deliver_at: int | None,
        deliver_after: timedelta | None,
        key: str | bytes | None,
        schema: Any,  # Any: a `schema.Schema` of whatever values
    ) -> OutgoingMessage:
        """The message of the arguments of `send`, encoded unless interceptors are to see it."""
        self._check_open()
        if key is not None and partition_key is not None and partition_key != key:
            raise InvalidConfigurationError(
                f"partition_key={partition_key!r}, key={key!r}: give only one of them"
            )
        message = OutgoingMessage(
            content,
            properties,
            partition_key if key is None else key,
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
        if not self._has_interceptors:
            self._inner.encode_ahead(message)
        return message

    def _add_intercepted(self, message: OutgoingMessage) -> SendResult:
        """Have interceptors see the value now, before the caller changes it.

        They run in the caller's context, which has the current span of a trace.
        """
        result = self._hand_over.add(message, len(message.payload))
        context = copy_context()
        self._thread.call(lambda: context.run(self._hand_over.take))
        return result

    def _check_open(self) -> None:
        if self._context.closed_error is not None:
            raise self._context.closed_error
        if self._inner.is_closed:
            raise AlreadyClosedError(f"{self._inner.topic()}: the producer is closed")

    def flush(self) -> None:
        """Send open batches, and wait for the receipts of all messages accepted so far.

        Raises:
            ClientError, ServiceError: The error of the first message that failed meanwhile.
        """
        self._thread.run(self._hand_over.flushed())

    def close(self) -> None:
        """Send open batches, wait for receipts, and close; within the operation timeout.

        Messages without a receipt by then fail with AlreadyClosedError. May be called again.
        """
        self._thread.run(self._close())

    async def _close(self) -> None:
        self._hand_over.close()
        try:
            await self._inner.close()
        finally:
            self._hand_over.closed()

    def drain(self) -> None:
        """End without losing what is under way, then close; for the end of a service.

        Waits for all receipts, however long a broker is away: `blocking.timeout` limits it. Then it
        closes nothing.

        Raises:
            ClientError, ServiceError: A message failed meanwhile; the producer is closed.
        """
        try:
            self.flush()
        except PulsarError:
            self.close()
            raise
        self.close()

    def topic(self) -> str:
        """The topic's full name."""
        return self._inner.topic()

    def producer_name(self) -> str:
        """The option `producer_name`, or the name that the broker generated."""
        return self._inner.producer_name()

    def last_sequence_id(self) -> int:
        """The highest sequence id that the broker has confirmed; -1 before the first."""
        return self._inner.last_sequence_id()

    @property
    def is_closed(self) -> bool:
        """Whether it accepts nothing any more: `close` began, or it ended by itself."""
        return self._inner.is_closed

    def is_connected(self) -> bool:
        """Whether it is registered with its broker now; it reconnects by itself."""
        return self._inner.is_connected()

    def partitions_count(self) -> int:
        """The number of partitions that the producer knows; 0 for a topic without."""
        return self._inner.partitions_count()

    def statistics(self) -> ProducerStatistics:
        """Statistics of the current interval and since the producer was made."""
        return self._thread.call(self._inner.statistics)

    def __repr__(self) -> str:
        return f"blocking.{self._inner!r}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class PartitionedProducer(Producer[T_contra]):
    """Sends to the partitions of one topic. Made by `Client.create_producer`."""
