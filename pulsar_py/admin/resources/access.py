"""Authenticates HTTP requests, and checks the right that their route needs (edge).

What lies below `/admin`, `/lookup` and `/topics` needs authentication before anything else, so that
an unknown route tells nobody anything. Then the route's action is asked for. While both are off,
there is no `Access` at all.

Source: AuthenticationFilter, PulsarWebResource in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.http_messages import HttpError, Request
from pulsar_py.admin.resources.requests import namespace_of, tenant_of, topic_of
from pulsar_py.admin.router import BadPathError, Route, first_segment
from pulsar_py.common.errors import AuthenticationError
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.audit import Audit
from pulsar_py.server.security.authentication import (
    METHOD_HEADER,
    PRINCIPAL_HEADER,
    Authenticators,
)
from pulsar_py.server.security.authorization import AccessTarget, Authorization, Caller
from pulsar_py.server.security.peer import Peer

__all__ = ["Access"]

_GUARDED: Final = ("admin", "lookup", "topics")
_METRICS: Final = "metrics"
"""First segments of paths, decoded as the router does: `/%61dmin` is `/admin`."""

_TENANT_FIRST: Final = frozenset({Action.LIST_NAMESPACES, Action.CREATE_NAMESPACE})
_NAMESPACE_FIRST: Final = frozenset({Action.LOOKUP, Action.CREATE_TOPIC})
"""Actions of which everybody is told that a tenant or namespace is missing, as in Pulsar."""


class Access:
    """The guard of one broker's HTTP ports; made by its composition root."""

    def __init__(
        self,
        authenticators: Authenticators,
        authorization: Authorization,
        resources: Resources,
        audit: Audit,
        *,
        guards_metrics: bool = False,
    ) -> None:
        self._authenticators = authenticators
        self._authorization = authorization
        self._resources = resources
        self._audit = audit
        self._guarded = (*_GUARDED, _METRICS) if guards_metrics else _GUARDED

    async def caller_of(
        self, raw_path: str, headers: Mapping[str, str], peer: Peer
    ) -> Caller | None:
        """The caller of a request, None without authentication.

        Raises:
            AuthenticationError: The credentials are missing or invalid.
        """
        try:
            if not first_segment(raw_path).startswith(self._guarded):
                return None
        except BadPathError:
            pass  # who is nobody learns nothing of it
        try:
            proved = await self._authenticators.authenticate_http(headers, peer)
        except AuthenticationError as error:
            self._audit.authentication_refused(
                address=peer.remote_address,
                method_name=headers.get(METHOD_HEADER, ""),
                reason=str(error),
                path=raw_path,
            )
            raise
        return Caller(proved.role, headers.get(PRINCIPAL_HEADER))

    async def check(self, route: Route, request: Request, caller: Caller | None) -> None:
        """Return if the caller may use the route.

        Raises:
            HttpError: 401 or 403, as the route's action has it; 404 for what is missing.
        """
        action = route.needs
        if not isinstance(action, Action):
            return
        if caller is None and self._authenticators.is_enabled:  # whatever let the path through
            raise HttpError(HTTPStatus.UNAUTHORIZED, "Need to authenticate to perform the request")
        if caller is None or not self._authorization.is_enabled:
            return
        target = target_of(request)
        if self._authorization.is_valid(caller, may_name_itself=True):
            await self._check_there(action, target)
            if await self._authorization.allows(caller, action, target):
                return
        if caller.role is None:
            raise HttpError(action.refusal_status, "Need to authenticate to perform the request")
        raise HttpError(
            action.refusal_status,
            f"Unauthorized to {action.description} for originalPrincipal "
            f"[{caller.original_principal}] and clientAppId [{caller.role}] about {target}",
        )

    async def _check_there(self, action: Action, target: AccessTarget) -> None:
        if action in _TENANT_FIRST and target.tenant is not None:
            if await self._resources.tenants.get(target.tenant) is None:
                raise HttpError(HTTPStatus.NOT_FOUND, "Tenant does not exist")
        elif (
            action in _NAMESPACE_FIRST
            and target.namespace is not None
            and await self._resources.namespaces.get(target.namespace) is None
        ):
            raise HttpError(HTTPStatus.NOT_FOUND, "Namespace not found")


def target_of(request: Request) -> AccessTarget:
    """What a request's path is about.

    Raises:
        HttpError: 412 if it has an invalid name.
    """
    path = request.path
    if "topic" in path:
        return AccessTarget.of_topic(topic_of(request), path.get("subscription"))
    if "namespace" in path:
        return AccessTarget.of_namespace(namespace_of(request))
    if "tenant" in path:
        return AccessTarget(tenant=tenant_of(request))
    return AccessTarget()
