"""`Elsewhere`: what is asked of the brokers that serve parts of a namespace or topic (edge).

A broker that is asked about a whole namespace or about all partitions of a topic does its part
itself, and has the owners of the other bundles do theirs, by REST.

Source: PulsarService.getAdminClient and its uses in NamespacesBase, PersistentTopicsBase.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from pulsar_py.common.errors import TopicBusyError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.common.network.http_client import HttpResponse
from pulsar_py.server.load.other_brokers import OtherBrokerError, OtherBrokers
from pulsar_py.server.namespaces.service import NamespaceService

_GONE: Final = HTTPStatus.NOT_FOUND
_BUSY: Final = HTTPStatus.PRECONDITION_FAILED


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
        """As `url_of_bundle`, of a topic's bundle.

        Raises:
            MetadataError: Ownership can't be read.
        """
        if self._namespaces.is_owned(name):
            return None
        return await self.url_of_bundle(name.namespace_name, await self._namespaces.bundle_of(name))

    async def call(self, url: str, method: str, path: str, body: bytes = b"") -> HttpResponse:
        """Ask the broker at `url`.

        Raises:
            OtherBrokerError: It refused.
            ClientError: It could not be reached.
        """
        return await self._others.call_url(url, method, path, body)

    async def delete_topic(self, name: TopicName, force: bool) -> bool:  # noqa: FBT001 - a callback
        """Have another owner delete a topic or partition; False if there is none.

        Raises:
            TopicBusyError: It has clients, and `force` is not set.
            OtherBrokerError: The owner refused for another reason.
            ClientError: It could not be reached.
        """
        url = await self.url_of(name)
        if url is None:
            return False
        flag = "true" if force else "false"
        try:
            await self.call(url, "DELETE", f"{topic_path(name)}?force={flag}")
        except OtherBrokerError as error:
            if error.status == _GONE:
                return True
            if error.status == _BUSY:
                raise TopicBusyError(error.reason) from error
            raise
        return True

    async def unload_bundles(self, namespace: NamespaceName) -> None:
        """Have all other owners of bundles of a namespace unload them.

        Raises:
            OtherBrokerError: One refused; those before it are unloaded.
            ClientError: One could not be reached.
        """
        for bundle in (await self._namespaces.bundles_of(namespace)).names:
            url = await self.url_of_bundle(namespace, bundle)
            if url is not None:
                await self.call(url, "PUT", f"/admin/v2/namespaces/{namespace}/{bundle}/unload")


def topic_path(name: TopicName) -> str:
    """The REST path of a topic."""
    return f"/admin/v2/{name.domain}/{name.namespace_name}/{quote(name.local_name, safe='')}"
