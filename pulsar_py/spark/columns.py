"""Metadata columns: their Spark types, their Arrow types, and how messages become arrays (pure).

The six of the JVM connector come by default and in its order, the others on request; `COLUMNS` is
the whole table. Arrays are made a column at a time for a run of messages, and what is the same for
a whole entry is computed once. Timestamps are microseconds in UTC; a column that a message has
nothing for is null.

Source: spec sections 1.2 and 8.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pulsar_py.client.message import Message
from pulsar_py.common.names import TopicName

Array: TypeAlias = Any
"""An Arrow array of the type its column says; pyarrow ships no types."""

TIMESTAMP: Final = pa.timestamp("us", "UTC")
PROPERTIES: Final = pa.map_(pa.string(), pa.string())
_MICROS_PER_MILLI: Final = 1000


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """One column that says something about a message."""

    name: str
    ddl: str
    """Its type as Spark's DDL names it."""
    arrow_type: pa.DataType
    build: Callable[[Sequence[Message]], Array]
    """The column of some messages, as many rows as messages."""


def _of_each(arrow_type: pa.DataType, read: Callable[[Message], object]) -> Callable[..., Array]:
    def build(messages: Sequence[Message]) -> Array:
        return pa.array([read(message) for message in messages], arrow_type)

    return build


def _of_entry(arrow_type: pa.DataType, read: Callable[[Message], object]) -> Callable[..., Array]:
    """A column whose value is the same for all messages of an entry: read once for each entry."""

    def build(messages: Sequence[Message]) -> Array:
        values: list[object] = []
        entry: object = None
        value: object = None
        for message in messages:
            if message.entry is not entry:
                entry = message.entry
                value = read(message)
            values.append(value)
        return pa.array(values, arrow_type)

    return build


def _build_topics(messages: Sequence[Message]) -> Array:
    first = messages[0].entry.topic
    if all(message.entry.topic == first for message in messages):
        return pa.repeat(pa.scalar(first, pa.string()), len(messages))
    return pa.array([message.entry.topic for message in messages], pa.string())


def _build_properties(messages: Sequence[Message]) -> Array:
    pairs = [list(message.properties().items()) for message in messages]
    return pa.array(pairs, PROPERTIES)


def _event_micros(message: Message) -> int | None:
    return message.event_timestamp() * _MICROS_PER_MILLI or None


def _broker_micros(message: Message) -> int | None:
    millis = message.broker_publish_time()
    return None if millis is None else millis * _MICROS_PER_MILLI


def _partition(message: Message) -> int | None:
    index = TopicName.parse(message.entry.topic).partition_index
    return index if index >= 0 else None


def _batch_index(message: Message) -> int | None:
    return message.batch_index if message.batch_index >= 0 else None


def _ordering_key(message: Message) -> bytes | None:
    return message.ordering_key_bytes() if message.has_ordering_key() else None


COLUMNS: Final[Mapping[str, MetadataColumn]] = {
    column.name: column
    for column in (
        MetadataColumn("__key", "BINARY", pa.binary(), _of_each(pa.binary(), Message.key_bytes)),
        MetadataColumn("__topic", "STRING", pa.string(), _build_topics),
        MetadataColumn(
            "__messageId",
            "BINARY",
            pa.binary(),
            _of_each(pa.binary(), lambda message: message.message_id().serialize()),
        ),
        MetadataColumn(
            "__publishTime",
            "TIMESTAMP",
            TIMESTAMP,
            _of_entry(TIMESTAMP, lambda message: message.publish_timestamp() * _MICROS_PER_MILLI),
        ),
        MetadataColumn("__eventTime", "TIMESTAMP", TIMESTAMP, _of_each(TIMESTAMP, _event_micros)),
        MetadataColumn("__messageProperties", "MAP<STRING, STRING>", PROPERTIES, _build_properties),
        MetadataColumn("__partition", "INT", pa.int32(), _of_entry(pa.int32(), _partition)),
        MetadataColumn(
            "__ledgerId",
            "BIGINT",
            pa.int64(),
            _of_entry(pa.int64(), lambda message: message.entry.key[0]),
        ),
        MetadataColumn(
            "__entryId",
            "BIGINT",
            pa.int64(),
            _of_entry(pa.int64(), lambda message: message.entry.key[1]),
        ),
        MetadataColumn("__batchIndex", "INT", pa.int32(), _of_each(pa.int32(), _batch_index)),
        MetadataColumn(
            "__sequenceId", "BIGINT", pa.int64(), _of_each(pa.int64(), Message.sequence_id)
        ),
        MetadataColumn(
            "__producerName", "STRING", pa.string(), _of_entry(pa.string(), Message.producer_name)
        ),
        MetadataColumn(
            "__orderingKey", "BINARY", pa.binary(), _of_each(pa.binary(), _ordering_key)
        ),
        MetadataColumn(
            "__schemaVersion",
            "BINARY",
            pa.binary(),
            _of_entry(pa.binary(), Message.schema_version),
        ),
        MetadataColumn("__index", "BIGINT", pa.int64(), _of_each(pa.int64(), Message.index)),
        MetadataColumn(
            "__brokerPublishTime", "TIMESTAMP", TIMESTAMP, _of_entry(TIMESTAMP, _broker_micros)
        ),
        MetadataColumn(
            "__replicatedFrom",
            "STRING",
            pa.string(),
            _of_entry(pa.string(), Message.replicated_from),
        ),
        MetadataColumn(
            "__isTombstone", "BOOLEAN", pa.bool_(), _of_each(pa.bool_(), Message.has_null_value)
        ),
        MetadataColumn("__size", "INT", pa.int32(), _of_each(pa.int32(), Message.size)),
    )
}
