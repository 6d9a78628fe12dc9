"""Turns record batches into messages: the role of each column, and the values of each row (pure).

Columns named as metadata become the message's key, ordering key, event time, properties, topic,
partition and delivery time. Columns that only a broker can set (`__messageId`, `__publishTime`, …)
are not sent, so that what was read can be written; all other columns are the value, which
`value_encoder` encodes. `__isTombstone`, where it is there, says which rows have no value, and
`__hasBinaryKey` which keys are bytes; without it a string column makes keys of text, a binary
column keys of bytes.

Arrow gives timestamps in the session's time zone: the instant is the same, and only the instant is
sent. A timestamp without a time zone is taken as UTC.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_py.common.errors import ConfigurationError, SchemaSerializationError
from pulsar_py.spark.shared.options import EXTRA_COLUMNS, METADATA_COLUMNS, WriteOptions
from pulsar_py.spark.values.arrays import is_text
from pulsar_py.spark.values.floored_times import millis_of
from pulsar_py.spark.values.primitive_encoder import ValueEncoder

logger = logging.getLogger(__name__)

TOPIC_COLUMN: Final = "__topic"
EVENT_TIME_COLUMN: Final = "__eventTime"
PROPERTIES_COLUMN: Final = "__messageProperties"
TOMBSTONE_COLUMN: Final = "__isTombstone"
BINARY_KEY_COLUMN: Final = "__hasBinaryKey"

UTC_MICROS: Final = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkColumns:
    """The column of each role; None: no column has it."""

    values: tuple[str, ...]
    key: str | None
    ordering_key: str | None
    event_time: str | None
    properties: str | None
    topic: str | None
    partition: str | None
    deliver_at: str | None
    # Where it is true, the row has no value, whatever its value columns hold.
    tombstone: str | None = None
    # Where it is true, the key is bytes, whatever type the column of keys has.
    binary_key: str | None = None

    @classmethod
    def of(cls, schema: pa.Schema, options: WriteOptions) -> SinkColumns:
        """Assign the columns of the rows to roles.

        Raises:
            ConfigurationError: A column has a type that its role can't have, or there is no value
                column, or no topic.
        """
        names = {field.name.lower(): field.name for field in schema}
        roles = {
            role: names.get(column.lower())
            for role, column in {
                "key": options.key_column,
                "ordering_key": options.ordering_key_column,
                "event_time": EVENT_TIME_COLUMN,
                "properties": PROPERTIES_COLUMN,
                "topic": TOPIC_COLUMN,
                "partition": options.partition_column,
                "deliver_at": options.deliver_at_column,
                "tombstone": TOMBSTONE_COLUMN,
                "binary_key": BINARY_KEY_COLUMN,
            }.items()
        }
        for role, name in roles.items():
            if name is not None and not _TYPES[role](schema.field(name).type):
                raise ConfigurationError(
                    f"column {name}: {schema.field(name).type} can't be the"
                    f" {role.replace('_', ' ')}: expected {_EXPECTED[_TYPES[role]]}"
                )
        if roles["topic"] is None and options.topic is None:
            raise ConfigurationError(
                f"topic is missing, and rows have no column {TOPIC_COLUMN}: give the option or the"
                " column"
            )
        if options.topic is not None:
            roles["topic"] = None
        known = {name.lower() for name in (*METADATA_COLUMNS, *EXTRA_COLUMNS)}
        taken = {name for name in roles.values() if name is not None}
        rest = [field.name for field in schema if field.name not in taken]
        values = tuple(name for name in rest if name.lower() not in known)
        if not values:
            raise ConfigurationError(
                f"no column is the value: {', '.join(schema.names)} are all metadata; add a column"
                " with the value"
            )
        # No warning for the default columns: rows that were read from any topic have them.
        usual = {name.lower() for name in METADATA_COLUMNS}
        if ignored := [name for name in rest if name.lower() in known - usual]:
            logger.warning("not sent, because only a broker sets them: %s", ", ".join(ignored))
        return cls(values=values, **roles)

    @property
    def has_plain_rows(self) -> bool:
        """Whether rows have a value and nothing else."""
        return not any(
            (
                self.key,
                self.ordering_key,
                self.event_time,
                self.properties,
                self.topic,
                self.partition,
                self.deliver_at,
                self.tombstone,
            )
        )


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_int64(kind))


def _is_text_map(kind: pa.DataType) -> bool:
    return bool(pa.types.is_map(kind) and is_text(kind.key_type) and is_text(kind.item_type))


_TYPES: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    "key": _is_text_or_bytes,
    "ordering_key": _is_text_or_bytes,
    "event_time": _is_time,
    "properties": _is_text_map,
    "topic": is_text,
    "partition": pa.types.is_integer,
    "deliver_at": _is_time,
    "tombstone": pa.types.is_boolean,
    "binary_key": pa.types.is_boolean,
}
_EXPECTED: Final[Mapping[Callable[[pa.DataType], bool], str]] = {
    _is_text_or_bytes: "a string or binary",
    _is_time: "a timestamp, or milliseconds since 1970 as a bigint",
    _is_text_map: "a map from strings to strings",
    is_text: "a string",
    pa.types.is_integer: "an integer",
    pa.types.is_boolean: "a boolean",
}
"""The types of columns that each test accepts, for errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRows:
    """The messages of one record batch, column by column; None: no row has it."""

    payloads: Sequence[bytes | None]
    keys: Sequence[str | bytes | None] | None = None
    ordering_keys: Sequence[str | bytes | None] | None = None
    # Milliseconds since 1970, like `deliver_at_millis`.
    event_times_millis: Sequence[int | None] | None = None
    properties: Sequence[Mapping[str, str] | None] | None = None
    topics: Sequence[str | None] | None = None
    partitions: Sequence[int | None] | None = None
    deliver_at_millis: Sequence[int | None] | None = None

    def __len__(self) -> int:
        return len(self.payloads)


class RowEncoder:
    """Encodes record batches as messages. One for each task."""

    def __init__(self, columns: SinkColumns, values: ValueEncoder) -> None:
        """`columns` has the column of each role, `values` encodes the value columns."""
        self._columns = columns
        self._values = values

    def encode(self, batch: pa.RecordBatch) -> OutgoingRows:
        """The messages of a batch.

        Raises:
            SchemaSerializationError: A value does not fit.
        """
        # Hot path: batch write in `make bench-spark`.
        columns = self._columns
        batch = in_utc(batch)
        values = batch.select(list(columns.values))
        payloads = self._payloads(values, _listed(batch, columns.tombstone))
        assert len(payloads) == batch.num_rows, f"{len(payloads)} of {batch.num_rows} rows"
        keys = self._values.encode_keys(values)
        return OutgoingRows(
            payloads=payloads,
            keys=_keys(batch, columns) if keys is None else keys,
            ordering_keys=_listed(batch, columns.ordering_key),
            event_times_millis=_millis(batch, columns.event_time),
            properties=_maps(batch, columns.properties),
            topics=_listed(batch, columns.topic),
            partitions=_listed(batch, columns.partition),
            deliver_at_millis=_millis(batch, columns.deliver_at),
        )

    def _payloads(
        self, values: pa.RecordBatch, tombstones: Sequence[bool | None] | None
    ) -> Sequence[bytes | None]:
        if tombstones is None or not any(tombstones):
            return self._values.encode(values)
        # The value columns of a tombstone are null, which the definition need not allow: encode
        # the other rows only.
        sound = pa.array([not each for each in tombstones], pa.bool_())
        payloads = iter(self._values.encode(values.filter(sound)))
        return [None if each else next(payloads) for each in tombstones]


def in_utc(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its timestamps in microseconds of UTC; the instants stay the same."""
    arrays = list(batch.columns)
    for index, array in enumerate(arrays):
        kind = array.type
        if pa.types.is_timestamp(kind) and kind.tz is not None and kind != UTC_MICROS:
            arrays[index] = array.cast(UTC_MICROS)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _listed(batch: pa.RecordBatch, name: str | None) -> list[Any] | None:  # Any: by column
    return None if name is None else batch.column(name).to_pylist()


def _keys(batch: pa.RecordBatch, columns: SinkColumns) -> list[str | bytes | None] | None:
    """The keys, as texts or bytes.

    Raises:
        SchemaSerializationError: A key that should be text is not UTF-8.
    """
    keys = _listed(batch, columns.key)
    if keys is None or columns.binary_key is None:
        return keys
    is_binary = batch.column(columns.binary_key).to_pylist()
    return [
        None if key is None else _binary(key) if bytes_wanted else _textual(key)
        for key, bytes_wanted in zip(keys, is_binary, strict=True)
    ]


def _binary(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key


def _textual(key: str | bytes) -> str:
    if isinstance(key, str):
        return key
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise SchemaSerializationError(
            f"key {key[:100]!r} is not UTF-8, and its {BINARY_KEY_COLUMN} says that it is text; set"
            " it to true for keys of bytes"
        ) from None


def _millis(batch: pa.RecordBatch, name: str | None) -> list[int | None] | None:
    """Milliseconds of a column of times or of milliseconds.

    Raises:
        SchemaSerializationError: A time is before 1970: times on the wire are unsigned.
    """
    if name is None:
        return None
    millis = millis_of(batch.column(name))
    times: list[int | None] = millis.to_pylist()
    least = pc.min(millis).as_py()
    if least is not None and least < 0:
        row = next(index for index, each in enumerate(times) if each is not None and each < 0)
        value = batch.column(name)[row].as_py()
        raise SchemaSerializationError(
            f"column {name}, row {row} of {len(times)}: {value} is before 1970, and times of"
            " messages are not"
        )
    return times


def _maps(batch: pa.RecordBatch, name: str | None) -> list[Mapping[str, str] | None] | None:
    """The properties of each row; entries with a null value are left out."""
    if name is None:
        return None
    return [
        {key: text for key, text in pairs if text is not None} if pairs else None
        for pairs in batch.column(name).to_pylist()
    ]
