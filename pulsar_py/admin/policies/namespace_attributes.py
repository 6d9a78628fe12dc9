"""REST resource of a namespace's properties, its groups, and the mark that it was migrated.

Properties belong to the users; nothing reads them here. The anti-affinity group stands with the
bundles, in the part of a namespace's policies that is this cluster's alone.

Source: NamespacesBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.declared import BOOLEAN, PROPERTIES, RawBody, Text
from pulsar_py.admin.http_messages import (
    EMPTY,
    JSON,
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
    optional_json_response,
    text_response,
)
from pulsar_py.admin.resources.namespaces import NAMESPACE, NAMESPACES
from pulsar_py.admin.resources.requests import namespace_of
from pulsar_py.admin.resources.topic_access import NOT_THERE, require_namespace
from pulsar_py.admin.router import Route, delete, get, post, put
from pulsar_py.metadata.documents import LocalPolicies, NamespacePolicies
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

MAX_GROUP_NAME_LENGTH: Final = 256
"""The most characters of an anti-affinity group's name."""

_GROUP: Final = RawBody((JSON,))
_TENANT: Final = Text("tenant")


class NamespaceAttributes:
    """Reads and sets attributes of namespaces."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._namespaces = broker.resources.namespaces
        self._local = broker.resources.local_policies

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        properties, one = NAMESPACE + "/properties", NAMESPACE + "/property/{key}"
        group, resources = NAMESPACE + "/antiAffinity", NAMESPACE + "/resourcegroup"
        return (
            get(properties, self.properties, Action.READ_POLICY, answer=dict[str, str]),
            put(properties, self.add_properties, Action.WRITE_POLICY, PROPERTIES),
            delete(properties, self.clear_properties, Action.WRITE_POLICY),
            get(one, self.one_property, Action.READ_POLICY),
            put(one + "/{value}", self.set_property, Action.WRITE_POLICY),
            delete(one, self.remove_property, Action.WRITE_POLICY, status=HTTPStatus.OK),
            get(group, self.anti_affinity_group, Action.READ_POLICY),
            post(group, self.set_anti_affinity_group, Action.WRITE_POLICY_OF_BROKERS, _GROUP),
            delete(group, self.remove_anti_affinity_group, Action.WRITE_POLICY_OF_BROKERS),
            get(
                NAMESPACES + "/{cluster}/antiAffinity/{group}",
                self.anti_affinity_namespaces,
                Action.READ_CLUSTER,
                _TENANT,
                answer=list[str],
            ),
            get(resources, self.resource_group, Action.READ_POLICY, answer=str, may_be_empty=True),
            post(
                resources + "/{group}",
                self.set_resource_group,
                Action.WRITE_POLICY_OF_BROKERS,
            ),
            delete(resources, self.remove_resource_group, Action.WRITE_POLICY_OF_BROKERS),
            post(
                NAMESPACE + "/migration", self.set_migrated, Action.WRITE_POLICY_OF_BROKERS, BOOLEAN
            ),
        )

    # --- properties ----------------------------------------------------------------------------

    async def properties(self, request: Request) -> Response:
        """Return all properties."""
        return json_response(dict((await self._policies(request)).properties or {}))

    async def add_properties(self, request: Request) -> Response:
        """Set some properties; the others stay."""
        added = PROPERTIES.of(request) or {}
        await self._change_properties(request, lambda known: {**known, **added})
        return NO_CONTENT

    async def clear_properties(self, request: Request) -> Response:
        """Remove all properties."""
        await self._change_properties(request, lambda _: {})
        return NO_CONTENT

    async def one_property(self, request: Request) -> Response:
        """Return the value of one property."""
        value = ((await self._policies(request)).properties or {}).get(request.path["key"])
        return EMPTY if value is None else text_response(value)

    async def set_property(self, request: Request) -> Response:
        """Set one property to the value in the path."""
        name, value = request.path["key"], request.path["value"]
        await self._change_properties(request, lambda known: {**known, name: value})
        return NO_CONTENT

    async def remove_property(self, request: Request) -> Response:
        """Remove one property; its value is returned."""
        name = request.path["key"]
        value = ((await self._policies(request)).properties or {}).get(name)
        await self._change_properties(
            request, lambda known: {each: text for each, text in known.items() if each != name}
        )
        return EMPTY if value is None else text_response(value)

    # --- groups --------------------------------------------------------------------------------

    async def anti_affinity_group(self, request: Request) -> Response:
        """Return the group of namespaces that different brokers should serve."""
        found = await self._local.get(namespace_of(request))
        group = None if found is None else found.anti_affinity_group
        return EMPTY if group is None else text_response(group)

    async def set_anti_affinity_group(self, request: Request) -> Response:
        """Set the group; the body is its name as plain text or as JSON."""
        name = _GROUP.of(request).strip().strip('"')
        if not name or len(name) > MAX_GROUP_NAME_LENGTH:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                f"the group's name has 1 to {MAX_GROUP_NAME_LENGTH} characters, not {len(name)}",
            )
        await self._local.update_or_create(
            namespace_of(request),
            lambda known: (known or LocalPolicies()).replace(anti_affinity_group=name),
        )
        return NO_CONTENT

    async def remove_anti_affinity_group(self, request: Request) -> Response:
        """Take the namespace out of its group."""
        await self._local.update_or_create(
            namespace_of(request),
            lambda known: (known or LocalPolicies()).replace(anti_affinity_group=None),
        )
        return NO_CONTENT

    async def anti_affinity_namespaces(self, request: Request) -> Response:
        """Return the namespaces of a group in a tenant."""
        cluster = request.path["cluster"]
        if await self._broker.resources.clusters.get(cluster) is None:
            raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"Cluster {cluster} does not exist.")
        tenant = _TENANT.of(request)
        if tenant is None:
            raise HttpError(HTTPStatus.BAD_REQUEST, "Tenant should not be null")
        found = []
        for namespace in await self._namespaces.list(tenant) if tenant else ():
            local = await self._local.get(namespace)
            if local is not None and local.anti_affinity_group == request.path["group"]:
                found.append(str(namespace))
        return json_response(found)

    async def resource_group(self, request: Request) -> Response:
        """Return the resource group whose rates the namespace's topics share."""
        return optional_json_response((await self._policies(request)).resource_group)

    async def set_resource_group(self, request: Request) -> Response:
        """Put the namespace into a resource group, which has to be there."""
        name = request.path["group"]
        await self._policies(request)
        if await self._broker.resources.resource_groups.get(name) is None:
            raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"ResourceGroup {name} does not exist")
        await self._namespaces.update(
            namespace_of(request), lambda known: known.replace(resource_group=name)
        )
        return NO_CONTENT

    async def remove_resource_group(self, request: Request) -> Response:
        """Take the namespace out of its resource group."""
        await self._policies(request)
        await self._namespaces.update(
            namespace_of(request), lambda known: known.replace(resource_group=None)
        )
        return NO_CONTENT

    async def set_migrated(self, request: Request) -> Response:
        """Mark the namespace as moved to another cluster, or not."""
        is_migrated = not BOOLEAN.is_null(request) and BOOLEAN.required(request)
        await self._policies(request)
        await self._namespaces.update(
            namespace_of(request), lambda known: known.replace(is_migrated=is_migrated)
        )
        return NO_CONTENT

    async def _policies(self, request: Request) -> NamespacePolicies:
        return await require_namespace(self._broker, namespace_of(request), NOT_THERE)

    async def _change_properties(
        self, request: Request, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> None:
        await self._policies(request)
        await self._namespaces.update(
            namespace_of(request),
            lambda known: known.replace(properties=change(known.properties or {})),
        )
