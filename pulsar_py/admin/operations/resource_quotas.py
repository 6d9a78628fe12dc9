"""REST resource of the load that bundles are expected to bring.

Quotas are kept where Apache Pulsar keeps them. A bundle that no broker has reported so far is
placed by its quota.

Source: ResourceQuotasBase in Pulsar's broker; ResourceQuotaBody.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct

from pulsar_py.admin.declared import Body, json_of
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.operations.stored_documents import (
    change_document,
    delete_document,
    read_document,
)
from pulsar_py.admin.resources.requests import namespace_of
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.metadata import paths
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

QUOTAS: Final = "/admin/v2/resource-quotas"
BUNDLE: Final = QUOTAS + "/{tenant}/{namespace}/{bundle}"

_DEFAULT_PATH: Final = paths.RESOURCE_QUOTAS + "/default"


class ResourceQuotaBody(Struct, frozen=True, rename="camel"):
    """What a bundle is expected to need: messages and bytes a second, megabytes."""

    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    bandwidth_in: float = 0.0
    bandwidth_out: float = 0.0
    memory: float = 0.0
    dynamic: bool = False


_QUOTA: Final = Body(ResourceQuotaBody, "resource quota")

DEFAULT: Final = {
    "msgRateIn": 40.0,
    "msgRateOut": 120.0,
    "bandwidthIn": 100_000.0,
    "bandwidthOut": 300_000.0,
    "memory": 80.0,
    "dynamic": True,
}
"""Of bundles without a quota, unless another default was set."""


class ResourceQuotas:
    """Reads, sets and removes quotas."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._store = broker.resources.local

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(QUOTAS, self.default, Action.READ_BROKERS, answer=ResourceQuotaBody),
            post(QUOTAS, self.set_default, Action.WRITE_BROKERS, _QUOTA),
            get(BUNDLE, self.of_bundle, Action.READ_BROKERS, answer=ResourceQuotaBody),
            post(BUNDLE, self.set_of_bundle, Action.WRITE_BROKERS, _QUOTA),
            delete(BUNDLE, self.remove_of_bundle, Action.WRITE_BROKERS),
        )

    async def default(self, request: Request) -> Response:  # noqa: ARG002
        """Return the quota of bundles without one of their own."""
        return json_response(await self._default())

    async def _default(self) -> dict[str, Any]:  # Any: JSON
        return await read_document(self._store, _DEFAULT_PATH) or DEFAULT

    async def set_default(self, request: Request) -> Response:
        """Set the quota of bundles without one of their own."""
        quota = _quota_of(request)
        await change_document(self._store, _DEFAULT_PATH, lambda _: quota)
        return NO_CONTENT

    async def of_bundle(self, request: Request) -> Response:
        """Return the quota of one bundle."""
        found = await read_document(self._store, await self._path(request))
        return json_response(found or await self._default())

    async def set_of_bundle(self, request: Request) -> Response:
        """Set the quota of one bundle."""
        quota = _quota_of(request)
        await change_document(self._store, await self._path(request), lambda _: quota)
        return NO_CONTENT

    async def remove_of_bundle(self, request: Request) -> Response:
        """Use the default for the bundle again."""
        await delete_document(self._store, await self._path(request))
        return NO_CONTENT

    async def _path(self, request: Request) -> str:
        namespace, bundle = namespace_of(request), request.path["bundle"]
        exists = await self._broker.resources.namespaces.exists(namespace)
        bundles = await self._broker.namespaces.bundles_of(namespace)
        if not exists or bundle not in bundles.names:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED, f"there is no bundle {namespace}/{bundle}"
            )
        return paths.bundle_quota(f"{namespace}/{bundle}")


def _quota_of(request: Request) -> dict[str, Any]:  # Any: JSON
    quota = json_of(_QUOTA.required(request, "the body is missing: expected a resource quota"))
    if min(quota.values()) < 0:
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, "no number of a quota may be negative")
    return quota
