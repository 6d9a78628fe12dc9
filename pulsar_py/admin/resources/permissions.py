"""REST resource of permissions: roles' actions on namespaces, topics and subscriptions.

They are kept in the namespace's policies, whether or not anybody checks them. A topic's are kept
for each of its partitions, too, as Apache Pulsar does.

Source: Namespaces.grantPermissionOnNamespace, PersistentTopics.grantPermissionsOnTopic in Pulsar.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct, field

from pulsar_py.admin.declared import Body
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.resources.requests import namespace_of, topic_of
from pulsar_py.admin.resources.topic_access import NOT_THERE, require_namespace, topic_not_found
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

NAMESPACES: Final = "/admin/v2/namespaces"
NAMESPACE: Final = NAMESPACES + "/{tenant}/{namespace}"
TOPIC: Final = "/admin/v2/{domain:persistent|non-persistent}/{tenant}/{namespace}/{topic}"

Verb: TypeAlias = Literal["produce", "consume", "functions", "sources", "sinks", "packages"]
Mode: TypeAlias = Literal["None", "Prefix"]
ACTIONS: Final[tuple[Verb, ...]] = get_args(Verb)


class TopicGrant(Struct, frozen=True):
    """What a role may do on a topic."""

    topic: str = ""
    role: str = ""
    actions: list[Verb] = field(default_factory=list)


_ACTIONS: Final = Body(list[Verb], "actions")
_ROLES: Final = Body(list[str], "roles")
_GRANTS: Final = Body(list[TopicGrant], "permissions")
_MODE: Final = Body(str, "mode")

_NAMESPACE_AUTH: Final = "namespace_auth"
_TOPIC_AUTH: Final = "destination_auth"
_SUBSCRIPTION_AUTH: Final = "subscription_auth_roles"

Grants = dict[str, Any]  # Any: JSON, the document `auth_policies`


class Permissions:
    """Reads, grants and revokes permissions."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._namespaces = broker.resources.namespaces

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        permissions = NAMESPACE + "/permissions"
        of_topic = TOPIC + "/permissions"
        mode = NAMESPACE + "/subscriptionAuthMode"
        return (
            get(permissions, self.of_namespace, Action.READ_POLICY, answer=dict[str, list[str]]),
            post(permissions + "/{role}", self.grant, Action.WRITE_POLICY, _ACTIONS),
            delete(permissions + "/{role}", self.revoke, Action.WRITE_POLICY),
            get(
                permissions + "/subscription",
                self.of_subscriptions,
                Action.READ_POLICY,
                answer=dict[str, list[str]],
            ),
            post(
                permissions + "/subscription/{name}",
                self.grant_subscription,
                Action.WRITE_POLICY,
                _ROLES,
            ),
            delete(permissions + "/{name}/{role}", self.revoke_subscription, Action.WRITE_POLICY),
            get(of_topic, self.of_topic, Action.READ_PERMISSIONS, answer=dict[str, list[str]]),
            post(of_topic + "/{role}", self.grant_topic, Action.WRITE_PERMISSIONS, _ACTIONS),
            delete(of_topic + "/{role}", self.revoke_topic, Action.WRITE_PERMISSIONS),
            post(
                NAMESPACES + "/grantPermissionsOnTopics",
                self.grant_topics,
                Action.GRANT_ON_TOPICS,
                _GRANTS,
            ),
            post(
                NAMESPACES + "/revokePermissionsOnTopics",
                self.revoke_topics,
                Action.GRANT_ON_TOPICS,
                _GRANTS,
            ),
            get(mode, self.subscription_mode, Action.READ_POLICY, answer=Mode),
            post(mode, self.set_subscription_mode, Action.WRITE_POLICY, _MODE),
        )

    async def of_namespace(self, request: Request) -> Response:
        """Return actions by role."""
        return json_response((await self._grants(namespace_of(request))).get(_NAMESPACE_AUTH) or {})

    async def grant(self, request: Request) -> Response:
        """Set the actions of a role in a namespace."""
        role, actions = request.path["role"], _actions_of(request)

        def change(grants: Grants) -> None:
            grants.setdefault(_NAMESPACE_AUTH, {})[role] = actions

        return await self._change(namespace_of(request), change)

    async def revoke(self, request: Request) -> Response:
        """Take all actions of a role in a namespace."""
        role = request.path["role"]
        return await self._change(
            namespace_of(request), lambda grants: grants.get(_NAMESPACE_AUTH, {}).pop(role, None)
        )

    async def of_subscriptions(self, request: Request) -> Response:
        """Return roles by subscription."""
        grants = await self._grants(namespace_of(request))
        return json_response(grants.get(_SUBSCRIPTION_AUTH) or {})

    async def grant_subscription(self, request: Request) -> Response:
        """Add roles to those that may use a subscription; before, every consumer may."""
        name = request.path["name"]
        roles = _ROLES.of(request)
        if roles is None:
            raise HttpError(HTTPStatus.BAD_REQUEST, "Roles should not be null")

        def change(grants: Grants) -> None:
            listed = grants.setdefault(_SUBSCRIPTION_AUTH, {})
            listed[name] = sorted({*listed.get(name, ()), *roles})

        return await self._change(namespace_of(request), change)

    async def revoke_subscription(self, request: Request) -> Response:
        """Take a role from those that may use a subscription."""
        name, role = request.path["name"], request.path["role"]

        def change(grants: Grants) -> None:
            listed = grants.get(_SUBSCRIPTION_AUTH, {})
            left = [each for each in listed.get(name, ()) if each != role]
            if left:
                listed[name] = left
            else:
                listed.pop(name, None)

        return await self._change(namespace_of(request), change)

    async def of_topic(self, request: Request) -> Response:
        """Return actions by role: the namespace's and the topic's own together."""
        name = topic_of(request)
        grants = await self._grants(name.namespace_name)
        await self._require_there(name)
        found = {role: set(each) for role, each in (grants.get(_NAMESPACE_AUTH) or {}).items()}
        for role, each in ((grants.get(_TOPIC_AUTH) or {}).get(str(name)) or {}).items():
            found.setdefault(role, set()).update(each)
        return json_response({role: sorted(each) for role, each in found.items()})

    async def grant_topic(self, request: Request) -> Response:
        """Set the actions of a role on a topic and its partitions."""
        name = topic_of(request)
        await self._require_there(name)
        role, actions = request.path["role"], _actions_of(request)
        names = await self._with_partitions(name)

        return await self._change(
            name.namespace_name, partial(_grant, names=names, role=role, actions=actions)
        )

    async def revoke_topic(self, request: Request) -> Response:
        """Take all actions of a role on a topic and its partitions."""
        name, role = topic_of(request), request.path["role"]
        await self._require_there(name)
        names = await self._with_partitions(name)

        return await self._change(name.namespace_name, partial(_revoke, names=names, role=role))

    async def grant_topics(self, request: Request) -> Response:
        """Set the actions of roles on some topics and their partitions.

        All namespaces are looked up before anything is changed.
        """
        for name, role, actions in await self._grants_of(request):
            names = await self._with_partitions(name)
            change = partial(_grant, names=names, role=role, actions=actions)
            await self._change(name.namespace_name, change)
        return NO_CONTENT

    async def revoke_topics(self, request: Request) -> Response:
        """Take all actions of roles on some topics and their partitions."""
        for name, role, _ in await self._grants_of(request):
            names = await self._with_partitions(name)
            await self._change(name.namespace_name, partial(_revoke, names=names, role=role))
        return NO_CONTENT

    async def _grants_of(self, request: Request) -> list[tuple[TopicName, str, list[str]]]:
        """The body as GrantTopicPermissionOptions: topic, role and actions of each."""
        value = _GRANTS.required(request, "a list of topics with role and actions is required")
        if not value:
            raise HttpError(HTTPStatus.BAD_REQUEST, "at least one topic is required")
        found = []
        for grant in filter(None, value):
            role = grant.role
            try:
                name = TopicName.parse(grant.topic)
            except InvalidTopicNameError as error:
                raise HttpError(HTTPStatus.PRECONDITION_FAILED, str(error)) from None
            if not role:
                raise HttpError(HTTPStatus.BAD_REQUEST, f"{name}: a role is required")
            await require_namespace(self._broker, name.namespace_name, NOT_THERE)
            found.append((name, role, _sorted(grant.actions)))
        return found

    async def subscription_mode(self, request: Request) -> Response:
        """Return whether names of subscriptions have to begin with the role: `Prefix`."""
        policies = await require_namespace(self._broker, namespace_of(request), NOT_THERE)
        return json_response(policies.subscription_auth_mode or "None")

    async def set_subscription_mode(self, request: Request) -> Response:
        """Set whether names of subscriptions have to begin with the role."""
        mode = _MODE.of(request)
        if mode not in get_args(Mode):
            mode = "None"  # as for each unknown word
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace, NOT_THERE)
        await self._namespaces.update(
            namespace, lambda policies: policies.replace(subscription_auth_mode=mode)
        )
        return NO_CONTENT

    async def _require_there(self, name: TopicName) -> None:
        await require_namespace(self._broker, name.namespace_name, NOT_THERE)
        if self._broker.config.allowAclChangesOnNonExistentTopics:
            return
        topics = self._broker.topics
        if not (await topics.exists(name) or await topics.partitioned.count(name)):
            raise topic_not_found(name)

    async def _with_partitions(self, name: TopicName) -> list[TopicName]:
        count = await self._broker.topics.partitioned.count(name)
        return [name, *map(name.partition, range(count))]

    async def _grants(self, namespace: NamespaceName) -> Grants:
        policies = await require_namespace(self._broker, namespace, NOT_THERE)
        return dict(policies.auth_policies or {})

    async def _change(
        self, namespace: NamespaceName, change: Callable[[Grants], object]
    ) -> Response:
        """Change a namespace's grants; `change` may run again if another writer was faster."""
        await require_namespace(self._broker, namespace, NOT_THERE)

        def changed(policies: NamespacePolicies) -> NamespacePolicies:
            grants = _without_nulls(policies.auth_policies or {})
            change(grants)
            return policies.replace(auth_policies=grants)

        await self._namespaces.update(namespace, changed)
        return NO_CONTENT


def _without_nulls(grants: Mapping[str, Any]) -> Grants:
    """A copy without the nulls that a document may have, as those that Go's client makes do."""
    return {
        kind: {name: copy.copy(each) for name, each in found.items() if each is not None}
        for kind, found in grants.items()
        if found is not None
    }


def _grant(grants: Grants, *, names: list[TopicName], role: str, actions: list[str]) -> None:
    topics = grants.setdefault(_TOPIC_AUTH, {})
    for each in names:
        topics.setdefault(str(each), {})[role] = actions


def _revoke(grants: Grants, *, names: list[TopicName], role: str) -> None:
    topics = grants.get(_TOPIC_AUTH, {})
    for each in map(str, names):
        topics.get(each, {}).pop(role, None)
        if not topics.get(each, True):
            del topics[each]


def _actions_of(request: Request) -> list[str]:
    """The actions in the body.

    Raises:
        HttpError: 400, there are none.
        UnreadableBodyError: They are no list, or one is unknown.
    """
    actions = _ACTIONS.of(request)
    if actions is None:
        raise HttpError(HTTPStatus.BAD_REQUEST, "Actions should not be null")
    return _sorted(actions)


def _sorted(actions: list[Verb]) -> list[str]:
    """Each action once, in the order of their definition; without those that are null."""
    return sorted(set(filter(None, actions)), key=ACTIONS.index)
