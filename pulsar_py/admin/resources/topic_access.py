"""Finds topics for resources; raises Pulsar's 404 for a missing topic."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from pulsar_py.admin.http_messages import CURRENT_REQUEST, HttpError, RedirectError, Request
from pulsar_py.common.errors import TopicNotFoundError
from pulsar_py.common.loops.work import in_turns
from pulsar_py.common.names import PARTITION_SUFFIX, NamespaceName, TopicName
from pulsar_py.common.network.http_client import HttpResponse
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.elsewhere import topic_path
from pulsar_py.server.load.other_brokers import OtherBrokerError
from pulsar_py.server.topics.partitions import TOPICS_AT_ONCE
from pulsar_py.server.topics.topic import Topic

NOT_THERE: Final = "Namespace does not exist"

MISSING_PARTITION: Final = (HTTPStatus.NOT_FOUND,)
"""Of a partition that another broker serves: it was deleted alone, or never loaded."""
"""The reason of calls about a namespace itself; those about its topics have another."""


def broker_id_of(broker: BrokerService) -> str:
    """The id of the broker: `host:web-port`."""
    addresses = broker.namespaces.addresses.default
    url = addresses.http_url or addresses.http_url_tls or ""
    return url.partition("://")[2]


async def require_namespace(
    broker: BrokerService, namespace: NamespaceName, reason: str = "Namespace not found"
) -> NamespacePolicies:
    """The policies of a namespace, which has to exist.

    Raises:
        HttpError: 404 with `reason` if it does not.
    """
    policies = await broker.resources.namespaces.get(namespace)
    if policies is None:
        raise HttpError(HTTPStatus.NOT_FOUND, reason)
    return policies


def topic_not_found(name: TopicName) -> HttpError:
    """The 404 with the text that clients look for."""
    return HttpError(HTTPStatus.NOT_FOUND, f"Topic {name} not found")


async def require_topic(broker: BrokerService, name: TopicName) -> Topic:
    """A topic, loaded if it is not.

    Raises:
        RedirectError: Another broker serves it.
        HttpError: 404 if there is no such namespace, topic or partition; also for the name of a
            partitioned topic, which is not a topic by itself.
    """
    await require_namespace(broker, name.namespace_name)
    if await broker.topics.partitioned.count(name):
        raise topic_not_found(name)
    if name.is_partition:
        partitions_count = await broker.topics.partitioned.count(name.base)
        if name.partition_index >= partitions_count:
            raise HttpError(HTTPStatus.NOT_FOUND, "Topic partitions were not yet created")
    await require_owned(broker, name)
    try:
        return await broker.topics.get_or_load(name, create_if_missing=False)
    except TopicNotFoundError:
        raise topic_not_found(name) from None


async def require_owned(broker: BrokerService, name: TopicName) -> None:
    """Serve a topic here if nobody does and a lookup does not lead elsewhere.

    A caller is sent to the port without TLS if the owner has one, as his own may be either.

    Raises:
        RedirectError: Another broker serves it, or is to be asked.
    """
    if broker.namespaces.is_owned(name):
        return
    result = await broker.namespaces.lookup(name, authoritative=is_sent_here())
    url = result.addresses.http_url or result.addresses.http_url_tls
    if url is not None and not broker.namespaces.is_owned(name):
        raise RedirectError(url, is_authoritative=result.is_authoritative)


def is_sent_here() -> bool:
    """Whether another broker chose this one, and sent the request that is answered now."""
    request = CURRENT_REQUEST.get()
    return request is not None and request.is_authoritative


async def refuse_partitioned(
    broker: BrokerService, name: TopicName, what: str, *, hint: str = ""
) -> None:
    """Check that a name is not that of a partitioned topic; `hint` ends the reason.

    Raises:
        HttpError: 405 if it is.
    """
    if await broker.topics.partitioned.count(name):
        raise HttpError(
            HTTPStatus.METHOD_NOT_ALLOWED, f"{what} a partitioned topic is not allowed{hint}"
        )


def refuse_partition_name(name: TopicName) -> None:
    """Check that a partitioned topic is named, and not one of its partitions.

    Raises:
        HttpError: 412 if the name is like a partition's.
    """
    if PARTITION_SUFFIX in name.local_name:
        raise HttpError(
            HTTPStatus.PRECONDITION_FAILED,
            f"Partitioned Topic Name should not contain '{PARTITION_SUFFIX}'",
        )


async def for_each_partition(
    broker: BrokerService,
    name: TopicName,
    act: Callable[[TopicName], Awaitable[object]],
    *,
    on_answer: Callable[[TopicName, HttpResponse], object] = lambda _, __: None,
    tolerated: Collection[int] = (),
) -> None:
    """Call `act` for a topic, or for each partition of a partitioned one, in order.

    A partition of another broker gets there what the current request asks of all, and `on_answer`
    gets its answer. Refusals with a status that is `tolerated` are passed over.

    Raises:
        OtherBrokerError: The other broker refused, or could not be reached.
    """
    partitions_count = await broker.topics.partitioned.count(name)
    if not partitions_count:
        await act(name)
        return
    request = CURRENT_REQUEST.get()
    async for part in partitions_in_turns(name, partitions_count):
        try:
            answer = None
            if request is not None:
                answer = await broker.elsewhere.ask_owner(
                    part, request.method, _path_for(request, part), request.passed_on_body
                )
        except OtherBrokerError as error:
            if error.status not in tolerated:
                raise
            continue
        if answer is None:
            await act(part)
        else:
            on_answer(part, answer)


_DOMAINS: Final = ("persistent", "non-persistent")


def _path_for(request: Request, part: TopicName) -> str:
    """The path of the request about one partition of its topic.

    It begins `/admin/v2/DOMAIN/tenant/namespace/topic`, or has more before the domain.
    """
    segments = request.raw_path.split("/")
    domain = next(place for place, each in enumerate(segments) if each in _DOMAINS)
    segments[domain + 3] = quote(part.local_name, safe="")
    return "/".join(segments) + request.passed_on_query


async def ask_owner(
    broker: BrokerService,
    name: TopicName,
    method: str,
    what: str,
    *,
    tolerated: Collection[int] = (),
) -> Any | None:  # Any: JSON
    """What another broker answers about a topic that it serves; None if no other one does.

    `what` is the end of the path, with its query. An empty answer, and a refusal with a status that
    is `tolerated`, is an empty dictionary.

    Raises:
        OtherBrokerError: It refused, or could not be reached.
    """
    try:
        answer = await broker.elsewhere.ask_owner(name, method, f"{topic_path(name)}{what}")
    except OtherBrokerError as error:
        if error.status not in tolerated:
            raise
        return {}
    if answer is None:
        return None
    return answer.json() if answer.body else {}


async def partitions_in_turns(name: TopicName, partitions_count: int) -> AsyncIterator[TopicName]:
    """The partitions of a topic, in order; after some of them others have a turn."""
    async for indexes in in_turns(range(partitions_count), TOPICS_AT_ONCE):
        for index in indexes:
            yield name.partition(index)
