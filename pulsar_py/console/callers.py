"""Tells a page its user's role and rights, so that it shows only what is allowed.

    GET /admin/console/me        who is signed in, the broker's version and cluster
    GET /admin/console/rights    the actions that the caller has on a `topic` (its full name) and
                                 `subscription`, on a `namespace` (`tenant/name`), on a `tenant`,
                                 or on the cluster

The rights are for showing alone: each call is checked by its route, whatever a page shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.declared import Text
from pulsar_py.admin.http_messages import HttpError, Request, Response, json_response
from pulsar_py.admin.resources.brokers import VERSION
from pulsar_py.admin.router import Route, get
from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.console.answers import CallerAnswer, RightsAnswer
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action, Scope
from pulsar_py.server.security.authentication import PRINCIPAL_HEADER
from pulsar_py.server.security.authorization import AccessTarget, Caller

__all__ = ["BASE", "Callers"]

BASE: Final = "/admin/console"
OWN: Final = "open to every caller: it tells the caller's own rights"

_TOPIC: Final = Text("topic")
_SUBSCRIPTION: Final = Text("subscription")
_NAMESPACE: Final = Text("namespace")
_TENANT: Final = Text("tenant")
_PLACES: Final = (_TOPIC, _SUBSCRIPTION, _NAMESPACE, _TENANT)
_WITHIN: Final = {
    Scope.CLUSTER: (),
    Scope.TENANT: ("tenant",),
    Scope.NAMESPACE: ("tenant", "namespace"),
    Scope.TOPIC: ("tenant", "namespace", "topic"),
    Scope.SUBSCRIPTION: ("tenant", "namespace", "topic"),
}
"""What has to be known of a target for an action's right to be looked up."""


class Callers:
    """Tells callers their rights."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(BASE + "/me", self.me, OWN, answer=CallerAnswer),
            get(BASE + "/rights", self.rights, OWN, *_PLACES, answer=RightsAnswer),
        )

    async def me(self, request: Request) -> Response:
        """Return who the caller is, and where."""
        caller = self.caller_of(request)
        broker = self._broker
        return json_response(
            {
                "role": caller.original_principal or caller.role,
                "authentication": broker.authenticators.is_enabled,
                "authorization": broker.authorization.is_enabled,
                "cluster": broker.config.clusterName,
                "version": VERSION,
                "actions": await self._allowed(caller, AccessTarget()),
            }
        )

    async def rights(self, request: Request) -> Response:
        """Return the names of the actions that the caller may do there."""
        target = _target(request)
        return json_response({"actions": await self._allowed(self.caller_of(request), target)})

    def caller_of(self, request: Request) -> Caller:
        """The caller of a request.

        Raises:
            HttpError: 401, he acts for whom he may not.
        """
        caller = Caller(request.role, request.headers.get(PRINCIPAL_HEADER))
        authorization = self._broker.authorization
        if authorization.is_enabled and not authorization.is_valid(caller, may_name_itself=True):
            raise HttpError(HTTPStatus.UNAUTHORIZED, "Invalid roles.")
        if caller.original_principal == caller.role:
            return Caller(caller.role)
        return caller

    async def may(self, caller: Caller, action: Action, target: AccessTarget) -> bool:
        """Whether a caller may do something."""
        authorization = self._broker.authorization
        return not authorization.is_enabled or await authorization.allows(caller, action, target)

    async def sees(self, caller: Caller, namespace: NamespaceName) -> bool:
        """Whether a caller has any right in a namespace, on one of its topics alone included."""
        target = AccessTarget.of_namespace(namespace)
        if await self.may(caller, Action.GET_TOPICS, target):
            return True
        policies = await self._broker.resources.namespaces.get(namespace)
        grants = (policies.auth_policies or {}) if policies is not None else {}
        named = set((grants.get("destination_auth") or {}).keys())
        for name in sorted(named):
            try:
                topic = TopicName.parse(name)
            except InvalidTopicNameError:
                continue
            if await self.may(caller, Action.LOOKUP, AccessTarget.of_topic(topic)):
                return True
        return False

    async def _allowed(self, caller: Caller, target: AccessTarget) -> list[str]:
        known = {
            name for name in ("tenant", "namespace", "topic") if getattr(target, name) is not None
        }
        return [
            action.name
            for action in Action
            if known.issuperset(_WITHIN[action.scope]) and await self.may(caller, action, target)
        ]


def _target(request: Request) -> AccessTarget:
    try:
        if topic := _TOPIC.of(request):
            return AccessTarget.of_topic(TopicName.parse(topic), _SUBSCRIPTION.of(request))
        if namespace := _NAMESPACE.of(request):
            tenant, _, name = namespace.partition("/")
            return AccessTarget.of_namespace(NamespaceName(tenant, name))
    except InvalidTopicNameError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None
    return AccessTarget(tenant=_TENANT.of(request) or None)
