"""Looks topics up over the REST API, for `http://` and `https://` service URLs (edge).

    lookup      GET /lookup/v2/topic/{topic}                    -> brokerUrl, brokerUrlTls
    partitions  GET /admin/v2/{topic}/partitions                -> partitions
    topics      GET /admin/v2/namespaces/{namespace}/topics     -> [full names]
    schema      GET, POST /admin/v2/schemas/{topic}/schema      -> version, type, data, properties

Brokers redirect to the one that owns the topic; where a host does not answer, the next one of the
service URL is asked. Brokers are reached by `pulsar+ssl` if the service URL is `https`.

Source: HttpLookupService and HttpClient in Pulsar's Java client; TopicLookup and SchemasResource in
Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

from pulsar_py.client.brokers.lookup import LookupContext, NamespaceTopics, SchemaAnswer
from pulsar_py.client.brokers.plain_probe import speaks_plain_pulsar
from pulsar_py.client.brokers.rest_schemas import schema_from_rest, schema_to_rest, version_bytes
from pulsar_py.client.brokers.service_url import (
    BrokerAddress,
    ServiceUrl,
    ServiceUrlHosts,
    host_and_port,
)
from pulsar_py.client.shared.enums import RegexSubscriptionMode
from pulsar_py.client.shared.retries import repeat
from pulsar_py.client.shared.shared_calls import SharedCalls
from pulsar_py.common.errors import (
    AuthenticationError,
    AuthorizationError,
    ClientTimeoutError,
    ConnectError,
    ConnectionClosedError,
    IncompatibleSchemaError,
    InvalidServiceUrlError,
    LookupFailedError,
    NotABrokerError,
    PulsarError,
    RemoteProtocolError,
    ServiceNotReadyError,
    TooManyRequestsError,
    TopicNotFoundError,
    UnknownServiceError,
)
from pulsar_py.common.hashing import topics_hash as hash_of_topics
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import TopicName
from pulsar_py.common.network.http_client import (
    HttpRedirectError,
    HttpRequest,
    HttpResponse,
    http_request,
)
from pulsar_py.common.network.tls import refused_certificate
from pulsar_py.proto.PulsarApi_pb2 import Schema

__all__ = ["HttpLookup"]

logger = logging.getLogger(__name__)

MAX_PARTITIONS: Final = 100_000
"""A larger answer is taken for an error: no topic has as many partitions."""

_MODES: Final = {
    RegexSubscriptionMode.PersistentOnly: "PERSISTENT",
    RegexSubscriptionMode.NonPersistentOnly: "NON_PERSISTENT",
    RegexSubscriptionMode.AllTopics: "ALL",
}

_ERRORS: Final[Mapping[int, type[PulsarError]]] = {
    HTTPStatus.UNAUTHORIZED: AuthenticationError,
    HTTPStatus.FORBIDDEN: AuthorizationError,
    HTTPStatus.NOT_FOUND: TopicNotFoundError,
    HTTPStatus.CONFLICT: IncompatibleSchemaError,  # only requests about schemas get this status
    HTTPStatus.UNPROCESSABLE_ENTITY: IncompatibleSchemaError,
    HTTPStatus.TOO_MANY_REQUESTS: TooManyRequestsError,
    HTTPStatus.SERVICE_UNAVAILABLE: ServiceNotReadyError,
    HTTPStatus.BAD_GATEWAY: ServiceNotReadyError,
    HTTPStatus.GATEWAY_TIMEOUT: ServiceNotReadyError,
}


class HttpLookup:
    """A LookupService over REST, at the hosts of one service URL. Owned by the ClientContext.

    Equal questions at the same time are asked once; at most `concurrent_lookup_requests` are under
    way.
    """

    def __init__(self, context: LookupContext, url: ServiceUrl) -> None:
        """`url` is `http` or `https`."""
        self._context = context
        self._is_tls = url.is_tls
        self._hosts = ServiceUrlHosts(url, context.random)
        # Hosts that did not answer and were logged; at most those of the URL.
        self._unreachable: set[str] = set()
        self._tasks = TaskOwner("HTTP lookup")
        self._lookups: SharedCalls[BrokerAddress] = SharedCalls(self._tasks, ends_with_callers=True)
        self._counts: SharedCalls[int] = SharedCalls(self._tasks, ends_with_callers=True)
        self._places = asyncio.Semaphore(context.config.concurrent_lookup_requests)

    async def lookup(self, topic: str) -> BrokerAddress:
        """See `LookupService`."""
        return await self._lookups.run(topic, partial(self._lookup, topic))

    async def _lookup(self, topic: str) -> BrokerAddress:
        listener = self._context.config.listener_name
        query = {} if listener is None else {"listenerName": listener}
        answer = await self._ask("GET", f"/lookup/v2/topic/{_topic_path(topic)}", query)
        field = "brokerUrlTls" if self._is_tls else "brokerUrl"
        url = _object(answer).get(field)
        if not isinstance(url, str) or not url:
            raise LookupFailedError(f"{topic}: {answer.url} answers without {field}")
        try:
            broker = ServiceUrl.parse(url)
        except InvalidServiceUrlError as error:
            raise LookupFailedError(
                f"{topic}: {answer.url} answers {field}={url!r}, expected host and port"
            ) from error
        if broker.is_http or broker.is_tls != self._is_tls:
            scheme = "pulsar+ssl" if self._is_tls else "pulsar"
            raise LookupFailedError(
                f"{topic}: {answer.url} answers {field}={url!r}, expected {scheme}://"
            )
        return BrokerAddress(broker.hosts[0], broker.hosts[0], self._is_tls)

    async def partitions_count(self, topic: str, *, may_create: bool = True) -> int:
        """See `LookupService`."""
        call = partial(self._partitions_count, topic, may_create)
        return await self._counts.run(
            (topic, may_create), lambda: self._repeat(call, f"partitions of {topic}")
        )

    async def _partitions_count(self, topic: str, may_create: bool) -> int:  # noqa: FBT001 - partial
        query = {"checkAllowAutoCreation": str(may_create).lower()}
        answer = await self._ask("GET", f"/admin/v2/{_topic_path(topic)}/partitions", query)
        count = _object(answer).get("partitions")
        if not isinstance(count, int) or not 0 <= count <= MAX_PARTITIONS:
            raise LookupFailedError(
                f"{topic}: {answer.url} answers partitions={count!r}, "
                f"expected 0 to {MAX_PARTITIONS}"
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
        """See `LookupService`; the pattern is left to the client."""
        del pattern
        path = f"/admin/v2/namespaces/{quote(namespace)}/topics"
        call = partial(self._ask, "GET", path, {"mode": _MODES[mode]})
        answer = await self._repeat(call, f"topics of {namespace}")
        topics = answer.json()
        if not isinstance(topics, list) or not all(isinstance(each, str) for each in topics):
            raise LookupFailedError(
                f"{namespace}: {answer.url} answered something else than a list of topics"
            )
        found = hash_of_topics(topics)
        is_changed = found != topics_hash
        return NamespaceTopics(
            tuple(topics) if is_changed else (),
            is_filtered=False,
            topics_hash=found,
            is_changed=is_changed,
        )

    async def schema(self, topic: str, version: bytes | None = None) -> SchemaAnswer | None:
        """See `LookupService`."""
        path = _schema_path(topic)
        if version is not None:
            path += f"/{int.from_bytes(version, 'big')}"
        call = partial(self._ask, "GET", path)
        try:
            answer = await self._repeat(call, f"schema of {topic}")
        except TopicNotFoundError:  # the same status as for a topic without a schema
            return None
        return SchemaAnswer(*schema_from_rest(topic, _object(answer)))

    async def get_or_create_schema(self, topic: str, schema: Schema) -> bytes:
        """See `LookupService`."""
        body = json.dumps(schema_to_rest(schema)).encode()
        call = partial(self._ask, "POST", _schema_path(topic), body=body)
        answer = await self._repeat(call, f"schema of {topic}")
        version = _object(answer).get("version")
        return version_bytes(topic, version.get("version") if isinstance(version, dict) else None)

    async def internal_stats(self, topic: str) -> dict[str, Any]:  # Any: JSON
        """Ledgers, entries and bytes of a topic or partition; the answer of `internalStats`.

        Raises:
            ServiceError, ClientError: As `LookupService.lookup`.
        """
        path = f"/admin/v2/{_topic_path(topic)}/internalStats"
        call = partial(self._ask, "GET", path)
        return _object(await self._repeat(call, f"internal statistics of {topic}"))

    async def stats(self, topic: str) -> dict[str, Any]:  # Any: JSON
        """Rates, producers and subscriptions of a topic or partition; the answer of `stats`.

        Raises:
            ServiceError, ClientError: As `LookupService.lookup`.
        """
        call = partial(self._ask, "GET", f"/admin/v2/{_topic_path(topic)}/stats")
        return _object(await self._repeat(call, f"statistics of {topic}"))

    def abandon(self) -> None:
        """See `LookupService`."""
        self._tasks.abandon()

    async def close(self) -> None:
        """See `LookupService`."""
        await self._tasks.close()

    async def _repeat(self, call: Any, subject: str) -> Any:  # Any: what `call` returns
        config = self._context.config
        return await repeat(
            lambda _: call(),
            clock=self._context.clock,
            chance=self._context.random,
            timeout_seconds=config.operation_timeout_seconds,
            subject=subject,
            initial_seconds=config.initial_backoff_seconds,
            maximum_seconds=config.outage_backoff_seconds,
        )

    async def _ask(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: bytes = b""
    ) -> HttpResponse:
        """The answer with a status of 2xx; redirects are followed."""
        async with self._places:
            host = self._hosts.current
            try:
                answer = await self._follow(method, self._url(host, path, query or {}), body)
            except (ConnectError, ConnectionClosedError, ClientTimeoutError) as error:
                if (refusal := refused_certificate(error)) is not None:
                    raise AuthenticationError(f"https://{host}: {refusal}") from error
                self._hosts.on_failure(host)
                self._on_unreachable(host, error)
                if isinstance(error, ConnectionClosedError):
                    await self._check_speaks_http(host, error)
                raise
            except ServiceNotReadyError:
                self._hosts.on_failure(host)
                raise
            self._unreachable.discard(host)
            return answer

    def _on_unreachable(self, host: str, error: PulsarError) -> None:
        """Log it once, until the host answers again."""
        if host not in self._unreachable:
            self._unreachable.add(host)
            logger.warning(
                "no answer from %s://%s: %s",
                self._hosts.url.scheme,
                host,
                error,
                extra={"service_url": str(self._hosts.url), "host": host, "error": str(error)},
            )

    async def _check_speaks_http(self, host: str, error: ConnectionClosedError) -> None:
        """Raise where the only host speaks the binary protocol in place of HTTP."""
        is_only_one = len(self._hosts.url.hosts) == 1
        if is_only_one and not self._is_tls and await speaks_plain_pulsar(*host_and_port(host)):
            raise NotABrokerError(
                f"http://{host}: no web service on that port, it speaks the binary protocol:"
                f" use pulsar://{host}"
            ) from error

    def _url(self, host: str, path: str, query: Mapping[str, str]) -> str:
        url = f"{self._hosts.url.scheme}://{host}{path}"
        return f"{url}?{urlencode(query)}" if query else url

    async def _follow(self, method: str, url: str, body: bytes) -> HttpResponse:
        config = self._context.config
        authentication = config.authentication
        headers = {} if authentication is None else dict(await authentication.http_headers())
        if body:
            headers["Content-Type"] = "application/json"
        ssl_context = await asyncio.to_thread(config.new_ssl_context) if self._is_tls else None
        try:
            answer = await http_request(
                HttpRequest(method=method, url=url, headers=headers, body=body),
                ssl_context=ssl_context,
                timeout_seconds=config.operation_timeout_seconds,
                max_redirects=config.max_lookup_redirects,
            )
        except HttpRedirectError as error:
            raise LookupFailedError(str(error)) from error
        return _successful(answer)


def _topic_path(topic: str) -> str:
    name = TopicName.parse(topic)
    return f"{name.domain}/{_below_domain(name)}"


def _schema_path(topic: str) -> str:
    return f"/admin/v2/schemas/{_below_domain(TopicName.parse(topic).base)}/schema"


def _below_domain(name: TopicName) -> str:
    return f"{quote(str(name.namespace_name))}/{quote(name.local_name, safe='')}"


def _successful(answer: HttpResponse) -> HttpResponse:
    if answer.is_success:
        return answer
    error = _ERRORS.get(answer.status)
    if error is None:
        is_server = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        error = UnknownServiceError if is_server else LookupFailedError
    raise error(f"{answer.url}: {answer.reason()}")


def _object(answer: HttpResponse) -> dict[str, Any]:  # Any: JSON
    value = answer.json()
    if not isinstance(value, dict):
        raise RemoteProtocolError(
            f"{answer.url}: expected a JSON object, got {type(value).__name__}"
        )
    return value
