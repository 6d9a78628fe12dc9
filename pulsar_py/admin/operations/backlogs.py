"""REST resource of whole namespaces' backlogs and subscriptions: clear, unsubscribe, replication.

What is asked of a namespace or bundle applies to the topics that are stored in it; those without
the subscription stay as they are.

Source: NamespacesBase.clearBacklog, unsubscribeNamespace, and
PersistentTopicsBase.internalSetReplicatedSubscriptionStatus in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.declared import BOOLEAN
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.resources.namespaces import NAMESPACE
from pulsar_py.admin.resources.requests import namespace_of, topic_of
from pulsar_py.admin.resources.subscriptions import SUBSCRIPTION, subscription_on_partitions
from pulsar_py.admin.resources.topic_access import (
    require_namespace,
    require_topic,
)
from pulsar_py.admin.router import Route, get, post
from pulsar_py.common.names import COMPACTION_SUBSCRIPTION, NamespaceName, TopicName
from pulsar_py.common.network.http_client import HttpResponse
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.registry import TopicListMode

_BUNDLE: Final = NAMESPACE + "/{bundle}"

Act = Callable[[PersistentTopic, str], Awaitable[object]]
"""What is done to one subscription of a topic."""


class Backlogs:
    """Operations on the subscriptions of many topics, and one setting of subscriptions."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        for base in (NAMESPACE, _BUNDLE):
            for path in ("/clearBacklog", "/clearBacklog/{name}"):
                yield post(base + path, self.clear, Action.CLEAR_BACKLOG)
            path = "/unsubscribe/{name}"
            yield post(base + path, self.unsubscribe, Action.CLEAR_BACKLOG)
        status = SUBSCRIPTION + "/replicatedSubscriptionStatus"
        yield get(status, self.replicated, Action.CONSUME, answer=dict[str, bool])
        yield post(status, self.set_replicated, Action.CONSUME, BOOLEAN)

    async def clear(self, request: Request) -> Response:
        """Acknowledge the backlog of all subscriptions, or of those with a name.

        What a compaction has not read yet is no backlog, unless it is named.
        """
        wanted = request.path.get("name")

        async def act(topic: PersistentTopic, name: str) -> None:
            subscription = topic.subscriptions[name]
            if name == COMPACTION_SUBSCRIPTION != wanted:
                return
            if isinstance(subscription, PersistentSubscription):
                await subscription.clear_backlog()

        await self._for_each(request, act)
        return NO_CONTENT

    async def unsubscribe(self, request: Request) -> Response:
        """Delete the subscriptions with a name; connected consumers prevent it."""

        async def act(topic: PersistentTopic, name: str) -> None:
            await topic.delete_subscription(name)

        await self._for_each(request, act)
        return NO_CONTENT

    async def _for_each(self, request: Request, act: Act) -> None:
        namespace, wanted = namespace_of(request), request.path.get("name")
        await require_namespace(self._broker, namespace)
        bundles = await self._broker.namespaces.bundles_of(namespace)
        bundle = request.path.get("bundle")
        if bundle is not None and bundle not in bundles.names:
            raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"Invalid bundle range: {bundle}")
        elsewhere = await self._ask_others(
            request, namespace, [bundle] if bundle else bundles.names
        )
        for text in await self._broker.topics.list_topics(namespace, TopicListMode.PERSISTENT):
            of = bundles.bundle_of(text)
            if of in elsewhere or (bundle is not None and of != bundle):
                continue
            topic = await require_topic(self._broker, TopicName.parse(text))
            assert isinstance(topic, PersistentTopic)
            for name in list(topic.subscriptions):
                if wanted in {None, name}:
                    await act(topic, name)

    async def _ask_others(
        self, request: Request, namespace: NamespaceName, bundles: Sequence[str]
    ) -> set[str]:
        """Have the other owners of bundles do the same; returns their bundles."""
        found = set()
        _, _, end = request.raw_path.partition(f"/namespaces/{namespace}/")
        end = end.rpartition("0x")[2].partition("/")[2] if "bundle" in request.path else end
        for bundle in bundles:
            url = await self._broker.elsewhere.url_of_bundle(namespace, bundle)
            if url is not None:
                path = f"/admin/v2/namespaces/{namespace}/{bundle}/{end}"
                await self._broker.elsewhere.call(url, "POST", path)
                found.add(bundle)
        return found

    # --- replicated subscriptions --------------------------------------------------------------

    async def replicated(self, request: Request) -> Response:
        """Return for each topic whether other clusters shall know what is acknowledged."""
        found, answers = await self._subscriptions(request)
        told = {str(part): each.is_replicated for part, each in found}
        for answer in answers:
            told.update(answer.json())
        return json_response(told)

    async def set_replicated(self, request: Request) -> Response:
        """Set whether other clusters shall know what is acknowledged."""
        is_replicated = BOOLEAN.required(request)
        found, _ = await self._subscriptions(request)
        for _, subscription in found:
            subscription.set_replicated(is_replicated=is_replicated)
            await subscription.cursor.flush()
        return NO_CONTENT

    async def _subscriptions(
        self, request: Request
    ) -> tuple[list[tuple[TopicName, PersistentSubscription]], list[HttpResponse]]:
        """The subscription on the topic or its partitions, and what other brokers answered."""
        if not topic_of(request).is_persistent:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Cannot enable/disable replicated subscriptions on non-persistent topics",
            )
        found, answers = await subscription_on_partitions(self._broker, request)
        of_cursors = [
            (part, each) for part, each in found if isinstance(each, PersistentSubscription)
        ]
        return of_cursors, answers
