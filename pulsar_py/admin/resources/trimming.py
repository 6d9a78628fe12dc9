"""REST resource that trims consumed ledgers of topics, and truncates topics.

Source: PersistentTopicsBase.internalTrimTopic, internalTruncateTopic in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from pulsar_py.admin.http_messages import EMPTY, NO_CONTENT, HttpError, Request, Response
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.topic_access import (
    for_each_partition,
    require_namespace,
    require_topic,
)
from pulsar_py.admin.resources.topics import TOPIC
from pulsar_py.admin.router import Route, delete, post
from pulsar_py.common.names import TopicName
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.persistent import PersistentTopic


class TopicTrimming:
    """Trims and truncates topics."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            post(TOPIC + "/trim", self.trim, Action.UPDATE_METADATA, status=HTTPStatus.OK),
            delete(TOPIC + "/truncate", self.truncate, Action.UPDATE_METADATA),
        )

    async def trim(self, request: Request) -> Response:
        """Delete now the ledgers that neither retention nor a subscription needs."""
        name = self._persistent(request, "trim")

        async def act(part: TopicName) -> None:
            topic = await require_topic(self._broker, part)
            assert isinstance(topic, PersistentTopic)
            await topic.ledger.trim()

        await require_namespace(self._broker, name.namespace_name)
        await for_each_partition(self._broker, name, act)
        return EMPTY

    async def truncate(self, request: Request) -> Response:
        """Clear all subscriptions and delete all messages, whatever retention says."""
        name = self._persistent(request, "truncate")

        async def act(part: TopicName) -> None:
            topic = await require_topic(self._broker, part)
            assert isinstance(topic, PersistentTopic)
            await topic.truncate()

        await require_namespace(self._broker, name.namespace_name)
        await for_each_partition(self._broker, name, act)
        return NO_CONTENT

    def _persistent(self, request: Request, what: str) -> TopicName:
        name = topic_of(request)
        if not name.is_persistent:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                f"{what} is not supported by non-persistent topics: {name} stores nothing",
            )
        return name
