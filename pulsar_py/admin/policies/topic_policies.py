"""REST resource of topics' policies; `topic_policy_table` has them one by one.

Policies are for this cluster, or with `isGlobal=true` for all; where both are set, this cluster's
count. GET with `applied=true` answers what the topic is served by: its own value, else the
namespace's, else the broker's.

Source: PersistentTopics in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

from msgspec.structs import replace

from pulsar_py.admin.declared import Flag
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
    optional_json_response,
)
from pulsar_py.admin.policies import policy_values as values
from pulsar_py.admin.policies.policy_places import Document, OfSubscription, changed
from pulsar_py.admin.policies.policy_routes import Handler, Handlers, Rights, policy_routes
from pulsar_py.admin.policies.rate_values import dispatch_rate
from pulsar_py.admin.policies.storage_values import (
    QUOTA_TYPE,
    SIZE_QUOTA,
    check_retention,
    quota_type,
)
from pulsar_py.admin.policies.topic_policy_table import (
    POLICIES,
    QUOTAS,
    SUBSCRIPTION_RATE,
    Policy,
    first_set,
    levels,
    quotas_of_broker,
)
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.topic_access import (
    require_namespace,
    require_owned,
    topic_not_found,
)
from pulsar_py.admin.resources.topics import TOPIC
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.common.names import TopicName
from pulsar_py.metadata.documents import NamespacePolicies, TopicPolicies
from pulsar_py.metadata.resources import TopicPoliciesResources
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.change_events.namespace_events import events_topic
from pulsar_py.server.security.actions import Action

_APPLIED: Final = Flag("applied")
_GLOBAL: Final = Flag("isGlobal")
_SEVERAL: Final = 2
"""Brokers, this one included."""


class TopicPolicyResource:
    """Reads, sets and removes single policies of topics, by the name without partition."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        for policy in POLICIES:
            yield from policy_routes(
                f"{TOPIC}/{policy.word}",
                policy,
                Handlers(self._getter(policy), self._setter(policy), self._remover(policy)),
                Rights(
                    Action.READ_TOPIC_POLICY, Action.WRITE_TOPIC_POLICY, Action.WRITE_TOPIC_POLICY
                ),
                shown=(_APPLIED, _GLOBAL),
                changed=(_GLOBAL,),
            )
        quota, rate = TOPIC + "/backlogQuota", TOPIC + "/{subName}/dispatchRate"
        yield get(
            TOPIC + "/backlogQuotaMap",
            self.backlog_quotas,
            Action.READ_TOPIC_POLICY,
            _APPLIED,
            _GLOBAL,
            answer=dict[str, values.BacklogQuota],
        )
        yield post(
            quota,
            self.set_backlog_quota,
            Action.WRITE_TOPIC_POLICY,
            *values.backlog_quota.takes,
            QUOTA_TYPE,
            _GLOBAL,
        )
        yield delete(
            quota, self.remove_backlog_quota, Action.WRITE_TOPIC_POLICY, QUOTA_TYPE, _GLOBAL
        )
        yield get(
            rate,
            self.subscription_rate,
            Action.READ_TOPIC_POLICY,
            _APPLIED,
            _GLOBAL,
            answer=dispatch_rate.kind,
            may_be_empty=True,
        )
        yield post(
            rate,
            self.set_subscription_rate,
            Action.WRITE_TOPIC_POLICY,
            *dispatch_rate.takes,
            _GLOBAL,
        )
        yield delete(rate, self.remove_subscription_rate, Action.WRITE_TOPIC_POLICY, _GLOBAL)
        yield delete(TOPIC + "/policies", self.remove_all, Action.WRITE_TOPIC_POLICY)

    def _getter(self, policy: Policy) -> Handler:
        async def show(request: Request) -> Response:
            return await self._show(request, await self._topic(request), policy)

        return show

    async def _show(self, request: Request, name: TopicName, policy: Policy) -> Response:
        if _APPLIED.of(request) and policy.default is not None:
            own, namespace = await self._documents(name)
            applied = policy.pick(levels(policy, self._broker, own, namespace))
            return optional_json_response(applied)
        value = policy.place.get(await self._stored(request, name))
        return policy.unset if value is None else json_response(value)

    def _setter(self, policy: Policy) -> Handler:
        async def store(request: Request) -> Response:
            name = await self._topic(request)
            value = policy.read(request)
            if policy.word == "maxMessageSize":
                self._check_message_size(value)
            if policy.word == "entryFilters":
                values.check_installed(self._broker.hooks.filters, value)
            if policy.word == "shadowTopics":
                await self._check_there(value)
            if policy.word == "persistence" and value is None:
                raise HttpError(HTTPStatus.BAD_REQUEST, "persistence policies should not be null")
            if policy.word == "replication":
                await self._check_clusters(value)
            if policy.word == "retention":
                quotas = QUOTAS.get(await self._stored(request, name)) or {}
                quota = quotas.get(SIZE_QUOTA)
                check_retention(value, quota, changes="retention", of="topic")
            await self._change(request, name, lambda known: policy.place.put(known, value))
            return NO_CONTENT

        return store

    async def _check_clusters(self, names: list[str]) -> None:
        if self._broker.config.clusterName not in names:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                f"the clusters have to include this one, {self._broker.config.clusterName}",
            )
        for name in names:
            if not await self._broker.resources.clusters.exists(name):
                raise HttpError(HTTPStatus.FORBIDDEN, f"Invalid cluster id: {name:.200}")

    async def _check_there(self, names: list[str]) -> None:
        topics = self._broker.topics
        for text in names:
            name = TopicName.parse(text)
            if not await topics.exists(name) and not await topics.partitioned.count(name):
                raise HttpError(
                    HTTPStatus.PRECONDITION_FAILED, f"Shadow topic [{text}] not exists."
                )

    def _check_message_size(self, value: int | None) -> None:
        limit = self._broker.config.maxMessageSize
        if value is not None and value > limit:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                f"topic-level maxMessageSize must be at most the broker's {limit}",
            )

    def _remover(self, policy: Policy) -> Handler:
        async def remove(request: Request) -> Response:
            name = await self._topic(request)
            await self._change(request, name, lambda known: policy.place.put(known, policy.deleted))
            return NO_CONTENT

        return remove

    # --- those with a shape of their own -------------------------------------------------------

    async def backlog_quotas(self, request: Request) -> Response:
        """Return all quotas by type; with `applied` those of namespace and broker, too."""
        name = await self._topic(request)
        if not _APPLIED.of(request):
            return json_response(QUOTAS.get(await self._stored(request, name)) or {})
        own, namespace = await self._documents(name)
        inherited = namespace.get(NamespacePolicies.backlog_quotas.json_name) or {}
        return json_response(
            {**quotas_of_broker(self._broker), **inherited, **(QUOTAS.get(own) or {})}
        )

    async def set_backlog_quota(self, request: Request) -> Response:
        """Set the quota of one type; `null` removes it."""
        name = await self._topic(request)
        kind = quota_type(request)
        quota = values.backlog_quota(request)
        if kind == SIZE_QUOTA:
            own = await self._stored(request, name)
            retention = own.get(TopicPolicies.retention.json_name)
            check_retention(retention, quota, changes="quota", of="topic")
        await self._change(request, name, lambda known: _with_quota(known, kind, quota))
        return NO_CONTENT

    async def remove_backlog_quota(self, request: Request) -> Response:
        """Remove the quota of one type."""
        name = await self._topic(request)
        kind = quota_type(request)
        await self._change(request, name, lambda known: _with_quota(known, kind, None))
        return NO_CONTENT

    async def subscription_rate(self, request: Request) -> Response:
        """Return the dispatch rate of one subscription."""
        name = await self._topic(request)
        place = OfSubscription(request.path["subName"])
        if not _APPLIED.of(request):
            return await self._show(request, name, replace(SUBSCRIPTION_RATE, place=place))
        own, namespace = await self._documents(name)
        below = levels(SUBSCRIPTION_RATE, self._broker, own, namespace)
        return json_response(first_set([place.get(own), *below]))

    async def set_subscription_rate(self, request: Request) -> Response:
        """Set the dispatch rate of one subscription."""
        return await self._set_subscription_rate(request, dispatch_rate(request))

    async def remove_subscription_rate(self, request: Request) -> Response:
        """Remove the dispatch rate of one subscription."""
        return await self._set_subscription_rate(request, None)

    async def _set_subscription_rate(self, request: Request, rate: Any) -> Response:  # Any: JSON
        name = await self._topic(request)
        place = OfSubscription(request.path["subName"])
        await self._change(request, name, lambda known: place.put(known, rate))
        return NO_CONTENT

    async def remove_all(self, request: Request) -> Response:
        """Remove all policies of a topic, those for all clusters, too; fine if there is none."""
        name = topic_of(request)
        self._check_enabled()
        await require_namespace(self._broker, name.namespace_name)
        await self._require_log(name)
        await self._broker.topic_policies.remove(name)
        return NO_CONTENT

    # --- documents -----------------------------------------------------------------------------

    async def _topic(self, request: Request) -> TopicName:
        name = topic_of(request)
        self._check_enabled()
        await require_namespace(self._broker, name.namespace_name)
        if name.is_partition:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                "Not allowed to set/get topic policy for a partition",
            )
        topics = self._broker.topics
        if not await topics.partitioned.count(name) and not await topics.exists(name):
            raise topic_not_found(name)
        await self._catch_up(name)
        return name

    async def _catch_up(self, name: TopicName) -> None:
        """Where there are other brokers, have the policies read by who serves their log.

        A broker of Apache Pulsar may have appended to it, which keeps no copies for others.

        Raises:
            RedirectError: That is another broker.
        """
        membership, namespace = self._broker.membership, name.namespace_name
        if membership is None or len(membership.directory.brokers) < _SEVERAL:
            return
        if await self._broker.topics.exists(events_topic(namespace)):
            await self._require_log(name)
            await self._broker.topic_policies.catch_up(namespace)

    async def _require_log(self, name: TopicName) -> None:
        """Return where the policies of a topic are changed.

        That is who serves the log. One of Apache Pulsar sends callers to who serves the topic, in
        the case of a partitioned one its first partition: then that is here, by that log.

        Raises:
            RedirectError: That is another broker.
        """
        if not await self._broker.topic_policies.is_elsewhere(name.namespace_name):
            await require_owned(self._broker, events_topic(name.namespace_name))
            return
        if await self._broker.topics.partitioned.count(name):
            name = name.partition(0)
        await require_owned(self._broker, name)

    def _check_enabled(self) -> None:
        if not self._broker.topics.settings.has_topic_policies:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Topic level policies is disabled, to enable the topic level policy and retry.",
            )

    def _of(self, *, is_global: bool) -> TopicPoliciesResources:
        resources = self._broker.resources
        return resources.global_topic_policies if is_global else resources.topic_policies

    async def _stored(self, request: Request, name: TopicName) -> Document:
        """The document that the request is about."""
        found = await self._of(is_global=_GLOBAL.of(request)).get(name)
        return {} if found is None else found.json

    async def _documents(self, name: TopicName) -> tuple[Document, Document]:
        """What the topic has for this cluster and for all, and what its namespace has."""
        own = await self._broker.resources.policies_of_topic(name)
        namespace = await self._broker.resources.namespaces.get(name.namespace_name)
        return own.json if own else {}, namespace.json if namespace else {}

    async def _change(
        self, request: Request, name: TopicName, change: Callable[[Document], Document]
    ) -> None:
        await self._require_log(name)
        await self._broker.topic_policies.change(name, change, is_global=_GLOBAL.of(request))


def _with_quota(document: Document, kind: str, quota: Any) -> dict[str, Any]:  # Any: JSON
    quotas = changed(QUOTAS.get(document) or {}, {kind: quota})
    return QUOTAS.put(document, quotas or None)
