"""Policies of namespaces: a table with the path, the reader and the stored field of each.

A line in `POLICIES` and, where the value is of a new kind, a reader in `policy_values` let REST
read and write a policy, and no more: it is stored as JSON. To have an effect it needs a key in
`metadata.documents`, a field of `TopicSettings`, a line in `effective_settings`, and somebody who
obeys. The broker learns of a change by watching the metadata store.

Source: Namespaces and NamespacesBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    PathValueError,
    Request,
    Response,
    UnreadableBodyError,
    json_response,
    optional_json_response,
)
from pulsar_py.admin.resources import policy_values as values
from pulsar_py.admin.resources.namespaces import NAMESPACE
from pulsar_py.admin.resources.requests import namespace_of
from pulsar_py.admin.router import Route, delete, get, post, put
from pulsar_py.common.names import NamespaceName
from pulsar_py.common.policies import BacklogQuotaType
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

DEFAULT_QUOTA_TYPE: Final = "destination_storage"
AUTO_TOPIC_CREATION: Final = "autoTopicCreationOverride"


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy: its word in the path, its key in Policies, how a body is read.

    `unset_answer` is what GET gives while it is not set; None is an empty body.
    """

    word: str
    key: str
    read: values.Reader
    unset_answer: object = None
    set_method: str = "POST"
    can_be_deleted: bool = True
    write_needs: Action = Action.WRITE_POLICY


POLICIES: Final = (
    Policy("deduplication", "deduplicationEnabled", values.boolean),
    Policy("autoTopicCreation", AUTO_TOPIC_CREATION, values.auto_topic_creation),
    Policy(
        "autoSubscriptionCreation",
        "autoSubscriptionCreationOverride",
        values.auto_subscription_creation,
    ),
    Policy(
        "delayedDelivery",
        "delayed_delivery_policies",
        values.delayed_delivery,
        write_needs=Action.WRITE_POLICY_OF_BROKERS,
    ),
    Policy(
        "encryptionRequired",
        "encryption_required",
        values.boolean,
        unset_answer=False,
        can_be_deleted=False,
    ),
    Policy(
        "schemaValidationEnforced",
        "schema_validation_enforced",
        values.boolean,
        unset_answer=False,
        can_be_deleted=False,
    ),
    Policy(
        "schemaCompatibilityStrategy",
        "schema_compatibility_strategy",
        values.schema_compatibility,
        unset_answer="UNDEFINED",
        set_method="PUT",
        can_be_deleted=False,
    ),
    Policy("maxProducersPerTopic", "max_producers_per_topic", values.not_negative),
    Policy("maxConsumersPerTopic", "max_consumers_per_topic", values.not_negative),
    Policy("maxConsumersPerSubscription", "max_consumers_per_subscription", values.not_negative),
    Policy("maxSubscriptionsPerTopic", "max_subscriptions_per_topic", values.not_negative),
    Policy(
        "maxUnackedMessagesPerConsumer",
        "max_unacked_messages_per_consumer",
        values.not_negative,
    ),
    Policy(
        "maxUnackedMessagesPerSubscription",
        "max_unacked_messages_per_subscription",
        values.not_negative,
    ),
    Policy("messageTTL", "message_ttl_in_seconds", values.not_negative),
    Policy(
        "subscriptionTypesEnabled",
        "subscription_types_enabled",
        values.subscription_types,
        unset_answer=[],
    ),
)


class NamespaceSettings:
    """The policies of namespaces, one by one."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._namespaces = broker.resources.namespaces

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        for policy in POLICIES:
            template = f"{NAMESPACE}/{policy.word}"
            verb = put if policy.set_method == "PUT" else post
            yield get(template, self._getter(policy), Action.READ_POLICY)
            yield verb(template, self._setter(policy), policy.write_needs)
            if policy.can_be_deleted:
                yield delete(template, self._remover(policy), Action.WRITE_POLICY)
        yield get(
            NAMESPACE + "/isAllowAutoUpdateSchema", self.auto_update_schema, Action.READ_POLICY
        )
        yield post(
            NAMESPACE + "/isAllowAutoUpdateSchema", self.set_auto_update_schema, Action.WRITE_POLICY
        )
        yield get(NAMESPACE + "/backlogQuotaMap", self.backlog_quotas, Action.READ_POLICY)
        yield post(NAMESPACE + "/backlogQuota", self.set_backlog_quota, Action.WRITE_POLICY)
        yield delete(NAMESPACE + "/backlogQuota", self.remove_backlog_quota, Action.WRITE_POLICY)
        yield get(NAMESPACE + "/replication", self.replication, Action.READ_POLICY)

    def _getter(self, policy: Policy) -> Callable[[Request], Awaitable[Response]]:
        async def show(request: Request) -> Response:
            value = (await self._policies(request)).json.get(policy.key)
            return optional_json_response(policy.unset_answer if value is None else value)

        return show

    def _setter(self, policy: Policy) -> Callable[[Request], Awaitable[Response]]:
        async def store(request: Request) -> Response:
            value = policy.read(request)
            if policy.key == AUTO_TOPIC_CREATION and value is not None:
                self._check_partitions_limit(value)
            await self._store(request, policy.key, value)
            return NO_CONTENT

        return store

    def _check_partitions_limit(self, creation: dict[str, Any]) -> None:  # Any: JSON
        limit = self._broker.topics.settings.max_partitions
        if (creation["defaultNumPartitions"] or 0) > limit:
            raise HttpError(
                HTTPStatus.NOT_ACCEPTABLE,
                f"Number of partitions should be less than or equal to {limit}",
            )

    def _remover(self, policy: Policy) -> Callable[[Request], Awaitable[Response]]:
        async def remove(request: Request) -> Response:
            await self._store(request, policy.key, None)
            return NO_CONTENT

        return remove

    async def auto_update_schema(self, request: Request) -> Response:
        """Whether producers may register new schemas; the broker's default where not set."""
        value = (await self._policies(request)).is_schema_auto_update_allowed
        default = self._broker.config.isAllowAutoUpdateSchemaEnabled
        return json_response(default if value is None else value)

    async def set_auto_update_schema(self, request: Request) -> Response:
        """Allow or forbid it."""
        await self._store(request, "is_allow_auto_update_schema", values.boolean(request))
        return NO_CONTENT

    async def backlog_quotas(self, request: Request) -> Response:
        """All quotas by type."""
        return json_response((await self._policies(request)).json.get("backlog_quota_map") or {})

    async def set_backlog_quota(self, request: Request) -> Response:
        """Set the quota of one type."""
        quota = values.backlog_quota(request)
        if quota is None:
            raise UnreadableBodyError("a backlog quota is required")
        await self._store_quota(request, quota)
        return NO_CONTENT

    async def remove_backlog_quota(self, request: Request) -> Response:
        """Remove the quota of one type."""
        await self._store_quota(request, None)
        return NO_CONTENT

    async def _store_quota(self, request: Request, quota: Any) -> None:  # Any: JSON
        kind = request.query.get("backlogQuotaType", DEFAULT_QUOTA_TYPE)
        if kind not in {member.value for member in BacklogQuotaType}:
            raise PathValueError
        quotas = dict((await self._policies(request)).json.get("backlog_quota_map") or {})
        quotas.pop(kind, None)
        if quota is not None:
            quotas[kind] = quota
        await self._store(request, "backlog_quota_map", quotas)

    async def replication(self, request: Request) -> Response:
        """The clusters a namespace is replicated to."""
        return json_response(list((await self._policies(request)).replication_clusters or ()))

    async def _policies(self, request: Request) -> NamespacePolicies:
        namespace = namespace_of(request)
        policies = await self._namespaces.get(namespace)
        if policies is None:
            raise _not_there(namespace)
        return policies

    async def _store(self, request: Request, key: str, value: Any) -> None:  # Any: JSON
        """Change one key of the namespace's Policies; None removes it."""
        namespace = namespace_of(request)
        await self._policies(request)

        def change(policies: NamespacePolicies) -> NamespacePolicies:
            document = {name: each for name, each in policies.json.items() if name != key}
            if value is not None:
                document[key] = value
            return NamespacePolicies(document)

        await self._namespaces.update(namespace, change)


def _not_there(namespace: NamespaceName) -> HttpError:
    del namespace
    return HttpError(HTTPStatus.NOT_FOUND, "Namespace does not exist")
