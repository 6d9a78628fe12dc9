"""REST resource of tenants: roles and clusters.

Source: TenantsBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from pulsar_py.admin.declared import Body, Flag
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.resources.namespaces import delete_namespace
from pulsar_py.admin.resources.requests import tenant_of
from pulsar_py.admin.router import Route, delete, get, post, put
from pulsar_py.common.errors import MetadataExistsError, MetadataNotEmptyError
from pulsar_py.metadata.documents import TenantInfo
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

TENANTS: Final = "/admin/v2/tenants"
TENANT: Final = TENANTS + "/{tenant}"


class TenantBody(Struct, frozen=True, rename="camel"):
    """The admin roles and the allowed clusters of a tenant."""

    admin_roles: list[str] | None = None
    allowed_clusters: list[str] | None = None


FORCE: Final = Flag("force")
_INFO: Final = Body(TenantBody, "tenant")


class Tenants:
    """Operations on the tenants, which all clusters share."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._tenants = broker.resources.tenants

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(TENANTS, self.names, Action.LIST_TENANTS, answer=list[str]),
            get(TENANT, self.info, Action.GET_TENANT, answer="TenantAnswer"),
            put(TENANT, self.create, Action.CREATE_TENANT, _INFO),
            post(TENANT, self.update, Action.UPDATE_TENANT, _INFO),
            delete(TENANT, self.delete, Action.DELETE_TENANT, FORCE),
        )

    async def names(self, request: Request) -> Response:  # noqa: ARG002
        """Return the sorted names of all tenants."""
        return json_response(await self._tenants.list())

    async def info(self, request: Request) -> Response:
        """Return the roles and clusters of one tenant."""
        found = await self._tenants.get(request.path["tenant"])
        if found is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "Tenant does not exist")
        return json_response(found.json)

    async def create(self, request: Request) -> Response:
        """Create a tenant."""
        info = await self._read_info(request)
        limit = self._broker.config.maxTenants
        if 0 < limit <= len(await self._tenants.list()):
            raise _refused("Exceed the maximum number of tenants")
        try:
            await self._tenants.create(tenant_of(request), info)
        except MetadataExistsError:
            raise HttpError(HTTPStatus.CONFLICT, "Tenant already exist") from None
        return NO_CONTENT

    async def update(self, request: Request) -> Response:
        """Change roles and clusters; a cluster to which a namespace replicates has to stay."""
        info = await self._read_info(request)
        tenant = tenant_of(request)
        if await self._tenants.get(tenant) is None:
            raise HttpError(HTTPStatus.NOT_FOUND, f"Tenant {tenant} not found")
        await self._check_clusters_in_use(tenant, set(info.allowed_clusters or ()))
        await self._tenants.update(tenant, lambda _: info)
        return NO_CONTENT

    async def _check_clusters_in_use(self, tenant: str, kept: set[str]) -> None:
        namespaces = self._broker.resources.namespaces
        for namespace in await namespaces.list(tenant):
            policies = await namespaces.get(namespace)
            used = set(policies.replication_clusters or ()) if policies is not None else set()
            for cluster in sorted(used - kept):
                raise HttpError(
                    HTTPStatus.PRECONDITION_FAILED,
                    f"Cannot remove cluster {cluster} from tenant {tenant}: namespace {namespace} "
                    "still has it as a replication cluster",
                )

    async def _read_info(self, request: Request) -> TenantInfo:
        """The checked body.

        Raises:
            HttpError: 412 if there is none, or a role or cluster in it is not allowed.
        """
        tenant_of(request)
        info = _INFO.of(request)
        if info is None:
            raise _refused("TenantInfo is null")
        roles, clusters = info.admin_roles, info.allowed_clusters
        if any(role != role.strip() for role in roles or ()):
            raise _refused("AdminRoles contains whitespace in the beginning or end.")
        if clusters is None:
            raise _refused("Clusters cannot be null")
        if not clusters or any(not name.strip() for name in clusters):
            raise _refused("Clusters cannot be empty or blank")
        if not set(clusters) <= set(await self._broker.resources.clusters.list()):
            raise _refused("Clusters do not exist")
        document: dict[str, list[str]] = {"allowedClusters": sorted(set(clusters))}
        if roles is not None:
            document["adminRoles"] = sorted(set(roles))
        return TenantInfo(document)

    async def delete(self, request: Request) -> Response:
        """Delete a tenant; with `force` its namespaces and topics, too, if that is allowed."""
        tenant = tenant_of(request)
        is_forced = FORCE.of(request)
        if is_forced and not self._broker.config.forceDeleteTenantAllowed:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED, "Broker doesn't allow forced deletion of tenants"
            )
        if await self._tenants.get(tenant) is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "Tenant doesn't exist")
        namespaces = await self._broker.resources.namespaces.list(tenant)
        if namespaces and not is_forced:
            raise HttpError(HTTPStatus.CONFLICT, "The tenant still has active namespaces")
        if namespaces and not self._broker.config.forceDeleteNamespaceAllowed:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED, "Broker doesn't allow forced deletion of namespaces"
            )
        for namespace in namespaces:
            await delete_namespace(self._broker, namespace, force=True)
        try:
            await self._tenants.delete(tenant)
        except MetadataNotEmptyError:  # a namespace was created meanwhile
            raise HttpError(HTTPStatus.CONFLICT, "The tenant still has active namespaces") from None
        return NO_CONTENT


def _refused(reason: str) -> HttpError:
    return HttpError(HTTPStatus.PRECONDITION_FAILED, reason)
