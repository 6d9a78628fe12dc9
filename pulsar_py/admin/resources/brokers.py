"""REST resource of brokers: list, health, version.

Source: BrokersBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.declared import Text
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    RedirectError,
    Request,
    Response,
    json_response,
    text_response,
)
from pulsar_py.admin.resources.topic_access import broker_id_of
from pulsar_py.admin.router import Route, get, post
from pulsar_py.common.errors import ServiceNotReadyError, StoreUnavailableError
from pulsar_py.metadata import paths
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.upkeep.topic_upkeep import enforce_backlog_quota

BROKERS: Final = "/admin/v2/brokers"
VERSION: Final = "4.2.4"
"""The version of Pulsar whose behaviour this broker has; tools compare it."""


_BROKER_ID: Final = Text("brokerId")


class Brokers:
    """The brokers of the cluster; of a standalone one this broker alone."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(BROKERS, self.active, Action.READ_BROKERS, answer=list[str]),
            get(BROKERS + "/{cluster}", self.active, Action.READ_BROKERS, answer=list[str]),
            get(
                BROKERS + "/{cluster}/{broker}/ownedNamespaces",
                self.owned_bundles,
                Action.READ_BROKERS,
                answer="dict[str, OwnedBundle]",
            ),
            get(BROKERS + "/leaderBroker", self.leader, Action.READ_BROKERS, answer="LeaderAnswer"),
            get(
                BROKERS + "/internal-configuration",
                self.internal_configuration,
                Action.READ_BROKERS,
                answer="InternalConfiguration",
            ),
            get(
                BROKERS + "/backlog-quota-check",
                self.check_backlog_quotas,
                Action.WRITE_BROKERS,
                status=HTTPStatus.NO_CONTENT,
            ),
            # Not of Apache Pulsar, whose brokers are drained by stopping them.
            post(BROKERS + "/drain", self.drain, Action.WRITE_BROKERS),
            get(BROKERS + "/health", self.health, Action.READ_BROKERS, _BROKER_ID),
            get(BROKERS + "/ready", self.ready, "open to every caller: probes ask it"),
            get(BROKERS + "/version", self.version, "open to every caller: tools ask it first"),
        )

    async def active(self, request: Request) -> Response:  # noqa: ARG002 - any cluster
        """Return the ids of the brokers that are registered."""
        membership = self._broker.membership
        if membership is not None and membership.is_joined:
            return json_response(sorted(membership.directory.brokers))
        return json_response([broker_id_of(self._broker)])

    async def owned_bundles(self, request: Request) -> Response:
        """Return the bundles that this broker owns; of another one, ask that."""
        broker_id = request.path["broker"]
        if broker_id != broker_id_of(self._broker):
            membership = self._broker.membership
            known = None if membership is None else membership.directory.brokers.get(broker_id)
            url = None if known is None else known.web_url or known.web_url_tls
            if url is not None:
                raise RedirectError(url)
            raise HttpError(
                HTTPStatus.NOT_FOUND, f"Broker id '{broker_id}' not found in available brokers."
            )
        owned = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
        return json_response(
            {
                f"{namespace}/{bundle}": owned
                for namespace, bundle in self._broker.namespaces.owned_bundles()
            }
        )

    async def drain(self, request: Request) -> Response:  # noqa: ARG002
        """Hand all bundles over to other brokers; this one takes none until it is started anew."""
        membership = self._broker.membership
        if membership is None or not membership.is_joined:
            raise HttpError(
                HTTPStatus.CONFLICT,
                "this broker belongs to no cluster: no other one could take its topics",
            )
        others = set(membership.directory.brokers) - {membership.own.broker_id}
        if not others:
            raise HttpError(
                HTTPStatus.CONFLICT,
                f"{membership.own.broker_id} is the only broker of its cluster: start another one, "
                "which takes its topics",
            )
        await self._broker.hand_over()
        return NO_CONTENT

    async def leader(self, request: Request) -> Response:  # noqa: ARG002
        """Return the leader broker."""
        membership = self._broker.membership
        if membership is not None and membership.is_joined:
            leader = membership.directory.brokers.get(membership.leader_id or "")
            if leader is None:
                raise HttpError(HTTPStatus.NOT_FOUND, "Couldn't find leader broker")
            url = leader.web_url or leader.web_url_tls
            return json_response({"serviceUrl": url, "brokerId": leader.broker_id})
        broker_id = broker_id_of(self._broker)
        addresses = self._broker.addresses.default
        url = addresses.http_url or addresses.http_url_tls
        return json_response({"serviceUrl": url, "brokerId": broker_id})

    async def health(self, request: Request) -> Response:
        """Return `ok` if the broker can store a key and read it back."""
        wanted = _BROKER_ID.of(request)
        if wanted is not None and wanted != broker_id_of(self._broker):
            raise HttpError(
                HTTPStatus.NOT_FOUND, f"Broker id '{wanted}' not found in available brokers."
            )
        await self._broker.check_health()
        return text_response("ok")

    async def internal_configuration(self, request: Request) -> Response:  # noqa: ARG002
        """The URLs of metadata and ledgers; empty for those inside this process."""
        config = self._broker.config
        is_of_cluster = self._broker.refused_topics is not None
        local = config.metadataStoreUrl if is_of_cluster else ""
        shared = (config.configurationMetadataStoreUrl or local) if is_of_cluster else ""
        answer = {
            "zookeeperServers": local,
            "configurationStoreServers": shared,
            "metadataStoreUrl": local,
            "configurationMetadataStoreUrl": shared,
            "ledgersRootPath": paths.LEDGERS,
        }
        if is_of_cluster and config.bookkeeperMetadataServiceUri:
            answer["bookkeeperMetadataServiceUri"] = config.bookkeeperMetadataServiceUri
        return json_response(answer)

    async def check_backlog_quotas(self, request: Request) -> Response:  # noqa: ARG002
        """Check all backlog quotas now, not only at the next interval."""
        for topic in list(self._broker.topics.topics.values()):
            if isinstance(topic, PersistentTopic):
                await enforce_backlog_quota(topic)
        return NO_CONTENT

    async def ready(self, request: Request) -> Response:  # noqa: ARG002
        """Return `ok` if topics can be served. The port accepts no connections before the start.

        Raises:
            HttpError: 503, with the reason: the metadata session is in doubt, or no ledger could be
                created. The broker keeps running and trying, so a later request may succeed.
        """
        try:
            await self._broker.check_ready()
        except (ServiceNotReadyError, StoreUnavailableError) as error:
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None
        return text_response("ok")

    async def version(self, request: Request) -> Response:  # noqa: ARG002
        """Return the version as raw text."""
        return text_response(VERSION)
