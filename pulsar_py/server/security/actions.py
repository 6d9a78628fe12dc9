"""The table of actions that clients ask for, and the right that each needs (pure).

Every command of the binary protocol and every REST route names its `Action`, or says why it needs
none. An action has a scope (the topic, namespace, tenant or cluster for which the right is looked
up) and a right. Names are those of Apache Pulsar's operations. Its policy operations are only
reading and writing policies here, because no single policy has a right of its own in Pulsar, except
those that super-users set.

A refusal over HTTP has one of two statuses, which Apache Pulsar chose without a rule.

Source: TopicOperation, NamespaceOperation, TenantOperation, PolicyOperation in Pulsar's common
policies; PulsarAuthorizationProvider for who may what.
"""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus
from typing import Final

__all__ = ["Action", "Need", "Right", "Scope", "checked_need"]


class Scope(Enum):
    """The kind of object for which a right is looked up."""

    CLUSTER = "cluster"
    TENANT = "tenant"
    NAMESPACE = "namespace"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"


class Right(Enum):
    """A right of a role; tenant admins have all but the last within their tenant."""

    PRODUCE = "produce"
    CONSUME = "consume"
    PRODUCE_OR_CONSUME = "produce or consume"
    FUNCTIONS = "functions"
    SOURCES = "sources"
    SINKS = "sinks"
    PACKAGES = "packages"
    TENANT_ADMIN = "tenant admin"
    SUPER_USER = "super-user"


class Action(Enum):
    """One kind of request. A value begins with a description, so that no two are equal."""

    # On messages of a topic.
    PRODUCE = "produce", Scope.TOPIC, Right.PRODUCE
    CONSUME = "consume", Scope.SUBSCRIPTION, Right.CONSUME
    LOOKUP = "lookup", Scope.TOPIC, Right.PRODUCE_OR_CONSUME
    PEEK_MESSAGES = "peek messages", Scope.TOPIC, Right.CONSUME
    PEEK_SUBSCRIPTION = "peek subscription", Scope.SUBSCRIPTION, Right.CONSUME
    # On a subscription.
    GET_SUBSCRIPTIONS = "get subscriptions", Scope.TOPIC, Right.CONSUME
    SUBSCRIBE = "subscribe", Scope.SUBSCRIPTION, Right.CONSUME
    UNSUBSCRIBE = "unsubscribe", Scope.SUBSCRIPTION, Right.CONSUME
    SKIP = "skip", Scope.SUBSCRIPTION, Right.CONSUME
    EXPIRE_MESSAGES = "expire messages", Scope.SUBSCRIPTION, Right.CONSUME
    RESET_CURSOR = "reset cursor", Scope.SUBSCRIPTION, Right.CONSUME
    # On a topic.
    GET_STATS = "get stats", Scope.TOPIC, Right.PRODUCE_OR_CONSUME
    GET_METADATA = "get metadata", Scope.TOPIC, Right.PRODUCE_OR_CONSUME
    GET_BUNDLE_RANGE = "get bundle range", Scope.TOPIC, Right.PRODUCE_OR_CONSUME
    UPDATE_METADATA = "update metadata", Scope.TOPIC, Right.TENANT_ADMIN
    UPDATE_PARTITIONS = "update partitions", Scope.TOPIC, Right.TENANT_ADMIN
    READ_PERMISSIONS = "read permissions", Scope.TOPIC, Right.TENANT_ADMIN
    WRITE_PERMISSIONS = "write permissions", Scope.TOPIC, Right.TENANT_ADMIN
    COMPACT = "compact", Scope.TOPIC, Right.TENANT_ADMIN
    TERMINATE = "terminate", Scope.TOPIC, Right.TENANT_ADMIN
    UNLOAD = "unload", Scope.TOPIC, Right.TENANT_ADMIN
    READ_TOPIC_POLICY = "read topic policy", Scope.TOPIC, Right.TENANT_ADMIN
    WRITE_TOPIC_POLICY = "write topic policy", Scope.TOPIC, Right.TENANT_ADMIN
    # On a namespace.
    CREATE_TOPIC = "create topic", Scope.NAMESPACE, Right.TENANT_ADMIN
    DELETE_TOPIC = "delete topic", Scope.NAMESPACE, Right.TENANT_ADMIN
    GET_TOPICS = "get topics", Scope.NAMESPACE, Right.PRODUCE_OR_CONSUME
    GET_BUNDLE = "get bundle", Scope.NAMESPACE, Right.PRODUCE_OR_CONSUME
    DELETE_BUNDLE = "delete bundle", Scope.NAMESPACE, Right.TENANT_ADMIN
    UNLOAD_NAMESPACE = "unload namespace", Scope.NAMESPACE, Right.SUPER_USER
    CLEAR_BACKLOG = "clear backlog", Scope.NAMESPACE, Right.CONSUME
    READ_POLICY = "read policy", Scope.NAMESPACE, Right.TENANT_ADMIN
    WRITE_POLICY = "write policy", Scope.NAMESPACE, Right.TENANT_ADMIN
    WRITE_POLICY_OF_BROKERS = "write policy of brokers", Scope.NAMESPACE, Right.SUPER_USER
    # On a tenant.
    LIST_NAMESPACES = "list namespaces", Scope.TENANT, Right.TENANT_ADMIN
    CREATE_NAMESPACE = "create namespace", Scope.TENANT, Right.TENANT_ADMIN
    DELETE_NAMESPACE = "delete namespace", Scope.TENANT, Right.TENANT_ADMIN
    GET_TENANT = "get tenant", Scope.TENANT, Right.TENANT_ADMIN
    UPDATE_TENANT = "update tenant", Scope.TENANT, Right.TENANT_ADMIN
    DELETE_TENANT = "delete tenant", Scope.TENANT, Right.TENANT_ADMIN
    # On the cluster.
    LIST_TENANTS = "list tenants", Scope.CLUSTER, Right.SUPER_USER
    CREATE_TENANT = "create tenant", Scope.CLUSTER, Right.SUPER_USER
    GRANT_ON_TOPICS = "grant on topics", Scope.CLUSTER, Right.SUPER_USER
    READ_CLUSTER = "read cluster", Scope.CLUSTER, Right.SUPER_USER
    WRITE_CLUSTER = "write cluster", Scope.CLUSTER, Right.SUPER_USER
    READ_BROKERS = "read brokers", Scope.CLUSTER, Right.SUPER_USER
    WRITE_BROKERS = "write brokers", Scope.CLUSTER, Right.SUPER_USER
    BACK_UP = "back up", Scope.CLUSTER, Right.SUPER_USER
    END_TRANSACTION_ON_TOPIC = "end transaction on topic", Scope.CLUSTER, Right.SUPER_USER

    def __init__(self, description: str, scope: Scope, right: Right) -> None:
        self.description = description
        self.scope = scope
        self.right = right

    @property
    def refusal_status(self) -> HTTPStatus:
        """The status of HTTP for a role that is known and has not the right."""
        if self in _REFUSED_BY_403 or (self.scope is Scope.NAMESPACE and self not in _BY_401):
            return HTTPStatus.FORBIDDEN
        return HTTPStatus.UNAUTHORIZED


_REFUSED_BY_403: Final = frozenset(
    {
        Action.UPDATE_PARTITIONS,
        Action.READ_TOPIC_POLICY,
        Action.WRITE_TOPIC_POLICY,
        Action.GET_BUNDLE_RANGE,
    }
)
_BY_401: Final = frozenset({Action.UNLOAD_NAMESPACE, Action.WRITE_POLICY_OF_BROKERS})

Need = Action | str
"""The action of a command or route, or a text with the reason why it needs none."""


def checked_need(need: Need, what: str) -> Need:
    """Return `need` if it is an action or a reason.

    Raises:
        ValueError: It is an empty reason.
    """
    if isinstance(need, Action) or need.strip():
        return need
    raise ValueError(f"{what}: neither an action nor a reason why it needs none")
