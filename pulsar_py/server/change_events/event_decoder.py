"""`EventDecoder`: reads messages of one `__change_events` as events of topics' policies (edge).

Whoever wrote a message may have used a schema of its own; the topic's schemas say which. What is no
event of a topic's policies is passed over, with a warning if it can't be read.

Source: SystemTopicBasedTopicPoliciesService in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from pulsar_py.common.errors import (
    IncompatibleSchemaError,
    InvalidConfigurationError,
    SchemaSerializationError,
)
from pulsar_py.common.names import TopicName
from pulsar_py.schema.avro.avro_codec import AvroReader
from pulsar_py.server.change_events.event_messages import EventMessage
from pulsar_py.server.policies.policy_events import (
    PolicyEvent,
    decode_event,
    reader_from,
    schema_text,
)
from pulsar_py.server.schema_registry import SchemaRegistry

logger = logging.getLogger(__name__)


class LoggedEvent(NamedTuple):
    """An event as the log has it."""

    event: PolicyEvent
    published_millis: int


class EventDecoder:
    """Decodes the messages of one log; has the definitions that it met."""

    def __init__(self, name: TopicName, schemas: SchemaRegistry) -> None:
        """`name` is that of the log."""
        self._name = name
        self._schemas = schemas
        self._readers: dict[bytes, AvroReader | None] = {}  # by version; None is our definition

    async def events_of(self, messages: Iterable[EventMessage], place: str) -> list[LoggedEvent]:
        """The events of some messages in their order; `place` is for the log of the broker.

        Raises:
            StorageError, MetadataError: A schema can't be read now.
        """
        found: list[LoggedEvent] = []
        for message in messages:
            try:
                reader = await self._reader_of(message)
                event = decode_event(message.key, message.payload, reader)
            except (
                SchemaSerializationError,
                IncompatibleSchemaError,
                InvalidConfigurationError,
                ValueError,
            ) as error:
                self.warn(place, error)
                continue
            # Of the namespace's topics only: producers of the log may do no more.
            if event is not None and event.topic.namespace_name == self._name.namespace_name:
                found.append(LoggedEvent(event, message.published_millis))
        return found

    def warn(self, place: str, error: Exception) -> None:
        """Tell of something that can't be read."""
        logger.warning(
            "policy event passed over",
            extra={"topic": str(self._name), "position": place, "error": str(error)},
        )

    async def _reader_of(self, message: EventMessage) -> AvroReader | None:
        """What reads the message's payload; None if it was written with our own definition."""
        version = message.schema_version
        if not version or not message.payload:
            return None
        if version not in self._readers:
            stored = await self._schemas.get(self._name.schema_id, version)
            text = "" if stored is None else stored.definition.data.decode()
            self._readers[version] = reader_from(text) if text not in ("", schema_text()) else None
        return self._readers[version]
