"""REST resource of clusters: names and addresses.

Source: ClustersBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from pulsar_py.admin.declared import Body
from pulsar_py.admin.http_messages import (
    EMPTY,
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.json_values import read_text
from pulsar_py.admin.router import Route, delete, get, post, put
from pulsar_py.common.errors import MetadataExistsError, MetadataNotFoundError
from pulsar_py.common.names import is_valid_entity
from pulsar_py.metadata.documents import ClusterData
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

CLUSTERS: Final = "/admin/v2/clusters"
CLUSTER: Final = CLUSTERS + "/{cluster}"
_SCHEMES: Final = (
    ("serviceUrl", {"http"}, "Illegal service url, example: http://pulsar.example.com:8080"),
    (
        "serviceUrlTls",
        {"https"},
        "Illegal service tls url, example: https://pulsar.example.com:8443",
    ),
    (
        "brokerServiceUrl",
        {"pulsar"},
        "Illegal broker service url, example: pulsar://pulsar.example.com:6650",
    ),
    (
        "brokerServiceUrlTls",
        {"pulsar+ssl"},
        "Illegal broker service tls url, example: pulsar+ssl://pulsar.example.com:6651",
    ),
)
_UNLESS_SET: Final = {
    "brokerClientTlsEnabled": False,
    "tlsAllowInsecureConnection": False,
    "brokerClientTlsEnabledWithKeyStore": False,
    "brokerClientTlsKeyStoreType": "JKS",
    "brokerClientTlsTrustStoreType": "JKS",
    "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
}


_DATA: Final = Body(dict[str, Any], "cluster data")


class Clusters:
    """Operations on the clusters in the configuration store."""

    def __init__(self, broker: BrokerService) -> None:
        self._clusters = broker.resources.clusters

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(CLUSTERS, self.names, "open to every caller: names alone", answer=list[str]),
            get(CLUSTER, self.data, Action.READ_CLUSTER, answer="ClusterAnswer"),
            put(CLUSTER, self.create, Action.WRITE_CLUSTER, _DATA, status=HTTPStatus.OK),
            post(CLUSTER, self.update, Action.WRITE_CLUSTER, _DATA, status=HTTPStatus.OK),
            delete(CLUSTER, self.delete, Action.WRITE_CLUSTER),
        )

    async def names(self, request: Request) -> Response:  # noqa: ARG002
        """Return the names of all clusters but `global`; needs no right."""
        return json_response(await self._clusters.list())

    async def data(self, request: Request) -> Response:
        """Return one cluster's addresses."""
        found = await self._clusters.get(request.path["cluster"])
        if found is None:
            raise _not_found()
        return json_response({**_UNLESS_SET, **found.json})

    async def create(self, request: Request) -> Response:
        """Create a cluster."""
        name = request.path["cluster"]
        fields = _DATA.of(request)
        if fields is None:
            raise HttpError(HTTPStatus.BAD_REQUEST, "cluster data is required")
        if not is_valid_entity(name):
            raise HttpError(HTTPStatus.PRECONDITION_FAILED, "Cluster name is not valid")
        _check_urls(fields)
        try:
            await self._clusters.create(name, ClusterData(fields))
        except MetadataExistsError:
            raise HttpError(HTTPStatus.CONFLICT, "Cluster already exists") from None
        return EMPTY

    async def update(self, request: Request) -> Response:
        """Change the addresses of a cluster."""
        fields = _DATA.of(request)
        if fields is None:
            raise HttpError(HTTPStatus.BAD_REQUEST, "cluster data is required")
        _check_urls(fields)
        try:
            await self._clusters.update(request.path["cluster"], lambda _: ClusterData(fields))
        except MetadataNotFoundError:
            raise _not_found() from None
        return EMPTY

    async def delete(self, request: Request) -> Response:
        """Delete a cluster's record, whether or not tenants name the cluster."""
        name = request.path["cluster"]
        if not await self._clusters.exists(name):
            raise _not_found()
        await self._clusters.delete(name)
        return NO_CONTENT


def _not_found() -> HttpError:
    return HttpError(HTTPStatus.NOT_FOUND, "Cluster does not exist")


def _check_urls(fields: dict[str, Any]) -> None:  # Any: parsed JSON
    for name, schemes, reason in _SCHEMES:
        url = read_text(fields.get(name), name)
        if url and (urlsplit(url).scheme not in schemes or not urlsplit(url).netloc):
            raise HttpError(HTTPStatus.BAD_REQUEST, reason)
