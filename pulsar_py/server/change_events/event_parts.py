"""`EventParts`: what the logs of policies of all namespaces share, before any of them is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import TopicName
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.schema_registry import SchemaRegistry

if TYPE_CHECKING:
    from pulsar_py.server.topics.registry import TopicOwnership
    from pulsar_py.server.topics.topic import Topic


class TopicLoader(Protocol):
    """The part of the `TopicRegistry` that is used here."""

    async def get_or_load(self, name: TopicName, *, create_if_missing: bool) -> Topic:
        """The topic, loaded once for all callers."""

    async def exists(self, name: TopicName) -> bool:
        """Whether the topic is stored or loaded."""


class EventParts(Struct, frozen=True, kw_only=True):
    """What all namespaces of one broker share; `cluster` is its own."""

    topics: TopicLoader
    ownership: TopicOwnership
    resources: Resources
    schemas: SchemaRegistry
    cluster: str
    tasks: TaskOwner
