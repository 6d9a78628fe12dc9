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
from functools import cached_property
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pulsar_py.client.message import Message, ReceivedEntry
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName

Array: TypeAlias = Any
"""An Arrow array of the type its column says; pyarrow ships no types."""

TIMESTAMP: Final = pa.timestamp("us", "UTC")
PROPERTIES: Final = pa.map_(pa.string(), pa.string())
_MICROS_PER_MILLI: Final = 1000


class Rows:
    """The messages of one record batch, and what several columns need of them."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages

    @cached_property
    def metadata(self) -> list[Any]:  # Any: one of two kinds of metadata, with the same fields
        """What has key, properties and event time, of each message."""
        return [message.own_metadata for message in self.messages]


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """One column that says something about a message."""

    name: str
    ddl: str
    """Its type as Spark's DDL names it."""
    arrow_type: pa.DataType
    build: Callable[[Rows], Array]
    """The column of some messages, as many rows as messages."""


def _of_each(arrow_type: pa.DataType, read: Callable[[Message], object]) -> Callable[..., Array]:
    def build(rows: Rows) -> Array:
        return pa.array([read(message) for message in rows.messages], arrow_type)

    return build


def _of_entry(arrow_type: pa.DataType, read: Callable[[Message], object]) -> Callable[..., Array]:
    """A column whose value is the same for all messages of an entry: read once for each entry."""

    def build(rows: Rows) -> Array:
        values: list[object] = []
        entry: object = None
        value: object = None
        for message in rows.messages:
            if message.entry is not entry:
                entry = message.entry
                value = read(message)
            values.append(value)
        return pa.array(values, arrow_type)

    return build


def _build_topics(rows: Rows) -> Array:
    messages = rows.messages
    first = messages[0].entry.topic
    if all(message.entry.topic == first for message in messages):
        return pa.repeat(pa.scalar(first, pa.string()), len(messages))
    return pa.array([message.entry.topic for message in messages], pa.string())


def _build_keys(rows: Rows) -> Array:
    keys: list[bytes | None] = [
        metadata.partition_key.encode() if metadata.HasField("partition_key") else None
        for metadata in rows.metadata
    ]
    for row, metadata in enumerate(rows.metadata):
        if metadata.partition_key_b64_encoded or metadata.null_partition_key:
            keys[row] = rows.messages[row].key_bytes()
    return pa.array(keys, pa.binary())


def _build_properties(rows: Rows) -> Array:
    pairs: list[list[tuple[str, str]]] = []
    for metadata in rows.metadata:
        properties = metadata.properties
        # Later ones of a name win, as in a message's own mapping.
        pairs.append(
            list({each.key: each.value for each in properties}.items()) if properties else []
        )
    return pa.array(pairs, PROPERTIES)


def _build_event_times(rows: Rows) -> Array:
    micros = [metadata.event_time * _MICROS_PER_MILLI or None for metadata in rows.metadata]
    return pa.array(micros, TIMESTAMP)


def _build_message_ids(rows: Rows) -> Array:
    """Serialized ids: what messages of one entry share is serialized once for each entry.

    The batch index and size are fields 4 and 6 of MessageIdData, and its last ones.
    """
    ids: list[bytes] = []
    entry: ReceivedEntry | None = None
    shared = suffix = b""
    for message in rows.messages:
        if message.batch_index < 0 or message.entry.chunk_ids:
            ids.append(message.message_id().serialize())
            continue
        if message.entry is not entry:
            entry = message.entry
            whole = MessageId(*entry.key, partition_index=entry.partition_index)
            shared = whole.serialize() + b"\x20"
            suffix = b"\x30" + varint(entry.batch_size)
        ids.append(shared + varint(message.batch_index) + suffix)
    return pa.array(ids, pa.binary())


def varint(number: int) -> bytes:
    """A number that is not negative, in protobuf's variable length."""
    if number < _VARINT_STEP:
        return _SMALL[number]
    parts = bytearray()
    while number >= _VARINT_STEP:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_VARINT_STEP: Final = 0x80
_SMALL: Final = tuple(bytes([number]) for number in range(_VARINT_STEP))


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
        MetadataColumn("__key", "BINARY", pa.binary(), _build_keys),
        MetadataColumn("__topic", "STRING", pa.string(), _build_topics),
        MetadataColumn(
            "__messageId",
            "BINARY",
            pa.binary(),
            _build_message_ids,
        ),
        MetadataColumn(
            "__publishTime",
            "TIMESTAMP",
            TIMESTAMP,
            _of_entry(TIMESTAMP, lambda message: message.publish_timestamp() * _MICROS_PER_MILLI),
        ),
        MetadataColumn("__eventTime", "TIMESTAMP", TIMESTAMP, _build_event_times),
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
