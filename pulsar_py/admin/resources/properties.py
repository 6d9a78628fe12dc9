"""REST resource of the properties that users give topics and subscriptions.

A topic's are added to those it has, a subscription's are replaced. A partitioned topic has its own,
beside the count of partitions; those of a subscription on it are stored with each partition.

Source: PersistentTopicsBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.declared import PROPERTIES, Text
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
    optional_json_response,
)
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.subscriptions import SUBSCRIPTION, subscription_on_partitions
from pulsar_py.admin.resources.topic_access import require_topic
from pulsar_py.admin.resources.topics import TOPIC
from pulsar_py.admin.router import Route, delete, get, put
from pulsar_py.common.names import TopicName
from pulsar_py.metadata.documents import PartitionedTopicMetadata
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.persistent import PersistentTopic

MAX_PROPERTIES_BYTES: Final = 128 * 1024
"""The most bytes of names and values together: they are stored in one record of the metadata."""

Change = Callable[[Mapping[str, str]], dict[str, str]]

_KEY: Final = Text("key")


class Properties:
    """Reads and changes properties of topics and subscriptions."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        of_topic, of_subscription = TOPIC + "/properties", SUBSCRIPTION + "/properties"
        return (
            get(
                of_topic,
                self.properties,
                Action.GET_METADATA,
                answer=dict[str, str],
                may_be_empty=True,
            ),
            put(of_topic, self.add, Action.UPDATE_METADATA, PROPERTIES),
            delete(of_topic, self.remove, Action.UPDATE_METADATA, _KEY),
            get(
                of_subscription, self.subscription_properties, Action.CONSUME, answer=dict[str, str]
            ),
            put(of_subscription, self.replace_subscription_properties, Action.CONSUME, PROPERTIES),
        )

    async def properties(self, request: Request) -> Response:
        """Return the topic's properties; an empty body for a partitioned topic without any."""
        name = _persistent(request)
        metadata = await self._broker.resources.partitioned_topics.get(name)
        if metadata is not None:
            return optional_json_response(metadata.properties or None)
        topic = await require_topic(self._broker, name)
        stored = topic.ledger.properties if isinstance(topic, PersistentTopic) else {}
        return json_response(dict(stored))

    async def add(self, request: Request) -> Response:
        """Set some properties; the others stay."""
        added = PROPERTIES.of(request) or {}
        await self._change(request, lambda known: {**known, **added})
        return NO_CONTENT

    async def remove(self, request: Request) -> Response:
        """Remove the property that the parameter `key` names; fine if there is none."""
        _persistent(request)
        key = _KEY.of(request)
        if not key:
            raise HttpError(HTTPStatus.PRECONDITION_FAILED, "key, the property's name, is required")
        await self._change(
            request, lambda known: {name: text for name, text in known.items() if name != key}
        )
        return NO_CONTENT

    async def _change(self, request: Request, change: Change) -> None:
        name = _persistent(request)
        partitioned = self._broker.resources.partitioned_topics
        if await partitioned.get(name) is not None:

            def changed(known: PartitionedTopicMetadata) -> PartitionedTopicMetadata:
                return known.replace(properties=_checked(change(known.properties or {})))

            await partitioned.update(name, changed)
            return
        topic = await require_topic(self._broker, name)
        assert isinstance(topic, PersistentTopic)
        await topic.ledger.change_properties(lambda known: _checked(change(known)))

    async def subscription_properties(self, request: Request) -> Response:
        """Return a subscription's properties; of a partitioned topic those of all partitions."""
        found: dict[str, str] = {}
        subscriptions, answers = await subscription_on_partitions(self._broker, request)
        for _, subscription in subscriptions:
            found.update(subscription.properties())
        for answer in answers:
            found.update(answer.json())
        return json_response(found)

    async def replace_subscription_properties(self, request: Request) -> Response:
        """Replace all properties of a subscription; without a body they are removed."""
        properties = _checked(PROPERTIES.of(request) or {})
        subscriptions, _ = await subscription_on_partitions(self._broker, request)
        for _, subscription in subscriptions:
            try:
                await subscription.set_properties(properties)
            except ValueError as error:
                raise HttpError(HTTPStatus.PRECONDITION_FAILED, str(error)) from None
        return NO_CONTENT


def _persistent(request: Request) -> TopicName:
    name = topic_of(request)
    if not name.is_persistent:
        raise HttpError(HTTPStatus.NOT_ACCEPTABLE, "Need to provide a persistent topic name")
    return name


def _checked(properties: dict[str, str]) -> dict[str, str]:
    size = sum(len(name.encode()) + len(text.encode()) for name, text in properties.items())
    if size > MAX_PROPERTIES_BYTES:
        raise HttpError(
            HTTPStatus.PRECONDITION_FAILED,
            f"properties of {size} bytes, allowed are {MAX_PROPERTIES_BYTES} together",
        )
    return properties
