"""Metadata columns: their Spark and Arrow types, and how they are made of messages (pure).

The six of the JVM connector come by default and in its order, the others on request; `COLUMNS` is
the whole table. Arrays are made a column at a time for many messages, and what is the same for a
whole entry is computed once. Timestamps are microseconds in UTC; a column is null where a message
has nothing for it.

Producers may write anything into metadata, and none of it may make a topic unreadable:
times after the year 9999 are null, unsigned numbers above 2^63-1 are negative as in Java, keys are
bytes, and text that is not UTF-8 gets U+FFFD in places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import pyarrow as pa

from pulsar_py.client.messages.message import Message, OwnMetadata, key_bytes_of, text_of
from pulsar_py.common.message_id import MessageId, to_signed
from pulsar_py.common.names import TopicName
from pulsar_py.common.varint import varint
from pulsar_py.spark.values.arrays import Array, binary_array, repeated, text_repeated

TIMESTAMP: Final = pa.timestamp("us", "UTC")
PROPERTIES: Final = pa.map_(pa.string(), pa.string())
_MICROS_PER_MILLI: Final = 1000
_LAST_MILLIS: Final = 253_402_300_799_999
"""The end of the year 9999; SQL and Python have no later time."""
_PROBE: Final = 64
"""How many of the first messages decide whether most messages share their metadata."""


UNDECODABLE_COLUMN: Final = "__undecodable"
"""Holds the payload of a message that could not be decoded, where the option asks for it."""


class Rows:
    """The messages of one record batch, and values that several columns need."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages

    @cached_property
    def entries(self) -> list[tuple[Message, int]]:
        """For each run of messages of one entry: its first message, and its length."""
        starts: list[int] = []
        entry: object = None
        for row, message in enumerate(self.messages):
            if message.entry is not entry:
                entry = message.entry
                starts.append(row)
        ends = [*starts[1:], len(self.messages)]
        return [
            (self.messages[start], end - start) for start, end in zip(starts, ends, strict=True)
        ]

    @cached_property
    def _own(self) -> tuple[list[OwnMetadata], list[int] | None]:
        """The distinct metadata of single messages, and the index of each row's.

        None instead of indexes: each row has its own. Whether rows share theirs is guessed from
        the first messages.
        """
        known: dict[bytes, OwnMetadata] = {}
        first = self.messages[:_PROBE]
        if len({id(message.metadata_among(known)) for message in first}) * 2 > len(first):
            return [message.own_metadata for message in self.messages], None
        places: dict[int, int] = {}
        found: list[OwnMetadata] = []
        rows: list[int] = []
        for message in self.messages:
            metadata = message.metadata_among(known)
            place = places.get(id(metadata))
            if place is None:
                place = places[id(metadata)] = len(found)
                found.append(metadata)
            rows.append(place)
        return found, rows

    def of_own_metadata(self, build: Callable[[Sequence[OwnMetadata]], Array]) -> Array:
        """A column of keys, properties or event times, built once for each distinct metadata.

        Messages without any of these have equal metadata, so many topics have few distinct ones.
        """
        metadata, rows = self._own
        column = build(metadata)
        return column if rows is None else column.take(pa.array(rows, pa.int32()))

    def message_ids(self) -> Array:
        """Serialized message ids; the part that an entry's messages share is made once an entry."""
        ids: list[bytes] = []
        begin = 0
        for message, count in self.entries:
            entry = message.entry
            begin += count
            if message.batch_index < 0:
                ids.append(message.message_id().serialize())
                continue
            run = self.messages[begin - count : begin]
            shared = MessageId(*entry.key, partition_index=entry.partition_index).serialize()
            ends = _id_ends([each.batch_index for each in run], entry.batch_size)
            ids += [shared + end for end in ends]
        return binary_array(ids)


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """A column of metadata."""

    name: str
    ddl: str
    """The type in Spark's DDL."""
    arrow_type: pa.DataType
    build: Callable[[Rows], Array]
    """Makes the column: one row for each message."""


def _of_each(arrow_type: pa.DataType, read: Callable[[Message], object]) -> Callable[..., Array]:
    def build(rows: Rows) -> Array:
        return pa.array([read(message) for message in rows.messages], arrow_type)

    return build


def _of_entry(arrow_type: pa.DataType, read: Callable[[Message], object]) -> Callable[..., Array]:
    """A column whose value is the same for all messages of an entry: read once for each entry."""

    def build(rows: Rows) -> Array:
        if len(rows.entries) == 1:
            ((message, count),) = rows.entries
            return repeated(pa.array([read(message)], arrow_type), count)
        values: list[object] = []
        for message, count in rows.entries:
            values += [read(message)] * count
        return pa.array(values, arrow_type)

    return build


def _build_topics(rows: Rows) -> Array:
    names = {message.entry.topic for message, _ in rows.entries}
    if len(names) == 1:
        return text_repeated(names.pop(), len(rows.messages))
    return pa.array([message.entry.topic for message in rows.messages], pa.string())


def _build_keys(rows: Rows) -> Array:
    return rows.of_own_metadata(_keys_of)


def _keys_of(metadata: Sequence[OwnMetadata]) -> Array:
    return pa.array([key_bytes_of(each) for each in metadata], pa.binary())


def _build_properties(rows: Rows) -> Array:
    return rows.of_own_metadata(_properties_of)


def _properties_of(metadata: Sequence[OwnMetadata]) -> Array:
    pairs: list[list[tuple[str, str]]] = []
    for own in metadata:
        properties = own.properties
        # The last property of a name wins, as in `Message.properties`.
        pairs.append(
            list({each.key: each.value for each in properties}.items()) if properties else []
        )
    try:
        return pa.array(pairs, PROPERTIES)
    except pa.ArrowInvalid:  # some are bytes, since they are not UTF-8
        texts = [{text_of(key): text_of(value) for key, value in row}.items() for row in pairs]
        return pa.array([list(row) for row in texts], PROPERTIES)


def _build_event_times(rows: Rows) -> Array:
    return rows.of_own_metadata(_event_times_of)


def _event_times_of(metadata: Sequence[OwnMetadata]) -> Array:
    return pa.array([_micros(each.event_time or None) for each in metadata], TIMESTAMP)


def _micros(millis: int | None) -> int | None:
    """Microseconds of a time; null if it is out of range."""
    return None if millis is None or millis > _LAST_MILLIS else millis * _MICROS_PER_MILLI


def _build_message_ids(rows: Rows) -> Array:
    return rows.message_ids()


_varint = lru_cache(maxsize=1 << 14)(varint)  # of batches' indexes and sizes, which repeat


BATCH_INDEX_TAG: Final = b"\x20"
BATCH_SIZE_TAG: Final = b"\x30"
"""Protobuf tags of `batch_index` and `batch_size` of MessageIdData: the end of a serialized id."""


def _id_ends(batch_indexes: Iterable[int], batch_size: int) -> list[bytes]:
    """The ends of the serialized ids of a batch's messages."""
    size = BATCH_SIZE_TAG + _varint(batch_size)
    return [b"%b%b%b" % (BATCH_INDEX_TAG, _varint(index), size) for index in batch_indexes]


def _sequence_id(message: Message) -> int:
    return _long(message.sequence_id())


def _index(message: Message) -> int | None:
    index = message.index()
    return None if index is None else _long(index)


def _long(number: int) -> int:
    """An unsigned number as Java's signed long."""
    return to_signed(number & _UNSIGNED_BITS)


_UNSIGNED_BITS: Final = (1 << 64) - 1


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
            "TIMESTAMP_LTZ",
            TIMESTAMP,
            _of_entry(TIMESTAMP, lambda message: _micros(message.publish_timestamp())),
        ),
        MetadataColumn("__eventTime", "TIMESTAMP_LTZ", TIMESTAMP, _build_event_times),
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
        MetadataColumn("__sequenceId", "BIGINT", pa.int64(), _of_each(pa.int64(), _sequence_id)),
        MetadataColumn(
            "__producerName", "STRING", pa.string(), _of_entry(pa.string(), Message.producer_name)
        ),
        MetadataColumn(
            "__orderingKey", "BINARY", pa.binary(), _of_each(pa.binary(), _ordering_key)
        ),
        MetadataColumn(
            "__hasBinaryKey",
            "BOOLEAN",
            pa.bool_(),
            _of_each(pa.bool_(), Message.has_base64_encoded_key),
        ),
        MetadataColumn(
            "__schemaVersion",
            "BINARY",
            pa.binary(),
            _of_entry(pa.binary(), Message.schema_version),
        ),
        MetadataColumn("__index", "BIGINT", pa.int64(), _of_each(pa.int64(), _index)),
        MetadataColumn(
            "__brokerPublishTime",
            "TIMESTAMP_LTZ",
            TIMESTAMP,
            _of_entry(TIMESTAMP, lambda message: _micros(message.broker_publish_time())),
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
