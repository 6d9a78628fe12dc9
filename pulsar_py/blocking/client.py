"""`Client` without `await`: the asyncio client for programs that block.

    with blocking.Client("pulsar://localhost:6650") as client:
        producer = client.create_producer("my-topic")
        producer.send(b"hello")

All blocking clients of a process share one thread with an event loop (`ClientThread`), where the
asyncio client does the work; nothing of it is done twice. Everything may be used from any thread.

Source: the official Python client's `Client`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast, overload

from pulsar_py.blocking import absent_names
from pulsar_py.blocking.client_parts import ClientParts
from pulsar_py.blocking.client_thread import client_thread
from pulsar_py.blocking.consumer import Consumer
from pulsar_py.blocking.consumer_calls import Handling
from pulsar_py.blocking.event_listener import EventListenerInPool
from pulsar_py.blocking.listener_pool import ListenerPool, check_listener
from pulsar_py.blocking.many_topics import AnyConsumer, MultiTopicsConsumer, PatternConsumer
from pulsar_py.blocking.prefetch import LARGEST_RUN
from pulsar_py.blocking.producer import PartitionedProducer, Producer
from pulsar_py.blocking.reader import Reader
from pulsar_py.blocking.table_view import TableView
from pulsar_py.client import client
from pulsar_py.client.brokers.service_url import ServiceUrlProvider
from pulsar_py.client.consuming.consumer import Consumer as AsyncConsumer
from pulsar_py.client.many_topics.multi_topics_consumer import (
    MultiTopicsConsumer as AsyncMultiTopicsConsumer,
)
from pulsar_py.client.many_topics.pattern_consumer import PatternConsumer as AsyncPatternConsumer
from pulsar_py.client.options import (
    ClientOptions,
    ConsumerOptionsWithoutSchema,
    ProducerOptions,
    ProducerOptionsWithoutSchema,
    ReaderOptions,
    ReaderOptionsWithoutSchema,
    TableViewOptions,
    TableViewOptionsWithoutSchema,
)
from pulsar_py.client.producing.partitioned_producer import (
    PartitionedProducer as AsyncPartitionedProducer,
)
from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
from pulsar_py.client.security.authentication import Authentication
from pulsar_py.client.shared.absent_names import lacks
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.client.shared.statistics import ClientStatistics
from pulsar_py.client.shared.type_variables import Received, Sent
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pulsar_py.schema.schema import Schema

__all__ = ["Client"]

_DEFAULT_QUEUE_SIZE = 1000


@lacks(absent_names.CLIENT)
class Client:
    """A client of one cluster, for any thread; use it with `with`, or call `close`."""

    def __init__(
        self,
        service_url: str | ServiceUrlProvider,
        authentication: Authentication | None = None,
        *,
        clock: Clock | None = None,
        chance: Random | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        """Make a client; nothing is connected yet.

        The process's thread for blocking clients starts with the first one. Arguments and errors
        are those of `pulsar_py.Client`.
        """
        self._inner = client.Client(
            service_url, authentication, clock=clock, chance=chance, **options
        )
        self._thread = client_thread()
        self._thread.open_clients[self] = None
        self._shared = ClientParts(self, self._thread, self._inner.context)
        self._threads_count = options.get("message_listener_threads", 1)

    @property
    def service_url(self) -> str:
        """The URL in use."""
        return self._inner.service_url

    @property
    def is_closed(self) -> bool:
        """Whether it was closed; it can't be used again."""
        return self._inner.is_closed

    @overload
    def create_producer(
        self,
        topic: str,
        *,
        schema: Schema[Sent] | None,
        **options: Unpack[ProducerOptionsWithoutSchema],
    ) -> Producer[Sent]: ...

    @overload
    def create_producer(
        self,
        topic: str,
        *,
        schema: None = None,
        **options: Unpack[ProducerOptionsWithoutSchema],
    ) -> Producer[bytes | bytearray | memoryview]: ...

    def create_producer(
        self, topic: str, **options: Unpack[ProducerOptions[Sent]]
    ) -> Producer[Sent]:
        """Create a producer of a topic, of all its partitions if it has several.

        Interceptors, a `message_router` and a `crypto_key_reader` are called in the client's
        thread: they must not block. Raises as `pulsar_py.Client.create_producer`.
        """

        async def create() -> Producer[Sent]:
            producer = await self._inner.create_producer(topic, **options)
            if isinstance(producer, AsyncPartitionedProducer):
                return PartitionedProducer(self._shared, producer)
            return Producer(self._shared, producer)

        return self._thread.run(create())

    @overload
    def subscribe(
        self,
        topic: re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: None = None,
        **options: Unpack[ConsumerOptionsWithoutSchema[bytes]],
    ) -> PatternConsumer[bytes]: ...

    @overload
    def subscribe(
        self,
        topic: re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: Schema[Received],
        **options: Unpack[ConsumerOptionsWithoutSchema[Received]],
    ) -> PatternConsumer[Received]: ...

    @overload
    def subscribe(
        self,
        topic: list[str] | tuple[str, ...],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: None = None,
        **options: Unpack[ConsumerOptionsWithoutSchema[bytes]],
    ) -> MultiTopicsConsumer[bytes]: ...

    @overload
    def subscribe(
        self,
        topic: list[str] | tuple[str, ...],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: Schema[Received],
        **options: Unpack[ConsumerOptionsWithoutSchema[Received]],
    ) -> MultiTopicsConsumer[Received]: ...

    @overload
    def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: None = None,
        **options: Unpack[ConsumerOptionsWithoutSchema[bytes]],
    ) -> AnyConsumer[bytes]: ...

    @overload
    def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: Schema[Received] | None,
        **options: Unpack[ConsumerOptionsWithoutSchema[Received]],
    ) -> AnyConsumer[Received]: ...

    def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ConsumerType.Exclusive,
        *,
        schema: Schema[Received] | None = None,
        **options: Unpack[ConsumerOptionsWithoutSchema[Received]],
    ) -> AnyConsumer[Received]:
        """Subscribe a consumer to a topic with all its partitions, to several, or to a pattern.

        A `message_listener` is a plain function, called in `message_listener_threads` (or
        `listener_concurrency`) threads of the consumer's own, and may block; so may a
        `consumer_event_listener`, with one thread. Interceptors must not. What is returned, and
        raised, is that of `pulsar_py.Client.subscribe`.
        """
        handling, given = self._handling_of(subscription_name, options)
        events = given.get("consumer_event_listener")
        consumer: AnyConsumer[Received]

        async def subscribe() -> AnyConsumer[Received]:
            nonlocal consumer
            inner = await self._inner.subscribe(
                topic, subscription_name, consumer_type, schema=schema, **given
            )
            # The listener's first call comes after this step of the loop.
            consumer = self._wrapped(inner, handling)
            if isinstance(events, EventListenerInPool):
                events.belongs_to(consumer)
            return consumer

        if (listener := options.get("message_listener")) is not None:
            check_listener("message_listener", listener)
            assert handling.pool is not None, "made with the handling"
            in_pool = handling.pool.calling(listener)
            given["message_listener"] = lambda _, message: in_pool(consumer, message)
        return self._thread.run(subscribe())

    def _handling_of(
        self, subscription_name: str, options: ConsumerOptionsWithoutSchema[Received]
    ) -> tuple[Handling, ConsumerOptionsWithoutSchema[Received]]:
        """The handling of a consumer's messages, and its options for the asyncio client."""
        given = options.copy()
        pool = None
        if options.get("message_listener") is not None:
            threads_count = max(self._threads_count, options.get("listener_concurrency", 1))
            pool = ListenerPool(subscription_name, threads_count)
        if (events := options.get("consumer_event_listener")) is not None:
            given["consumer_event_listener"] = EventListenerInPool(
                events, f"event listener of {subscription_name}"
            )
        sees_each = (
            options.get("interceptors")
            or options.get("dead_letter_policy") is not None
            or options.get("retry_enable")
            or options.get("unacked_messages_timeout_ms")
        )
        handling = Handling(
            run_limit=1 if sees_each else _run_limit(options.get("receiver_queue_size")),
            policy=options.get("batch_receive_policy", ConsumerBatchReceivePolicy()),
            pool=pool,
        )
        return handling, given

    def _wrapped(
        self,
        inner: AsyncConsumer[Received] | AsyncMultiTopicsConsumer[Received],
        handling: Handling,
    ) -> AnyConsumer[Received]:
        if isinstance(inner, AsyncPatternConsumer):
            return PatternConsumer(self._shared, inner, handling)
        if isinstance(inner, AsyncMultiTopicsConsumer):
            return MultiTopicsConsumer(self._shared, inner, handling)
        return Consumer(self._shared, inner, handling)

    @overload
    def create_reader(
        self,
        topic: str,
        start_message_id: MessageId | Mapping[str, MessageId] | None = None,
        *,
        schema: None = None,
        **options: Unpack[ReaderOptionsWithoutSchema[bytes]],
    ) -> Reader[bytes]: ...

    @overload
    def create_reader(
        self,
        topic: str,
        start_message_id: MessageId | Mapping[str, MessageId] | None = None,
        *,
        schema: Schema[Received] | None,
        **options: Unpack[ReaderOptionsWithoutSchema[Received]],
    ) -> Reader[Received]: ...

    def create_reader(
        self,
        topic: str,
        start_message_id: MessageId | Mapping[str, MessageId] | None = None,
        **options: Unpack[ReaderOptions[Received]],
    ) -> Reader[Received]:
        """Create a reader that begins after `start_message_id` (or at it, if inclusive).

        A `reader_listener` is a plain function, called in a thread of the reader's own, and may
        block. Raises as `pulsar_py.Client.create_reader`.
        """
        given = options.copy()
        pool: ListenerPool | None = None
        reader: Reader[Received]

        async def create() -> Reader[Received]:
            nonlocal reader
            inner = await self._inner.create_reader(topic, start_message_id, **given)
            # The listener's first call comes after this step of the loop.
            limit = (
                1 if options.get("interceptors") else _run_limit(options.get("receiver_queue_size"))
            )
            reader = Reader(self._shared, inner, run_limit=limit, pool=pool)
            return reader

        # Any: the listener of a blocking client takes blocking readers
        if (listener := cast("Any", options.get("reader_listener"))) is not None:
            check_listener("reader_listener", listener)
            pool = ListenerPool(f"reader of {topic}", 1)
            in_pool = pool.calling(listener)
            given["reader_listener"] = lambda _, message: in_pool(reader, message)
        return self._thread.run(create())

    @overload
    def create_table_view(
        self,
        topic: str,
        subscription_name: str | None = None,
        *,
        schema: None = None,
        **options: Unpack[TableViewOptionsWithoutSchema],
    ) -> TableView[bytes]: ...

    @overload
    def create_table_view(
        self,
        topic: str,
        subscription_name: str | None = None,
        *,
        schema: Schema[Received] | None,
        **options: Unpack[TableViewOptionsWithoutSchema],
    ) -> TableView[Received]: ...

    def create_table_view(
        self,
        topic: str,
        subscription_name: str | None = None,
        **options: Unpack[TableViewOptions[Received]],
    ) -> TableView[Received]:
        """Create a view of each key's newest value; returns when it has caught up.

        Raises as `pulsar_py.Client.create_table_view`.
        """

        async def create() -> TableView[Received]:
            view = await self._inner.create_table_view(topic, subscription_name, **options)
            return TableView(self._shared, view)

        return self._thread.run(create())

    def get_topic_partitions(self, topic: str) -> list[str]:
        """The full names of a topic's partitions; its own name where it has none.

        Raises as `pulsar_py.Client.get_topic_partitions`.
        """
        return self._thread.run(self._inner.get_topic_partitions(topic))

    def statistics(self) -> ClientStatistics:
        """The figures of the client, its producers and its consumers, since they were made."""
        return self._thread.call(self._inner.statistics)

    def update_service_url(
        self,
        service_url: str,
        *,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> None:
        """Use another cluster; see `pulsar_py.Client.update_service_url`."""
        self._thread.run(
            self._inner.update_service_url(
                service_url,
                authentication=authentication,
                tls_trust_certs_file_path=tls_trust_certs_file_path,
            )
        )

    def close(self) -> None:
        """Close what the client made, then its connections. May be called again.

        What threads have handed over is sent before; it ends within the operation timeout and a few
        seconds, also when brokers don't answer.
        """
        if not self._thread.is_forked:
            self._thread.open_clients.pop(self, None)
        self._thread.run(self._close())

    async def _close(self) -> None:
        self._shared.hand_over()
        await self._inner.close()

    def shutdown(self) -> None:
        """Close all connections at once, without CLOSE commands and without waiting.

        Sends that wait for receipts fail with ConnectionClosedError or AlreadyClosedError.
        """
        self._thread.open_clients.pop(self, None)
        self._thread.post(self._inner.shutdown)

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

    def __del__(self) -> None:
        """Tell of a client that nobody closed; it and what it made are dropped."""
        thread = getattr(self, "_thread", None)
        if thread is None or thread.is_forked or self._inner.is_closed:
            return
        warnings.warn(
            f"unclosed {self!r}: call close(), or use `with`",
            ResourceWarning,
            source=self,
            stacklevel=1,
        )
        thread.post(self._inner.shutdown)


def _run_limit(receiver_queue_size: int | None) -> int:
    """The most messages of a run: half of what the broker may send in advance."""
    size = _DEFAULT_QUEUE_SIZE if receiver_queue_size is None else receiver_queue_size
    return max(min(size // 2, LARGEST_RUN), 1) if isinstance(size, int) else 1
