"""REST resource of a namespace's clusters and its offload policies.

The clusters are checked and shown; nothing is replicated or offloaded yet.

Source: NamespacesBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.declared import LONG
from pulsar_py.admin.http_messages import (
    EMPTY,
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
    optional_json_response,
)
from pulsar_py.admin.policies.cluster_values import CLUSTER_NAMES, clusters
from pulsar_py.admin.policies.offload_values import (
    DELETION_LAG,
    THRESHOLD_BYTES,
    THRESHOLD_SECONDS,
    completed,
    offload_policies,
)
from pulsar_py.admin.resources.namespaces import NAMESPACE
from pulsar_py.admin.resources.requests import namespace_of
from pulsar_py.admin.resources.topic_access import NOT_THERE
from pulsar_py.admin.router import Handler, Route, delete, get, post, put
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

_OFFLOAD: Final = NamespacePolicies.offload_policies.json_name


class NamespaceClusters:
    """Reads and sets a namespace's clusters and offload policies."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._namespaces = broker.resources.namespaces

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        allowed, offload = NAMESPACE + "/allowedClusters", NAMESPACE + "/offloadPolicies"
        bytes_, seconds = NAMESPACE + "/offloadThreshold", NAMESPACE + "/offloadThresholdInSeconds"
        lag = NAMESPACE + "/offloadDeletionLagMs"
        return (
            post(
                NAMESPACE + "/replication",
                self.set_replication,
                Action.WRITE_POLICY,
                *clusters.takes,
                status=HTTPStatus.OK,
            ),
            get(allowed, self.allowed, Action.READ_POLICY, answer=list[str]),
            post(
                allowed, self.set_allowed, Action.WRITE_POLICY, CLUSTER_NAMES, status=HTTPStatus.OK
            ),
            get(
                offload,
                self.offload,
                Action.READ_POLICY,
                answer=offload_policies.kind,
                may_be_empty=True,
            ),
            post(offload, self.set_offload, Action.WRITE_POLICY, *offload_policies.takes),
            delete(NAMESPACE + "/removeOffloadPolicies", self.remove_offload, Action.WRITE_POLICY),
            get(bytes_, self._number(THRESHOLD_BYTES, unset=-1), Action.READ_POLICY, answer=int),
            put(bytes_, self._set_number(THRESHOLD_BYTES, NO_CONTENT), Action.WRITE_POLICY, LONG),
            get(seconds, self._number(THRESHOLD_SECONDS, unset=-1), Action.READ_POLICY, answer=int),
            put(
                seconds,
                self._set_number(THRESHOLD_SECONDS, EMPTY),
                Action.WRITE_POLICY,
                LONG,
                status=HTTPStatus.OK,
            ),
            get(
                lag,
                self._number(DELETION_LAG, unset=None),
                Action.READ_POLICY,
                answer=int,
                may_be_empty=True,
            ),
            put(lag, self._set_number(DELETION_LAG, NO_CONTENT), Action.WRITE_POLICY, LONG),
            delete(lag, self.remove_lag, Action.WRITE_POLICY),
        )

    # --- clusters --------------------------------------------------------------------------------

    async def set_replication(self, request: Request) -> Response:
        """Set the clusters to which the namespace is replicated."""
        names = clusters(request)
        namespace = namespace_of(request)
        known = await self._policies(namespace)
        await self._check_allowed(namespace, names, "Invalid cluster id")
        allowed = known.allowed_clusters
        if allowed and (beyond := sorted(set(names) - set(allowed))):
            raise HttpError(
                HTTPStatus.BAD_REQUEST,
                f"Cluster {beyond[0]} is not among the allowed clusters {sorted(allowed)}",
            )
        await self._namespaces.update(
            namespace, lambda policies: policies.replace(replication_clusters=tuple(names))
        )
        return EMPTY

    async def allowed(self, request: Request) -> Response:
        """Return the clusters in which the namespace may be; an empty list means the tenant's."""
        known = await self._policies(namespace_of(request))
        return json_response(list(known.allowed_clusters or ()))

    async def set_allowed(self, request: Request) -> Response:
        """Set the clusters in which the namespace may be."""
        names = CLUSTER_NAMES.required(request, "the body is missing: expected a list of clusters")
        namespace = namespace_of(request)
        known = await self._policies(namespace)
        await self._check_allowed(
            namespace,
            names,
            "not in the list of allowed clusters list for tenant "
            f"[{namespace.tenant}]: the cluster",
        )
        if missing := sorted(set(known.replication_clusters or ()) - set(names)):
            raise HttpError(
                HTTPStatus.BAD_REQUEST,
                f"Allowed clusters do not contain the replication cluster {missing}. Please remove "
                "the replication cluster if the cluster is not allowed for this namespace",
            )
        await self._namespaces.update(
            namespace, lambda policies: policies.replace(allowed_clusters=tuple(names))
        )
        return EMPTY

    async def _check_allowed(self, namespace: NamespaceName, names: list[str], why: str) -> None:
        """Refuse clusters that do not exist, or that the tenant may not use."""
        tenant = await self._broker.resources.tenants.get(namespace.tenant)
        allowed = set((tenant.allowed_clusters if tenant is not None else None) or ())
        for name in names:
            if name not in allowed or not await self._broker.resources.clusters.exists(name):
                raise HttpError(HTTPStatus.FORBIDDEN, f"{why}: {name:.200}")

    # --- offload ---------------------------------------------------------------------------------

    async def offload(self, request: Request) -> Response:
        """Return the offload policies."""
        known = await self._policies(namespace_of(request))
        return optional_json_response(known.json.get(_OFFLOAD))

    async def set_offload(self, request: Request) -> Response:
        """Set the offload policies."""
        value = offload_policies(request)
        await self._store_offload(namespace_of(request), value)
        return NO_CONTENT

    async def remove_offload(self, request: Request) -> Response:
        """Remove the offload policies."""
        await self._store_offload(namespace_of(request), None)
        return NO_CONTENT

    def _number(self, name: str, *, unset: int | None) -> Handler:
        async def show(request: Request) -> Response:
            known = await self._policies(namespace_of(request))
            value = (known.json.get(_OFFLOAD) or {}).get(name)
            return optional_json_response(unset if value is None else value)

        return show

    def _set_number(self, name: str, answer: Response) -> Handler:
        async def store(request: Request) -> Response:
            value = LONG.of(request)
            if value is None and not LONG.is_null(request):
                raise HttpError(HTTPStatus.BAD_REQUEST, "a whole number is required")
            await self._change_number(namespace_of(request), name, value)
            return answer

        return store

    async def remove_lag(self, request: Request) -> Response:
        """Unset after how many milliseconds what was offloaded is deleted from bookies."""
        await self._change_number(namespace_of(request), DELETION_LAG, None)
        return NO_CONTENT

    async def _change_number(self, namespace: NamespaceName, name: str, value: int | None) -> None:
        known = (await self._policies(namespace)).json.get(_OFFLOAD) or {}
        changed = {each: item for each, item in {**known, name: value}.items() if item is not None}
        await self._store_offload(namespace, completed(changed))

    async def _store_offload(self, namespace: NamespaceName, value: Any) -> None:  # Any: JSON
        await self._policies(namespace)
        await self._namespaces.update(
            namespace, lambda policies: policies.replace(offload_policies=value)
        )

    async def _policies(self, namespace: NamespaceName) -> NamespacePolicies:
        policies = await self._namespaces.get(namespace)
        if policies is None:
            raise HttpError(HTTPStatus.NOT_FOUND, NOT_THERE)
        return policies
