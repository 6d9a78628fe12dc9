"""REST resource of topic lookups, for clients whose service URL is `http://`.

Source: TopicLookup in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.declared import Flag, Text
from pulsar_py.admin.http_messages import (
    HttpError,
    RedirectError,
    Request,
    Response,
    json_response,
    text_response,
)
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.topic_access import require_namespace
from pulsar_py.admin.router import Route, get
from pulsar_py.common.names import TopicName
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.namespaces.lookup import LookupType
from pulsar_py.server.security.actions import Action

TOPIC: Final = "/lookup/v2/topic/{domain:persistent|non-persistent}/{tenant}/{namespace}/{topic}"
WHOLE_RANGE: Final = "0x00000000_0xffffffff"


_AUTHORITATIVE: Final = Flag("authoritative")
_LISTENER: Final = Text("listenerName")


class Lookup:
    """Finds the broker and the bundle of a topic."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(TOPIC, self.topic, Action.LOOKUP, _AUTHORITATIVE, _LISTENER, answer="LookupAnswer"),
            get(TOPIC + "/bundle", self.bundle, Action.GET_BUNDLE_RANGE),
        )

    async def topic(self, request: Request) -> Response:
        """Return the owner's addresses.

        Raises:
            RedirectError: Another broker has to be asked.
        """
        name = topic_of(request)
        await require_namespace(self._broker, name.namespace_name)
        await self._check_partition(name)
        result = await self._broker.namespaces.lookup(
            name,
            authoritative=_AUTHORITATIVE.of(request),
            listener_name=_LISTENER.of(request) or request.headers.get("x-pulsar-listenername"),
        )
        addresses = result.addresses
        web_url = addresses.http_url or addresses.http_url_tls
        if result.type is LookupType.REDIRECT and web_url is not None:
            raise RedirectError(web_url, is_authoritative=result.is_authoritative)
        return json_response(
            {
                "brokerUrl": addresses.broker_url,
                "brokerUrlTls": addresses.broker_url_tls,
                "httpUrl": addresses.http_url,
                "httpUrlTls": addresses.http_url_tls,
                "nativeUrl": addresses.broker_url,
                "brokerUrlSsl": "",
            }
        )

    async def _check_partition(self, name: TopicName) -> None:
        """Refuse a missing partition; any other missing topic may be created by its client."""
        if not name.is_partition:
            return
        partitions_count = await self._broker.topics.partitioned.count(name.base)
        if name.partition_index >= partitions_count > 0:
            raise HttpError(HTTPStatus.NOT_FOUND, f"Topic not found {name}")

    async def bundle(self, request: Request) -> Response:
        """Return the topic's bundle as text."""
        name = topic_of(request)
        if not await self._broker.resources.namespaces.exists(name.namespace_name):
            return text_response(WHOLE_RANGE)
        return text_response(await self._broker.namespaces.bundle_of(name))
