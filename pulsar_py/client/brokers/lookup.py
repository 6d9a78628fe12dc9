"""Finds a topic's broker, partitions and schema, and the topics of a namespace (edge).

`LookupService` is the interface; `BinaryLookup` asks brokers by Pulsar's binary protocol, and
`http_lookup` by REST.

Source: LookupService and BinaryProtoLookupService in Pulsar's client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from pulsar_py.client.brokers.service_url import BrokerAddress, ServiceUrl, ServiceUrlHosts
from pulsar_py.client.shared.enums import RegexSubscriptionMode
from pulsar_py.client.shared.retries import repeat
from pulsar_py.client.shared.shared_calls import SharedCalls
from pulsar_py.common.errors import (
    ClientTimeoutError,
    ConnectError,
    ConnectionClosedError,
    InvalidServiceUrlError,
    LookupFailedError,
    NotABrokerError,
    ServiceNotReadyError,
    TopicNotFoundError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandGetTopicsOfNamespace,
    CommandLookupTopicResponse,
    Schema,
)
from pulsar_py.wire import client_commands

if TYPE_CHECKING:
    from random import Random

    from pulsar_py.client.brokers.client_cnx import ClientCnx
    from pulsar_py.client.brokers.client_config import ClientConfig
    from pulsar_py.client.brokers.connection_pool import ConnectionPool
    from pulsar_py.common.loops.clock import Clock

__all__ = ["BinaryLookup", "LookupContext", "LookupService", "NamespaceTopics", "SchemaAnswer"]

MAX_PARTITIONS: Final = 100_000
"""A larger answer is taken for an error: no topic has as many partitions."""

_MODES: Final = {
    RegexSubscriptionMode.PersistentOnly: CommandGetTopicsOfNamespace.PERSISTENT,
    RegexSubscriptionMode.NonPersistentOnly: CommandGetTopicsOfNamespace.NON_PERSISTENT,
    RegexSubscriptionMode.AllTopics: CommandGetTopicsOfNamespace.ALL,
}


@dataclass(frozen=True, slots=True)
class NamespaceTopics:
    """A namespace's topics, as the broker listed them."""

    topics: tuple[str, ...]
    """Full names, partitions one by one; empty where `is_changed` is false."""
    is_filtered: bool
    """Whether the broker applied the pattern."""
    topics_hash: str
    is_changed: bool
    """False: the list is the one whose hash was sent."""


@dataclass(frozen=True, slots=True)
class SchemaAnswer:
    """A version of a topic's schema."""

    schema: Schema
    version: bytes


class LookupService(Protocol):
    """Asks brokers about topics. Each call ends within the operation timeout."""

    async def lookup(self, topic: str) -> BrokerAddress:
        """The broker that owns the topic; one attempt.

        Raises:
            ServiceError: The broker refused.
            LookupFailedError: Too many redirects, or an answer without a usable address.
            ClientTimeoutError, ConnectError, ConnectionClosedError: No answer.
        """

    async def partitions_count(self, topic: str, *, may_create: bool = True) -> int:
        """The number of partitions; 0 for a topic without. Repeats requests that may succeed later.

        Args:
            topic: Full name, and not that of a partition.
            may_create: Whether the broker may create a topic that does not exist.

        Raises:
            ServiceError, LookupFailedError, ClientTimeoutError: As `lookup`.
        """

    async def topics_of_namespace(
        self,
        namespace: str,
        mode: RegexSubscriptionMode,
        *,
        pattern: str | None = None,
        topics_hash: str | None = None,
    ) -> NamespaceTopics:
        """The topics of `tenant/namespace`; repeats requests that may succeed later.

        Raises as `partitions_count`.
        """

    async def schema(self, topic: str, version: bytes | None = None) -> SchemaAnswer | None:
        """A topic's schema of that version, or its newest; None if the topic has no schema.

        Raises as `partitions_count`.
        """

    async def get_or_create_schema(self, topic: str, schema: Schema) -> bytes:
        """The version of that schema, which is registered if it is new.

        Raises:
            IncompatibleSchemaError: The topic's compatibility strategy refuses it.
            ServiceError, LookupFailedError, ClientTimeoutError: As `lookup`.
        """

    def abandon(self) -> None:
        """Cancel requests under way, without waiting for their end."""

    async def close(self) -> None:
        """Cancel requests under way and wait for their end."""


class LookupContext(Protocol):
    """The parts of a ClientContext that lookups use."""

    @property
    def config(self) -> ClientConfig:
        """The client's options now; they change with the service URL."""

    @property
    def clock(self) -> Clock:
        """Times out requests and delays repetitions."""

    @property
    def random(self) -> Random:
        """Chooses among hosts and spreads repetitions."""

    @property
    def pool(self) -> ConnectionPool:
        """The client's connections."""


class BinaryLookup:
    """Lookups over Pulsar's protocol, at the hosts of one service URL. Owned by the ClientContext.

    Equal questions at the same time are asked once; at most `concurrent_lookup_requests` are under
    way.
    """

    def __init__(self, context: LookupContext, url: ServiceUrl) -> None:
        self._context = context
        self._hosts = ServiceUrlHosts(url, context.random)
        self._tasks = TaskOwner("lookup")
        self._lookups: SharedCalls[BrokerAddress] = SharedCalls(self._tasks, ends_with_callers=True)
        self._counts: SharedCalls[int] = SharedCalls(self._tasks, ends_with_callers=True)
        self._schemas: SharedCalls[SchemaAnswer | None] = SharedCalls(
            self._tasks, ends_with_callers=True
        )
        self._places = asyncio.Semaphore(context.config.concurrent_lookup_requests)

    async def lookup(self, topic: str) -> BrokerAddress:
        """See `LookupService`."""
        return await self._lookups.run(topic, partial(self._lookup, topic))

    async def _lookup(self, topic: str) -> BrokerAddress:
        async with self._places:
            return await self._follow(topic)

    async def _follow(self, topic: str) -> BrokerAddress:
        entry = self._hosts.current
        asked = entry
        is_authoritative = False
        config = self._context.config
        for _ in range(config.max_lookup_redirects + 1):
            cnx = await self._connection(asked)
            request_id = cnx.next_request_id()
            frame = client_commands.lookup(
                topic,
                request_id,
                is_authoritative=is_authoritative,
                listener_name=config.listener_name,
            )
            answer = await self._ask(cnx, request_id, frame, subject=topic, host=asked)
            response = answer.lookupTopicResponse
            broker = self._broker_of(response, topic)
            if response.response != CommandLookupTopicResponse.Redirect:
                is_proxied = response.proxy_through_service_url
                return BrokerAddress(broker, entry if is_proxied else broker, self.is_tls)
            asked = broker
            is_authoritative = response.authoritative
        raise LookupFailedError(f"{topic}: more than {config.max_lookup_redirects} redirects")

    @property
    def is_tls(self) -> bool:
        """Whether the service URL asks for encryption."""
        return self._hosts.url.is_tls

    def _broker_of(self, response: CommandLookupTopicResponse, topic: str) -> str:
        text = response.brokerServiceUrlTls if self.is_tls else response.brokerServiceUrl
        kind = "TLS URL" if self.is_tls else "URL"
        if not text:
            raise LookupFailedError(f"{topic}: the broker's answer has no {kind}")
        try:
            return ServiceUrl.parse(text).hosts[0]
        except InvalidServiceUrlError:
            raise LookupFailedError(
                f"{topic}: the broker answered the {kind} {text!r}, expected pulsar://host:port"
            ) from None

    async def _connection(self, host: str) -> ClientCnx:
        try:
            return await self._context.pool.get(BrokerAddress(host, host, self.is_tls))
        except NotABrokerError as error:
            self._hosts.on_failure(host)
            if host not in self._hosts.url.hosts or len(self._hosts.url.hosts) == 1:
                raise
            raise ConnectError(str(error)) from error  # another host may be one
        except ConnectError:
            self._hosts.on_failure(host)
            raise

    async def _ask(
        self, cnx: ClientCnx, request_id: int, frame: bytes, *, subject: str, host: str
    ) -> BaseCommand:
        try:
            return await cnx.request(request_id, frame, subject=subject)
        except (ServiceNotReadyError, ClientTimeoutError, ConnectionClosedError):
            # Another host may be able to answer. Closing the connection helps where one address
            # stands for several brokers: behind a load balancer the next one may be another.
            self._hosts.on_failure(host)
            if cnx.is_idle:
                cnx.close("not ready to serve lookups")
            raise

    async def partitions_count(self, topic: str, *, may_create: bool = True) -> int:
        """See `LookupService`."""
        return await self._counts.run(
            (topic, may_create), partial(self._partitions_count, topic, may_create=may_create)
        )

    async def _partitions_count(self, topic: str, *, may_create: bool) -> int:
        answer = await self._repeat(
            lambda request_id: client_commands.partitioned_metadata(
                topic, request_id, may_create=may_create
            ),
            subject=topic,
        )
        count = answer.partitionMetadataResponse.partitions
        if count > MAX_PARTITIONS:
            raise LookupFailedError(
                f"{topic}: the broker answered {count} partitions, expected 0 to {MAX_PARTITIONS}"
            )
        return count

    async def topics_of_namespace(
        self,
        namespace: str,
        mode: RegexSubscriptionMode,
        *,
        pattern: str | None = None,
        topics_hash: str | None = None,
    ) -> NamespaceTopics:
        """See `LookupService`."""
        answer = await self._repeat(
            lambda request_id: client_commands.get_topics_of_namespace(
                namespace,
                request_id,
                mode=_MODES[mode],
                topics_pattern=pattern,
                topics_hash=topics_hash,
            ),
            subject=namespace,
        )
        response = answer.getTopicsOfNamespaceResponse
        return NamespaceTopics(
            tuple(response.topics),
            is_filtered=response.filtered,
            topics_hash=response.topics_hash,
            is_changed=response.changed,
        )

    async def schema(self, topic: str, version: bytes | None = None) -> SchemaAnswer | None:
        """See `LookupService`."""
        return await self._schemas.run((topic, version), partial(self._schema, topic, version))

    async def _schema(self, topic: str, version: bytes | None) -> SchemaAnswer | None:
        try:
            answer = await self._repeat(
                lambda request_id: client_commands.get_schema(topic, request_id, version),
                subject=topic,
            )
        except TopicNotFoundError:
            return None
        response = answer.getSchemaResponse
        return SchemaAnswer(response.schema, response.schema_version)

    async def get_or_create_schema(self, topic: str, schema: Schema) -> bytes:
        """See `LookupService`."""
        address = await self.lookup(topic)
        cnx = await self._context.pool.get(address)
        request_id = cnx.next_request_id()
        frame = client_commands.get_or_create_schema(topic, request_id, schema)
        answer = await cnx.request(request_id, frame, subject=topic)
        return answer.getOrCreateSchemaResponse.schema_version

    async def _repeat(self, frame: Callable[[int], bytes], *, subject: str) -> BaseCommand:
        """Ask any host, again and again within the operation timeout."""

        async def attempt(_seconds: float) -> BaseCommand:
            async with self._places:
                host = self._hosts.current
                cnx = await self._connection(host)
                request_id = cnx.next_request_id()
                return await self._ask(
                    cnx, request_id, frame(request_id), subject=subject, host=host
                )

        config = self._context.config
        return await repeat(
            attempt,
            clock=self._context.clock,
            chance=self._context.random,
            timeout_seconds=config.operation_timeout_seconds,
            subject=subject,
            initial_seconds=config.initial_backoff_seconds,
            maximum_seconds=config.outage_backoff_seconds,
        )

    def abandon(self) -> None:
        """See `LookupService`."""
        self._tasks.abandon()

    async def close(self) -> None:
        """See `LookupService`."""
        await self._tasks.close()
