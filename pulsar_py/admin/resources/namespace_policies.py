"""REST resource of namespaces' policies: a table with the path, the stored key and reader of each.

A key in `metadata.documents`, a line in `POLICIES` and, for a new kind of value, a reader in
`policy_values` let REST read and write a policy as JSON, and no more. To have an effect it also
needs a field of `server.policies.TopicSettings`, a line in `effective_settings`, and code that uses
the field. The broker learns of a change by watching the metadata store.

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
from pulsar_py.metadata.json_document import Key
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

DEFAULT_QUOTA_TYPE: Final = "destination_storage"

_QUOTAS: Final = NamespacePolicies.backlog_quotas


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy: its word in the path, its key in the stored document, the reader of a body.

    `unset_answer` is GET's answer while the policy is not set; None is an empty body.
    """

    word: str
    key: Key[Any]  # Any: the table has keys of many types
    read: values.Reader
    unset_answer: object = None
    set_method: str = "POST"
    can_be_deleted: bool = True
    write_needs: Action = Action.WRITE_POLICY


POLICIES: Final = (
    Policy("deduplication", NamespacePolicies.is_deduplication_enabled, values.boolean),
    Policy("autoTopicCreation", NamespacePolicies.auto_topic_creation, values.auto_topic_creation),
    Policy(
        "autoSubscriptionCreation",
        NamespacePolicies.is_auto_subscription_creation_allowed,
        values.auto_subscription_creation,
    ),
    Policy(
        "delayedDelivery",
        NamespacePolicies.delayed_delivery,
        values.delayed_delivery,
        write_needs=Action.WRITE_POLICY_OF_BROKERS,
    ),
    Policy(
        "encryptionRequired",
        NamespacePolicies.is_encryption_required,
        values.boolean,
        unset_answer=False,
        can_be_deleted=False,
    ),
    Policy(
        "schemaValidationEnforced",
        NamespacePolicies.is_schema_validation_enforced,
        values.boolean,
        unset_answer=False,
        can_be_deleted=False,
    ),
    Policy(
        "schemaCompatibilityStrategy",
        NamespacePolicies.schema_compatibility_strategy,
        values.schema_compatibility,
        unset_answer="UNDEFINED",
        set_method="PUT",
        can_be_deleted=False,
    ),
    Policy("maxProducersPerTopic", NamespacePolicies.max_producers_per_topic, values.not_negative),
    Policy("maxConsumersPerTopic", NamespacePolicies.max_consumers_per_topic, values.not_negative),
    Policy(
        "maxConsumersPerSubscription",
        NamespacePolicies.max_consumers_per_subscription,
        values.not_negative,
    ),
    Policy(
        "maxSubscriptionsPerTopic",
        NamespacePolicies.max_subscriptions_per_topic,
        values.not_negative,
    ),
    Policy(
        "maxUnackedMessagesPerConsumer",
        NamespacePolicies.max_unacked_messages_per_consumer,
        values.not_negative,
    ),
    Policy(
        "maxUnackedMessagesPerSubscription",
        NamespacePolicies.max_unacked_messages_per_subscription,
        values.not_negative,
    ),
    Policy("messageTTL", NamespacePolicies.message_ttl_seconds, values.not_negative),
    Policy(
        "subscriptionTypesEnabled",
        NamespacePolicies.subscription_types,
        values.subscription_types,
        unset_answer=[],
    ),
)


class NamespacePolicyResource:
    """Reads, sets and removes single policies of namespaces."""

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
            value = (await self._policies(request)).json.get(policy.key.json_name)
            return optional_json_response(policy.unset_answer if value is None else value)

        return show

    def _setter(self, policy: Policy) -> Callable[[Request], Awaitable[Response]]:
        async def store(request: Request) -> Response:
            value = policy.read(request)
            if policy.key is NamespacePolicies.auto_topic_creation and value is not None:
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
        """Return whether producers may register new schemas; by default the broker's setting."""
        value = (await self._policies(request)).is_schema_auto_update_allowed
        default = self._broker.config.isAllowAutoUpdateSchemaEnabled
        return json_response(default if value is None else value)

    async def set_auto_update_schema(self, request: Request) -> Response:
        """Set whether producers may register new schemas."""
        await self._store(
            request, NamespacePolicies.is_schema_auto_update_allowed, values.boolean(request)
        )
        return NO_CONTENT

    async def backlog_quotas(self, request: Request) -> Response:
        """Return all quotas by type."""
        return json_response((await self._policies(request)).json.get(_QUOTAS.json_name) or {})

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
        quotas = dict((await self._policies(request)).json.get(_QUOTAS.json_name) or {})
        quotas.pop(kind, None)
        if quota is not None:
            quotas[kind] = quota
        await self._store(request, _QUOTAS, quotas)

    async def replication(self, request: Request) -> Response:
        """Return the clusters to which a namespace is replicated."""
        return json_response(list((await self._policies(request)).replication_clusters or ()))

    async def _policies(self, request: Request) -> NamespacePolicies:
        namespace = namespace_of(request)
        policies = await self._namespaces.get(namespace)
        if policies is None:
            raise _not_there(namespace)
        return policies

    async def _store(self, request: Request, key: Key[Any], value: Any) -> None:  # Any: JSON
        """Change one key of the namespace's policies; None removes it."""
        namespace = namespace_of(request)
        await self._policies(request)

        def change(policies: NamespacePolicies) -> NamespacePolicies:
            document = {name: each for name, each in policies.json.items() if name != key.json_name}
            if value is not None:
                document[key.json_name] = value
            return NamespacePolicies(document)

        await self._namespaces.update(namespace, change)


def _not_there(namespace: NamespaceName) -> HttpError:
    del namespace
    return HttpError(HTTPStatus.NOT_FOUND, "Namespace does not exist")
