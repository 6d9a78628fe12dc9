"""REST resource of namespaces' policies; `namespace_policy_table` has them one by one.

Source: Namespaces and NamespacesBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    UnreadableBodyError,
    json_response,
    optional_json_response,
)
from pulsar_py.admin.policies import policy_values as values
from pulsar_py.admin.policies.namespace_policy_table import POLICIES, Policy
from pulsar_py.admin.policies.policy_places import changed
from pulsar_py.admin.policies.policy_routes import Handlers, Rights, policy_routes
from pulsar_py.admin.policies.storage_values import (
    QUOTA_TYPE,
    SIZE_QUOTA,
    check_retention,
    quota_type,
)
from pulsar_py.admin.resources.namespaces import NAMESPACE
from pulsar_py.admin.resources.requests import namespace_of
from pulsar_py.admin.resources.topic_access import NOT_THERE, require_namespace
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.metadata.json_document import Key
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

_QUOTAS: Final = NamespacePolicies.backlog_quotas


class NamespacePolicyResource:
    """Reads, sets and removes single policies of namespaces."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._namespaces = broker.resources.namespaces
        self._cluster = broker.config.clusterName

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        for policy in POLICIES:
            yield from policy_routes(
                f"{NAMESPACE}/{policy.word}",
                policy,
                Handlers(self._getter(policy), self._setter(policy), self._remover(policy)),
                Rights(Action.READ_POLICY, policy.write_needs, Action.WRITE_POLICY),
            )
        yield get(
            NAMESPACE + "/isAllowAutoUpdateSchema",
            self.auto_update_schema,
            Action.READ_POLICY,
            answer=bool,
        )
        yield post(
            NAMESPACE + "/isAllowAutoUpdateSchema",
            self.set_auto_update_schema,
            Action.WRITE_POLICY,
            *values.boolean.takes,
        )
        yield get(
            NAMESPACE + "/backlogQuotaMap",
            self.backlog_quotas,
            Action.READ_POLICY,
            answer=dict[str, values.BacklogQuota],
        )
        yield post(
            NAMESPACE + "/backlogQuota",
            self.set_backlog_quota,
            Action.WRITE_POLICY,
            *values.backlog_quota.takes,
            QUOTA_TYPE,
        )
        yield delete(
            NAMESPACE + "/backlogQuota", self.remove_backlog_quota, Action.WRITE_POLICY, QUOTA_TYPE
        )
        yield get(
            NAMESPACE + "/replication", self.replication, Action.READ_POLICY, answer=list[str]
        )

    def _getter(self, policy: Policy) -> Callable[[Request], Awaitable[Response]]:
        async def show(request: Request) -> Response:
            value = (await self._policies(request)).json.get(policy.key.json_name)
            if policy.is_per_cluster and value is not None:
                value = value.get(self._cluster)
            if value is None and isinstance(policy.unset_answer, Response):
                return policy.unset_answer
            return optional_json_response(policy.unset_answer if value is None else value)

        return show

    def _setter(self, policy: Policy) -> Callable[[Request], Awaitable[Response]]:
        async def store(request: Request) -> Response:
            value = policy.read(request)
            if policy.key is NamespacePolicies.auto_topic_creation and value is not None:
                self._check_partitions_limit(value)
            if policy.key is NamespacePolicies.entry_filter_names:
                values.check_installed(self._broker.hooks.filters, value)
            if policy.key is NamespacePolicies.retention:
                known = (await self._policies(request)).json.get(_QUOTAS.json_name) or {}
                quota = known.get(SIZE_QUOTA)
                check_retention(value, quota, changes="retention", of="namespace")
            await self._store_policy(request, policy, value)
            return NO_CONTENT

        return store

    async def _store_policy(
        self, request: Request, policy: Policy, value: Any
    ) -> None:  # Any: JSON
        """Store a value, or None, where the policy has it."""
        if not policy.is_per_cluster:
            await self._store(request, policy.key, value)
            return
        cluster = self._cluster
        await self._change(
            request, policy.key, lambda known: changed(known or {}, {cluster: value}) or None
        )

    def _check_partitions_limit(self, creation: dict[str, Any]) -> None:  # Any: JSON
        limit = self._broker.topics.settings.max_partitions
        if (creation["defaultNumPartitions"] or 0) > limit:
            raise HttpError(
                HTTPStatus.NOT_ACCEPTABLE,
                f"Number of partitions should be less than or equal to {limit}",
            )

    def _remover(self, policy: Policy) -> Callable[[Request], Awaitable[Response]]:
        async def remove(request: Request) -> Response:
            await self._store_policy(request, policy, None)
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
            request,
            NamespacePolicies.is_schema_auto_update_allowed,
            bool(values.boolean(request)),
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
        kind = quota_type(request)
        if kind == SIZE_QUOTA:
            known = (await self._policies(request)).json
            retention = known.get(NamespacePolicies.retention.json_name)
            check_retention(retention, quota, changes="quota", of="namespace")
        await self._change(request, _QUOTAS, lambda known: changed(known or {}, {kind: quota}))

    async def replication(self, request: Request) -> Response:
        """Return the clusters to which a namespace is replicated."""
        return json_response(list((await self._policies(request)).replication_clusters or ()))

    async def _policies(self, request: Request) -> NamespacePolicies:
        return await require_namespace(self._broker, namespace_of(request), NOT_THERE)

    async def _store(self, request: Request, key: Key[Any], value: Any) -> None:  # Any: JSON
        """Change one key of the namespace's policies; None removes it."""
        await self._change(request, key, lambda _: value)

    async def _change(
        self,
        request: Request,
        key: Key[Any],  # Any: the table has keys of many types
        change: Callable[[Any], Any],  # Any: JSON
    ) -> None:
        namespace = namespace_of(request)
        await self._policies(request)

        def change_policies(policies: NamespacePolicies) -> NamespacePolicies:
            value = change(policies.json.get(key.json_name))
            return NamespacePolicies(changed(policies.json, {key.json_name: value}))

        await self._namespaces.update(namespace, change_policies)
