"""Authorization: whether a role may do what it asks for, by Apache Pulsar's rules.

    super-user                      everything
    tenant admin                    all within the tenant, but what is a super-user's
    role with an action             on a namespace's topics, or on one topic
    subscription                    the role stands in its list, if it has one, and may consume;
                                    its name begins with the role where a namespace wants that
    __change_events                 may be written to by a tenant's admin alone: its messages are
                                    policies of topics, which nobody else may set
    __compaction                    is a tenant admin's subscription: without it a topic loses what
                                    its compaction kept

A proxy acts for a role that it names: both need the right, whatever the other has. `decide` is
pure; `PulsarAuthorization` reads what it decides from. While authorization is off, `Unrestricted`
stands in its place, and nobody is asked.

Source: PulsarAuthorizationProvider, AuthorizationService in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from pulsar_py.common.names import (
    CHANGE_EVENTS,
    COMPACTION_SUBSCRIPTION,
    NamespaceName,
    TopicName,
)
from pulsar_py.metadata.documents import NamespacePolicies, TenantInfo
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.security.actions import Action, Right, Scope

__all__ = [
    "AccessTarget",
    "Authorization",
    "AuthorizationSettings",
    "Caller",
    "ChangingAuthorization",
    "PulsarAuthorization",
    "Unrestricted",
]

_PREFIX_MODE: Final = "Prefix"
_EITHER: Final = frozenset({Right.PRODUCE.value, Right.CONSUME.value})


class Caller(Struct, frozen=True):
    """Who asks: a role, None if it proved none, and the one that it says it acts for."""

    role: str | None
    original_principal: str | None = None


class AccessTarget(Struct, frozen=True, kw_only=True):
    """What is asked for: as much of it as the action's scope needs."""

    tenant: str | None = None
    namespace: NamespaceName | None = None
    topic: TopicName | None = None
    subscription: str | None = None

    @classmethod
    def of_topic(cls, topic: TopicName, subscription: str | None = None) -> AccessTarget:
        """The target for a topic, or for a subscription on it."""
        namespace = topic.namespace_name
        return cls(
            tenant=namespace.tenant, namespace=namespace, topic=topic, subscription=subscription
        )

    @classmethod
    def of_namespace(cls, namespace: NamespaceName) -> AccessTarget:
        """The target for a namespace."""
        return cls(tenant=namespace.tenant, namespace=namespace)

    def __str__(self) -> str:
        place = str(self.topic or self.namespace or self.tenant or "the cluster")
        return f"{place} subscription {self.subscription}" if self.subscription else place


class Authorization(Protocol):
    """The rules of authorization; one for a broker."""

    @property
    def is_enabled(self) -> bool:
        """Whether anybody is refused anything."""

    def is_valid(self, caller: Caller, *, may_name_itself: bool) -> bool:
        """Whether the caller may act for whom it names; a proxy has to name somebody."""

    async def allows(self, caller: Caller, action: Action, target: AccessTarget) -> bool:
        """Whether the caller may do it. Errors of the metadata store are raised."""


@runtime_checkable
class ChangingAuthorization(Authorization, Protocol):
    """Rules that change by something else than policies, tenants and settings, and tell of it."""

    def when_rights_change(self, check: Callable[[], None]) -> None:
        """Called once, with what is to be called on the loop after each change.

        Producers and consumers that have no right any more are closed then.
        """


class Unrestricted:
    """Authorization that is off: everybody may do everything."""

    is_enabled = False

    def is_valid(self, caller: Caller, *, may_name_itself: bool) -> bool:
        """True: authorization is off, so any caller may name any other."""
        del caller, may_name_itself
        return True

    async def allows(self, caller: Caller, action: Action, target: AccessTarget) -> bool:
        """True: authorization is off, so every caller may do everything."""
        del caller, action, target
        return True


class AuthorizationSettings(Struct, frozen=True, kw_only=True):
    """The settings of broker.conf for authorization."""

    super_user_roles: Collection[str] = ()
    proxy_roles: Collection[str] = ()
    has_wildcards: bool = False


class PulsarAuthorization:
    """Apache Pulsar's rules; owned by the broker. Settings are read at each question."""

    is_enabled = True

    def __init__(self, resources: Resources, settings: Callable[[], AuthorizationSettings]) -> None:
        self._resources = resources
        self._settings = settings

    def is_valid(self, caller: Caller, *, may_name_itself: bool) -> bool:
        """Whether the caller may act for whom it names; a proxy has to name somebody.

        Over HTTP a role that is no proxy may name itself, on the binary protocol nobody at all.
        """
        proxies = self._settings().proxy_roles
        original = caller.original_principal
        if caller.role in proxies:
            return bool(original) and original not in proxies
        return not original or (may_name_itself and original == caller.role)

    async def allows(self, caller: Caller, action: Action, target: AccessTarget) -> bool:
        """Whether the caller, and whom it acts for, may do it."""
        if caller.role is None:
            return False
        settings = self._settings()
        roles = {caller.role, caller.original_principal or caller.role}
        supers = settings.super_user_roles
        rest = set() if "*" in supers else roles - set(supers)
        if not rest:
            return True
        if action.right is Right.SUPER_USER or target.tenant is None:
            return False
        tenant = await self._resources.tenants.get(target.tenant)
        policies = None
        if target.namespace is not None:
            policies = await self._resources.namespaces.get(target.namespace)
        return all(
            decide(role, action, target, tenant, policies, has_wildcards=settings.has_wildcards)
            for role in rest
        )


def decide(
    role: str,
    action: Action,
    target: AccessTarget,
    tenant: TenantInfo | None,
    policies: NamespacePolicies | None,
    *,
    has_wildcards: bool = False,
) -> bool:
    """Whether one role that is no super-user has an action's right."""
    if tenant is None:
        return False
    if role in (tenant.admin_roles or ()):
        return True
    if action.right is Right.TENANT_ADMIN or policies is None or _is_for_admins(action, target):
        return False
    grants: Mapping[str, Any] = policies.auth_policies or {}  # Any: JSON
    if action.scope is Scope.SUBSCRIPTION and target.subscription is not None:
        if policies.subscription_auth_mode == _PREFIX_MODE and not target.subscription.startswith(
            role
        ):
            return False
        listed = (grants.get("subscription_auth_roles") or {}).get(target.subscription)
        if listed and role not in listed:
            return False
    wanted = _EITHER if action.right is Right.PRODUCE_OR_CONSUME else {action.right.value}
    places = [grants.get("namespace_auth")]
    if target.topic is not None and action.scope is not Scope.NAMESPACE:
        places += [
            (grants.get("destination_auth") or {}).get(str(name))
            for name in (target.topic, target.topic.base)
        ]
    return any(
        wanted & set(actions or ())
        for place in places
        for granted, actions in (place or {}).items()
        if _is_meant(granted, role, has_wildcards=has_wildcards)
    )


def _is_for_admins(action: Action, target: AccessTarget) -> bool:
    """Whether no grant gives it: writing policies as messages, using what a compaction kept."""
    if action.scope is Scope.SUBSCRIPTION:
        return target.subscription == COMPACTION_SUBSCRIPTION
    topic = target.topic
    return (
        action.right is Right.PRODUCE
        and topic is not None
        and topic.base.local_name == CHANGE_EVENTS
    )


def _is_meant(granted: str, role: str, *, has_wildcards: bool) -> bool:
    """Whether a grant to `granted` is one to `role`."""
    if granted == role:
        return True
    if not has_wildcards:
        return False
    if granted.endswith("*"):
        return role.startswith(granted[:-1])
    return granted.startswith("*") and role.endswith(granted[1:])
