"""REST resource of a cluster's peers, and of moving a cluster to another one.

Both are stored and shown; no other cluster is connected to yet.

Source: ClustersBase in Pulsar's broker; ClusterPolicies of PIP-188.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from pulsar_py.admin.declared import Body, Flag, json_of
from pulsar_py.admin.http_messages import (
    EMPTY,
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
    optional_json_response,
)
from pulsar_py.admin.operations.stored_documents import change_document, read_document
from pulsar_py.admin.resources.clusters import CLUSTER
from pulsar_py.admin.router import Route, get, post
from pulsar_py.common.names import is_valid_entity
from pulsar_py.metadata import paths
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action


class ClusterUrls(Struct, frozen=True, rename="camel"):
    """The addresses of another cluster."""

    service_url: str | None = None
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None


_PEERS: Final = Body(list[str], "peers")
_ADDRESSES: Final = Body(ClusterUrls, "addresses")
_MIGRATED: Final = Flag("migrated")


class ClusterRelations:
    """Reads and sets peers and migrations."""

    def __init__(self, broker: BrokerService) -> None:
        self._clusters = broker.resources.clusters
        self._local = broker.resources.local

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(
                CLUSTER + "/peers",
                self.peers,
                Action.READ_CLUSTER,
                answer=list[str],
                may_be_empty=True,
            ),
            post(CLUSTER + "/peers", self.set_peers, Action.WRITE_CLUSTER, _PEERS),
            get(
                CLUSTER + "/migrate", self.migration, Action.READ_CLUSTER, answer="ClusterMigration"
            ),
            post(
                CLUSTER + "/migrate",
                self.set_migration,
                Action.WRITE_CLUSTER,
                _ADDRESSES,
                _MIGRATED,
                status=HTTPStatus.OK,
            ),
        )

    async def peers(self, request: Request) -> Response:
        """Return the peers of a cluster; an empty body if they were never set."""
        found = await self._clusters.get(request.path["cluster"])
        if found is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "Cluster does not exist")
        names = found.peer_cluster_names
        return optional_json_response(None if names is None else list(names))

    async def set_peers(self, request: Request) -> Response:
        """Set the peers of a cluster, to which its namespaces may not be replicated."""
        cluster = request.path["cluster"]
        names = _PEERS.of(request) or []
        for name in names:
            if name == cluster:
                raise HttpError(
                    HTTPStatus.PRECONDITION_FAILED, f"{cluster} itself can't be part of peer-list"
                )
            if not await self._clusters.exists(name):
                raise HttpError(
                    HTTPStatus.PRECONDITION_FAILED, f"Peer cluster {name} does not exist"
                )
        if not await self._clusters.exists(cluster):
            raise HttpError(HTTPStatus.NOT_FOUND, "Cluster does not exist")
        await self._clusters.update(
            cluster, lambda known: known.replace(peer_cluster_names=tuple(names))
        )
        return NO_CONTENT

    async def migration(self, request: Request) -> Response:
        """Return the cluster that clients are redirected to; 404 if it was never set."""
        found = await read_document(self._local, _migration_path(request))
        if found is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "Cluster does not exist")
        return json_response(found)

    async def set_migration(self, request: Request) -> Response:
        """Set the cluster that clients are redirected to, and whether they are."""
        urls = _ADDRESSES.required(
            request, "the body is missing: expected the other cluster's addresses"
        )
        named = {name: url for name, url in json_of(urls).items() if url is not None}
        document = {
            "migrated": _MIGRATED.of(request),
            "migratedClusterUrl": {**named, "empty": not named},
        }
        await change_document(self._local, _migration_path(request), lambda _: document)
        return EMPTY


def _migration_path(request: Request) -> str:
    cluster = request.path["cluster"]
    if not is_valid_entity(cluster):
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, "Cluster name is not valid")
    return paths.cluster_policies(cluster)
