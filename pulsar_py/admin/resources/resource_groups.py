"""REST resource of resource groups: rates that the topics of some namespaces share.

Source: ResourceGroupsBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from pulsar_py.admin.declared import Body, Int, Long, json_of
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.router import Route, delete, get, put
from pulsar_py.metadata.documents import ResourceGroup
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

GROUPS: Final = "/admin/v2/resourcegroups"
GROUP: Final = GROUPS + "/{group}"


class GroupRates(Struct, frozen=True, rename="camel"):
    """The rates of a group; in a body one that is missing stays as it is."""

    publish_rate_in_msgs: Int | None = None
    publish_rate_in_bytes: Long | None = None
    dispatch_rate_in_msgs: Int | None = None
    dispatch_rate_in_bytes: Long | None = None


_RATES: Final = Body(GroupRates, "rates")
_UNSET: Final = dict.fromkeys(GroupRates.__struct_encode_fields__, -1)


class ResourceGroups:
    """Operations on the resource groups, which all clusters share."""

    def __init__(self, broker: BrokerService) -> None:
        self._groups = broker.resources.resource_groups
        self._resources = broker.resources

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(GROUPS, self.names, Action.READ_CLUSTER, answer=list[str]),
            get(GROUP, self.rates, Action.READ_CLUSTER, answer=GroupRates),
            put(GROUP, self.store, Action.WRITE_CLUSTER, _RATES),
            delete(GROUP, self.delete, Action.WRITE_CLUSTER),
        )

    async def names(self, request: Request) -> Response:  # noqa: ARG002
        """Return the sorted names of all groups."""
        return json_response(await self._groups.list())

    async def rates(self, request: Request) -> Response:
        """Return the rates of a group."""
        found = await self._groups.get(request.path["group"])
        if found is None:
            raise _not_there()
        return json_response(_UNSET | dict(found.json))

    async def store(self, request: Request) -> Response:
        """Create a group, or change the rates that the body has."""
        given = _RATES.required(request, "the rates of the group are required, at least {}")
        rates = {name: rate for name, rate in json_of(given).items() if rate is not None}

        def change(known: ResourceGroup | None) -> ResourceGroup:
            before = _UNSET if known is None else known.json
            return ResourceGroup({**before, **rates})

        await self._groups.update_or_create(request.path["group"], change)
        return NO_CONTENT

    async def delete(self, request: Request) -> Response:
        """Delete a group that no namespace is in."""
        name = request.path["group"]
        if await self._groups.get(name) is None:
            raise _not_there()
        for tenant in await self._resources.tenants.list():
            for namespace in await self._resources.namespaces.list(tenant):
                policies = await self._resources.namespaces.get(namespace)
                if policies is not None and policies.resource_group == name:
                    raise HttpError(
                        HTTPStatus.PRECONDITION_FAILED,
                        f"ResourceGroup {name} is in use by namespace {namespace}",
                    )
        await self._groups.delete(name)
        return NO_CONTENT


def _not_there() -> HttpError:
    return HttpError(HTTPStatus.NOT_FOUND, "ResourceGroup does not exist")
