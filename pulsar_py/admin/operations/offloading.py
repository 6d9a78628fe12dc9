"""REST resource of offloading; it refuses, because there are no offload drivers.

A request to offload succeeds if no ledger before the given position would have to be moved, and is
refused otherwise.

Source: PersistentTopicsBase.internalTriggerOffloadAsync, OffloadProcessStatus in Pulsar.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.subscriptions import MESSAGE_ID
from pulsar_py.admin.resources.topic_access import require_topic
from pulsar_py.admin.resources.topics import TOPIC, message_id_json
from pulsar_py.admin.router import Route, get, put
from pulsar_py.common.position import Position
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.persistent import PersistentTopic


class Offloading:
    """Answers for a topic without a driver."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        path = TOPIC + "/offload"
        return (
            get(path, self.status, Action.COMPACT, answer="OffloadStatus"),
            put(path, self.trigger, Action.COMPACT, MESSAGE_ID),
        )

    async def status(self, request: Request) -> Response:
        """Return that nothing has been offloaded."""
        await self._topic(request)
        nowhere = message_id_json(Position(-1, -1), -1)
        return json_response(
            {"status": "NOT_RUN", "lastError": "", "firstUnoffloadedMessage": nowhere}
        )

    async def trigger(self, request: Request) -> Response:
        """Offload the ledgers before a position; fine if there is none."""
        given = MESSAGE_ID.of(request)
        if given is None:
            raise HttpError(HTTPStatus.BAD_REQUEST, "messageId is null")
        topic = await self._topic(request)
        first = topic.ledger.first_position
        if topic.ledger.entries_count and given.ledger_id > first.ledger_id:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED, "there are no offload drivers: nothing was moved"
            )
        return NO_CONTENT

    async def _topic(self, request: Request) -> PersistentTopic:
        topic = await require_topic(self._broker, topic_of(request))
        if not isinstance(topic, PersistentTopic):
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED, "Offload on a non-persistent topic is not allowed"
            )
        return topic
