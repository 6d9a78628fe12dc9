"""`Client`: creates producers, consumers, readers and table views, and owns their connections.

    async with Client("pulsar://localhost:6650") as client:
        async with await client.create_producer("my-topic") as producer:
            await producer.send(b"hello")

One client serves a whole program: it shares its connections among all it makes. It works on the
event loop of its first use, starts no threads, and cannot be used in a forked child (which makes
its own). Nothing is connected before it is needed.

Source: the official Python client's `Client`; PulsarClient in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack, overload

from pulsar_py.client.brokers.client_config import ClientConfig
from pulsar_py.client.brokers.client_context import ClientContext, Closable
from pulsar_py.client.brokers.service_url import ServiceUrl, ServiceUrlProvider
from pulsar_py.client.messages.option_checks import (
    check_service_url,
    check_start_message_id,
    check_text,
    check_topics,
)
from pulsar_py.client.options import (
    ClientOptions,
    ConsumerOptions,
    ConsumerOptionsWithoutSchema,
    ProducerOptions,
    ProducerOptionsWithoutSchema,
    ReaderOptions,
    ReaderOptionsWithoutSchema,
    TableViewOptions,
    TableViewOptionsWithoutSchema,
    check_names,
)
from pulsar_py.client.security.authentication import Authentication
from pulsar_py.client.shared import absent_names
from pulsar_py.client.shared.absent_names import blocks, lacks
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.client.shared.fork_safety import watch
from pulsar_py.client.shared.statistics import ClientStatistics
from pulsar_py.client.shared.type_variables import Received, Sent
from pulsar_py.common.errors import AlreadyClosedError, InvalidConfigurationError
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName

if TYPE_CHECKING:
    from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
    from pulsar_py.client.many_topics.pattern_consumer import PatternConsumer
    from pulsar_py.client.producing.producer import Producer
    from pulsar_py.client.reading.reader import Reader
    from pulsar_py.client.reading.table_view import TableView
    from pulsar_py.client.subscribe import AnyConsumer
    from pulsar_py.schema.schema import Schema

__all__ = ["Client"]

logger = logging.getLogger(__name__)


@blocks
@lacks(absent_names.CLIENT)
class Client:
    """A client of one cluster; use it with `async with`, or call `close`."""

    def __init__(
        self,
        service_url: str | ServiceUrlProvider,
        authentication: Authentication | None = None,
        *,
        clock: Clock | None = None,
        chance: Random | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        """Make a client; nothing is connected yet, and no event loop is needed.

        Args:
            service_url: `pulsar://host:port,host:port`, `pulsar+ssl://…`, `http://…`, `https://…`,
                or a provider that chooses among clusters, such as `AutoClusterFailover`.
            authentication: The client's credentials; None sends none.
            clock: For tests in virtual time; the machine's if not given.
            chance: For tests that have to repeat; a new one if not given.
            **options: See `ClientOptions`.

        Raises:
            InvalidConfigurationError: An option is unknown or out of bounds.
            InvalidServiceUrlError: The URL can't be read.
        """
        check_service_url(service_url)
        self._provider = None if isinstance(service_url, str) else service_url
        text = service_url if isinstance(service_url, str) else service_url.initial_service_url()
        check_names(options, ClientOptions, "Client")
        if authentication is not None and not isinstance(authentication, Authentication):
            raise InvalidConfigurationError(
                f"authentication: expected an Authentication, got {type(authentication).__name__}"
            )
        self._context = ClientContext(
            ServiceUrl.parse(text),
            ClientConfig(authentication=authentication, **options),
            clock=clock or SystemClock(),
            chance=chance or Random(),  # noqa: S311 - spreads load, keeps no secret
        )
        self._is_provider_started = False
        # Set when `close` began; further callers of `close` wait for the same end.
        self._closing: asyncio.Future[None] | None = None
        watch(self._context)

    @property
    def context(self) -> ClientContext:
        """The state that the client's parts share; only for modules of this package."""
        return self._context

    @property
    def service_url(self) -> str:
        """The URL in use."""
        return str(self._context.service_url)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed; it can't be used again."""
        return self._context.closed_error is not None or self._closing is not None

    async def _start(self) -> None:
        """Check that the client can be used; each call begins with it."""
        self._context.check_usable()
        if self._closing is not None:
            raise AlreadyClosedError("the client is closing")
        if self._provider is not None and not self._is_provider_started:
            self._is_provider_started = True
            await self._provider.start(self, self._context)

    @overload
    async def create_producer(
        self,
        topic: str,
        *,
        schema: Schema[Sent] | None,
        **options: Unpack[ProducerOptionsWithoutSchema],
    ) -> Producer[Sent]: ...

    @overload
    async def create_producer(
        self,
        topic: str,
        *,
        schema: None = None,
        **options: Unpack[ProducerOptionsWithoutSchema],
    ) -> Producer[bytes | bytearray | memoryview]: ...

    async def create_producer(
        self, topic: str, **options: Unpack[ProducerOptions[Sent]]
    ) -> Producer[Sent]:
        """Create a producer of a topic, of all its partitions if it has several.

        Raises:
            InvalidConfigurationError, InvalidTopicNameError: An argument or option is not valid.
            ServiceError, ClientError: It could not be opened within the operation timeout.
        """
        from pulsar_py.client.producing.create_producer import create_producer  # noqa: PLC0415 - at first use

        check_text("topic", topic)
        check_names(options, ProducerOptions, "create_producer")
        await self._start()
        return await create_producer(self._context, topic, **options)

    @overload
    async def subscribe(
        self,
        topic: re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: None = None,
        **options: Unpack[ConsumerOptionsWithoutSchema[bytes]],
    ) -> PatternConsumer[bytes]: ...

    @overload
    async def subscribe(
        self,
        topic: re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: Schema[Received],
        **options: Unpack[ConsumerOptionsWithoutSchema[Received]],
    ) -> PatternConsumer[Received]: ...

    @overload
    async def subscribe(
        self,
        topic: list[str] | tuple[str, ...],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: None = None,
        **options: Unpack[ConsumerOptionsWithoutSchema[bytes]],
    ) -> MultiTopicsConsumer[bytes]: ...

    @overload
    async def subscribe(
        self,
        topic: list[str] | tuple[str, ...],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: Schema[Received],
        **options: Unpack[ConsumerOptionsWithoutSchema[Received]],
    ) -> MultiTopicsConsumer[Received]: ...

    @overload
    async def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: None = None,
        **options: Unpack[ConsumerOptionsWithoutSchema[bytes]],
    ) -> AnyConsumer[bytes]: ...

    @overload
    async def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ...,
        *,
        schema: Schema[Received] | None,
        **options: Unpack[ConsumerOptionsWithoutSchema[Received]],
    ) -> AnyConsumer[Received]: ...

    async def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ConsumerType.Exclusive,
        *,
        schema: Schema[Received] | None = None,
        **options: Unpack[ConsumerOptionsWithoutSchema[Received]],
    ) -> AnyConsumer[Received]:
        """Subscribe a consumer to a topic with all its partitions, to several, or to a pattern.

        A pattern gets a `PatternConsumer`, a list a `MultiTopicsConsumer`, and one topic a
        `MultiTopicsConsumer` if it has partitions or `retry_enable` is set, else a `Consumer`.

        Raises:
            InvalidConfigurationError, InvalidTopicNameError: An argument or option is not valid.
            ServiceError, ClientError: It could not be opened within the operation timeout.
        """
        from pulsar_py.client.subscribe import subscribe  # noqa: PLC0415 - at first use

        check_topics(topic)
        check_text("subscription_name", subscription_name)
        check_names(options, ConsumerOptions, "subscribe")
        await self._start()
        return await subscribe(
            self._context,
            topic,
            subscription_name,
            consumer_type=consumer_type,
            schema=schema,
            **options,
        )

    @overload
    async def create_reader(
        self,
        topic: str,
        start_message_id: MessageId | Mapping[str, MessageId] | None = None,
        *,
        schema: None = None,
        **options: Unpack[ReaderOptionsWithoutSchema[bytes]],
    ) -> Reader[bytes]: ...

    @overload
    async def create_reader(
        self,
        topic: str,
        start_message_id: MessageId | Mapping[str, MessageId] | None = None,
        *,
        schema: Schema[Received] | None,
        **options: Unpack[ReaderOptionsWithoutSchema[Received]],
    ) -> Reader[Received]: ...

    async def create_reader(
        self,
        topic: str,
        start_message_id: MessageId | Mapping[str, MessageId] | None = None,
        **options: Unpack[ReaderOptions[Received]],
    ) -> Reader[Received]:
        """Create a reader that begins after `start_message_id` (or at it, if inclusive).

        For a partitioned topic it may map each partition's full name to an id. With None the
        reader begins at the time among the options, or with what is published from now on.

        Raises:
            InvalidConfigurationError, InvalidTopicNameError: An argument or option is not valid.
            ServiceError, ClientError: It could not be opened within the operation timeout.
        """
        from pulsar_py.client.reading.reader import create_reader  # noqa: PLC0415 - at first use

        check_text("topic", topic)
        check_start_message_id(start_message_id)
        check_names(options, ReaderOptions, "create_reader")
        await self._start()
        return await create_reader(self._context, topic, start_message_id, **options)

    @overload
    async def create_table_view(
        self,
        topic: str,
        subscription_name: str | None = None,
        *,
        schema: None = None,
        **options: Unpack[TableViewOptionsWithoutSchema],
    ) -> TableView[bytes]: ...

    @overload
    async def create_table_view(
        self,
        topic: str,
        subscription_name: str | None = None,
        *,
        schema: Schema[Received] | None,
        **options: Unpack[TableViewOptionsWithoutSchema],
    ) -> TableView[Received]: ...

    async def create_table_view(
        self,
        topic: str,
        subscription_name: str | None = None,
        **options: Unpack[TableViewOptions[Received]],
    ) -> TableView[Received]:
        """Create a view of each key's newest value; returns when it has caught up.

        Raises:
            InvalidConfigurationError, InvalidTopicNameError: An argument or option is not valid.
            ServiceError, ClientError: It could not be opened within the operation timeout.
        """
        from pulsar_py.client.reading.table_view import create_table_view  # noqa: PLC0415 - at first use

        check_text("topic", topic)
        check_names(options, TableViewOptions, "create_table_view")
        await self._start()
        return await create_table_view(self._context, topic, subscription_name, **options)

    async def get_topic_partitions(self, topic: str) -> list[str]:
        """The full names of a topic's partitions; its own name where it has none.

        Raises:
            InvalidConfigurationError, InvalidTopicNameError: It is not a topic name.
            ServiceError, ClientError: No answer within the operation timeout.
        """
        check_text("topic", topic)
        await self._start()
        name = TopicName.parse(topic)
        if name.partition_index >= 0:
            return [str(name)]
        count = await self._context.partitions_count(str(name))
        return [str(name.partition(i)) for i in range(count)] or [str(name)]

    def statistics(self) -> ClientStatistics:
        """The figures of the client, its producers and its consumers, since they were made.

        Intervals (`stats_interval_in_seconds`) go on. Call it in the client's event loop.
        """
        context = self._context
        return context.statistics.peek(
            connections_count=len(context.pool.connections),
            pending_bytes=context.memory_limit.current_bytes,
        )

    async def update_service_url(
        self,
        service_url: str,
        *,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> None:
        """Use another cluster: connections close, producers and consumers come back there.

        Args:
            service_url: As in `Client`, but not a provider.
            authentication: Instead of the one so far; None keeps that.
            tls_trust_certs_file_path: None takes the one in the client's options.

        Raises:
            InvalidServiceUrlError: It is not a service URL; nothing changed.
        """
        self._context.check_usable()
        await self._context.update_service_url(
            service_url,
            authentication=authentication,
            tls_trust_certs_file_path=tls_trust_certs_file_path,
        )

    async def close(self) -> None:
        """Close what the client made, then its connections. May be called again.

        Ends within the operation timeout and a few seconds, also when brokers don't answer; when it
        is cancelled, everything is dropped at once.
        """
        if self._closing is not None:
            await asyncio.shield(self._closing)
            return
        if self._context.closed_error is not None:
            return
        self._context.check_usable()
        self._closing = asyncio.get_running_loop().create_future()
        try:
            await self._close()
        finally:
            self._context.abandon()
            self._closing.set_result(None)

    async def _close(self) -> None:
        if self._provider is not None and self._is_provider_started:
            await self._provider.close()
        seconds = self._context.config.operation_timeout_seconds
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(_close_child(each) for each in self._context.children))
        await self._context.close()
        if self._context.config.authentication is not None:
            await self._context.config.authentication.close()

    def shutdown(self) -> None:
        """Close all connections at once, without CLOSE commands, where nothing can be awaited.

        Sends that wait for receipts fail with ConnectionClosedError or AlreadyClosedError.
        """
        self._context.abandon()

    def __repr__(self) -> str:
        return f"Client({self.service_url}, {'closed' if self.is_closed else 'open'})"

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


async def _close_child(child: Closable) -> None:
    try:
        await child.close()
    except Exception as error:  # noqa: BLE001 - one that can't be closed must not keep the others open
        logger.warning(
            "%r not closed cleanly: %s",
            child,
            error,
            extra={"who": repr(child), "error": str(error)},
        )
