"""`EventLog`: the events of one loaded `__change_events`, read from its first one on (edge).

Reading goes through the compacted ledger and then the topic, by a cursor in memory that keeps
nothing from being trimmed. Whoever appended them, events come once and in the order of the topic.
The log ends with the loaded topic; the next load has a new one, read from the beginning.

Source: TopicPoliciesSystemTopicClient, SystemTopicClientBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from pulsar_py.common.errors import PayloadError
from pulsar_py.common.policies import SchemaCompatibilityStrategy
from pulsar_py.common.position import EARLIEST
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.change_events.event_decoder import EventDecoder, LoggedEvent
from pulsar_py.server.change_events.event_messages import event_entry, messages_of
from pulsar_py.server.compaction.compacted_source import CompactedSource
from pulsar_py.server.dispatch.entry_source import EntrySource
from pulsar_py.server.policies.policy_events import SCHEMA_PROPERTIES, PolicyEvent, schema_text
from pulsar_py.server.schema_registry import SchemaDefinition, SchemaRegistry
from pulsar_py.server.topics.persistent import PersistentTopic

CURSOR_NAME: Final = "pulsar_py.topic-policies"
"""Of the cursor in memory, as the topic's internal statistics show it."""

FOLLOWED_PROPERTY: Final = "pulsar_py.topic-policies-follow"
"""Of the managed ledger: the copies in the metadata store follow this log since it was set."""

ENTRIES_A_READ: Final = 100
BYTES_A_READ: Final = 1024 * 1024


@cache
def event_schema() -> SchemaDefinition:
    """The schema with which the topic of events is registered."""
    return SchemaDefinition(
        type=Schema.Avro, data=schema_text().encode(), properties=SCHEMA_PROPERTIES
    )


class EventLog:
    """Reads and appends events; owned by the `NamespaceEvents` of the namespace."""

    def __init__(self, topic: PersistentTopic, schemas: SchemaRegistry, cluster: str) -> None:
        """Raises ManagedLedgerError if the topic was closed."""
        self.topic = topic
        self._schemas = schemas
        self._cluster = cluster
        self._producer_name = ""
        self._next_sequence_id = 0
        self._schema_version = b""
        self._decoder = EventDecoder(topic.name, schemas)
        self._cursor = topic.ledger.new_non_durable_cursor(CURSOR_NAME, InitialPosition.EARLIEST)
        self._source: EntrySource = self._cursor
        compaction = topic.compaction
        if compaction is not None:
            self._source = CompactedSource(
                self._cursor,
                lambda: compaction.compacted,
                compaction.on_missing,
                start=EARLIEST,
            )

    @property
    def is_open(self) -> bool:
        """Whether the topic is still loaded."""
        return not self._cursor.is_closed

    @property
    def is_followed(self) -> bool:
        """Whether the copies have followed this log before."""
        return FOLLOWED_PROPERTY in self.topic.ledger.properties

    async def set_followed(self) -> None:
        """Note durably that from now on the copies follow this log.

        Raises:
            MetadataError, ManagedLedgerError: It can't be stored now.
        """
        await self.topic.ledger.set_property(FOLLOWED_PROPERTY, "true")

    # Reading

    async def read(self) -> list[LoggedEvent] | None:
        """The next events; `[]` if some entries had none, None at the end of the log.

        What is no event of a topic's policies is passed over, with a warning if it can't be read.

        Raises:
            ManagedLedgerError: The topic was unloaded.
            StorageError, MetadataError: It can't be read now.
        """
        entries = self._source.read_cached(ENTRIES_A_READ, BYTES_A_READ)
        if entries is None:
            entries = await self._source.read(ENTRIES_A_READ, BYTES_A_READ)
        if not entries:
            return None
        found: list[LoggedEvent] = []
        for entry in entries:
            found += await self._events_of(entry)
        return found

    async def _events_of(self, entry: Entry) -> list[LoggedEvent]:
        place = str(entry.position)
        try:
            messages = messages_of(entry.data)
        except (PayloadError, ValueError) as error:
            self._decoder.warn(place, error)
            return []
        return await self._decoder.events_of(messages, place)

    def when_more(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, soon after there is more to read; never if there can't be.

        Raises:
            ManagedLedgerError: The topic was unloaded.
        """
        if not self.topic.ledger.is_terminated:
            self._source.wait_for_entries(callback)

    # Appending

    async def append(self, event: PolicyEvent) -> None:
        """Append an event; it is durable when this returns.

        Raises:
            PulsarError: It is not stored, or that is unknown.
        """
        if not self._producer_name:
            self._schema_version = await self._schemas.put_if_absent(
                self.topic.name.schema_id,
                event_schema(),
                strategy=SchemaCompatibilityStrategy.ALWAYS_COMPATIBLE,
            )
            self._producer_name = await self.topic.context.new_producer_name()
        entry = event_entry(
            event,
            self._cluster,
            producer_name=self._producer_name,
            sequence_id=self._next_sequence_id,
            schema_version=self._schema_version,
            now_millis=self.topic.context.clock.wall_time_millis(),
        )
        self._next_sequence_id += 1
        await self.topic.append_own(entry)

    async def close(self) -> None:
        """Release the cursor."""
        await self._cursor.close()
