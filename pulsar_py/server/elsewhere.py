"""`Elsewhere`: sends REST calls to the other brokers that serve a namespace or topic (edge).

A broker that is asked about a whole namespace or about all partitions of a topic does its part
itself, and has the owners of the other bundles do theirs, by REST. A topic that nobody serves goes
to the broker that a client's lookup would be led to, which may be this one.

Source: PulsarService.getAdminClient and its uses in NamespacesBase, PersistentTopicsBase;
PulsarWebResource.validateTopicOwnershipAsync.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, quote, urlsplit

from pulsar_py.common.errors import ClientError, ServiceNotReadyError, TopicBusyError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.server.load.other_brokers import OtherBrokerError, OtherBrokers
from pulsar_py.server.namespaces.lookup import LookupResult, LookupType
from pulsar_py.server.namespaces.service import NamespaceService

if TYPE_CHECKING:
    from pulsar_py.common.network.http_client import HttpResponse


MAX_HOPS: Final = 6
"""Brokers that are asked for the owner of one topic: leader and choice, and both once more."""
KNOWN_SECONDS: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Pauses in which a broker learns of partitions that another one has made."""
ATTEMPTS_COUNT: Final = 3
"""How often the owner of a topic is looked up that moves at the same time."""

_GONE: Final = HTTPStatus.NOT_FOUND
_BUSY: Final = HTTPStatus.PRECONDITION_FAILED
_NOT_YET: Final = HTTPStatus.PRECONDITION_FAILED
_EARLIEST: Final = b'{"ledgerId":-1,"entryId":-1}'


class Elsewhere:
    """The other owners, as one broker asks them; the broker closes `others`."""

    def __init__(self, namespaces: NamespaceService, others: OtherBrokers) -> None:
        self._namespaces = namespaces
        self._others = others

    async def url_of_bundle(self, namespace: NamespaceName, bundle: str) -> str | None:
        """The REST address of another broker that owns a bundle; None if none does.

        Raises:
            MetadataError: Ownership can't be read.
        """
        owner = await self._namespaces.other_owner(namespace, bundle)
        return None if owner is None else owner.default.http_url or owner.default.http_url_tls

    async def url_of(self, name: TopicName) -> str | None:
        """The REST address of another broker that serves a topic; None if it is this one.

        A bundle that nobody owns is taken, by the broker that a lookup leads to.

        Raises:
            TopicNotFoundError: There is no such namespace.
            ServiceNotReadyError: No broker serves it now.
            MetadataError: Ownership can't be read or written.
            OtherBrokerError: A broker that had to be asked refused, or could not be reached.
        """
        if self._namespaces.is_owned(name):
            return None
        result = await self._namespaces.lookup(name)
        for _ in range(MAX_HOPS):
            if self._namespaces.is_owned(name):
                return None
            url = result.addresses.http_url or result.addresses.http_url_tls
            if url is None:
                break
            if result.type is LookupType.CONNECT:
                return None if self._is_own(url) else url
            asked = await self._asked(url, name, authoritative=result.is_authoritative)
            if isinstance(asked, str):
                return None if self._is_own(asked) else asked
            result = asked
        raise ServiceNotReadyError(f"no broker serves {name} now; try again")

    async def _asked(self, url: str, name: TopicName, *, authoritative: bool) -> str | LookupResult:
        """What another broker says: the owner's address, or, where it leads back here, our own.

        Raises:
            PulsarError: As `url_of`.
        """
        flag = "true" if authoritative else "false"
        path = f"/lookup/v2/topic/{_spelled(name)}?authoritative={flag}"
        for _ in range(MAX_HOPS):
            try:
                found = (await self.call(url, "GET", path)).json()
            except OtherBrokerError as error:
                if error.location is None:
                    raise
                where = urlsplit(error.location)
                url, path = f"{where.scheme}://{where.netloc}", f"{where.path}?{where.query}"
                if self._is_own(url):
                    is_chosen = parse_qs(where.query).get("authoritative") == ["true"]
                    return await self._namespaces.lookup(name, authoritative=is_chosen)
                continue
            answer = found if isinstance(found, dict) else {}
            owner = answer.get("httpUrl") or answer.get("httpUrlTls")
            if isinstance(owner, str):
                return owner
            break
        raise ServiceNotReadyError(f"no broker serves {name} now; try again")

    def _is_own(self, url: str) -> bool:
        own = self._namespaces.addresses.default
        return url in {own.http_url, own.http_url_tls}

    async def ask_owner(
        self, name: TopicName, method: str, path: str, body: bytes = b""
    ) -> HttpResponse | None:
        """What another broker answers that serves a topic; None if this one does.

        Raises:
            OtherBrokerError: It refused.
            PulsarError: As `url_of`.
        """
        for attempts_left in reversed(range(ATTEMPTS_COUNT)):
            url = await self.url_of(name)
            if url is None:
                return None
            try:
                return await self.call(url, method, path, body)
            except OtherBrokerError as error:
                if error.location is None or not attempts_left:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def call(self, url: str, method: str, path: str, body: bytes = b"") -> HttpResponse:
        """Ask the broker at `url`.

        Raises:
            OtherBrokerError: It refused, or could not be reached, which has status 503.
        """
        try:
            return await self._others.call_url(url, method, path, body)
        except ClientError as error:
            status = HTTPStatus.SERVICE_UNAVAILABLE
            raise OtherBrokerError(f"{url}{path}: {error}", status) from error

    async def delete_topic(self, name: TopicName, force: bool) -> bool:  # noqa: FBT001 - a callback
        """Have another owner delete a topic or partition; False if there is none.

        Raises:
            TopicBusyError: It has clients, and `force` is not set.
            OtherBrokerError: The owner refused for another reason, or could not be reached.
        """
        flag = "true" if force else "false"
        try:
            answer = await self.ask_owner(name, "DELETE", f"{topic_path(name)}?force={flag}")
        except OtherBrokerError as error:
            if error.status == _GONE:
                return True
            if error.status == _BUSY:
                raise TopicBusyError(error.reason) from error
            raise
        return answer is not None

    async def is_here(self, name: TopicName) -> bool:
        """Whether this broker serves a topic, or takes it now that nobody does.

        False, too, where a broker that chooses does not know the topic yet: partitions that a topic
        is about to get.

        Raises:
            PulsarError: As `url_of`.
        """
        try:
            return await self.url_of(name) is None
        except OtherBrokerError as error:
            if error.status == _GONE:
                return False
            raise

    async def create_subscription(self, name: TopicName, subscription: str) -> bool:
        """Have another owner create a subscription at the earliest message; False without one.

        A partition that its topic has just got may be unknown there for a moment.

        Raises:
            OtherBrokerError: The owner refused, or could not be reached.
            PulsarError: As `url_of`.
        """
        path = f"{topic_path(name)}/subscription/{quote(subscription, safe='')}"
        for pause_seconds in (*KNOWN_SECONDS, None):
            try:
                return await self.ask_owner(name, "PUT", path, _EARLIEST) is not None
            except OtherBrokerError as error:
                if error.status == HTTPStatus.CONFLICT:  # it came meanwhile
                    return True
                if pause_seconds is None or error.status not in {_GONE, _NOT_YET}:
                    raise
            await asyncio.sleep(pause_seconds)
        raise AssertionError("the last attempt returns or raises")

    async def unload_bundles(self, namespace: NamespaceName) -> None:
        """Have all other owners of bundles of a namespace unload them.

        Raises:
            OtherBrokerError: One refused or could not be reached; those before it are unloaded.
        """
        for bundle in (await self._namespaces.bundles_of(namespace)).names:
            url = await self.url_of_bundle(namespace, bundle)
            if url is not None:
                await self.call(url, "PUT", f"/admin/v2/namespaces/{namespace}/{bundle}/unload")


def topic_path(name: TopicName) -> str:
    """The REST path of a topic."""
    return f"/admin/v2/{_spelled(name)}"


def _spelled(name: TopicName) -> str:
    return f"{name.domain}/{name.namespace_name}/{quote(name.local_name, safe='')}"
