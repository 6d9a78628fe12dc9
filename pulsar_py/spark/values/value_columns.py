"""Makes the columns of values from messages, by the schema of the topic (pure).

    no schema, BYTES, PROTOBUF, valueMode=raw   `value`, binary
    primitive                                   `value` of that type
    AVRO, JSON, PROTOBUF_NATIVE                 a column for each field of the record
    KEY_VALUE                                   `key` and `value`; records are structs there, so
                                                that `select("key.*", "value.*")` gives the fields

A null value makes all its columns null; a separate key stays. Payloads are decoded by the version
of the schema that the message names: `Writers` knows the definitions, and messages of one
definition are decoded together, wherever they stand in the batch.

These objects go to workers: they are pickled as the schema that they were made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from pulsar_py.client.messages.message import Message
from pulsar_py.common.errors import ConfigurationError, SchemaSerializationError
from pulsar_py.schema import BytesSchema, KeyValueSchema, SchemaInfo, SchemaType
from pulsar_py.schema.key_value_schema import key_value_encoding_of, split_key_value_info
from pulsar_py.spark.values.arrays import Array
from pulsar_py.spark.values.batch_rows import WholeBatches, rows_of
from pulsar_py.spark.values.pair_columns import COMMENT, KEY, VALUE, pair_comment
from pulsar_py.spark.values.payload_codecs import (
    RAW_BYTES,
    ColumnCodec,
    PayloadCodec,
    codec_of,
    decode_around,
)

__all__ = [
    "BuiltValues",
    "KeyValueColumns",
    "RawValues",
    "SchemaColumns",
    "ValueColumns",
    "Writers",
    "columns_of_schema",
]

Payloads: TypeAlias = Sequence[bytes | None]
Errors: TypeAlias = Mapping[int, SchemaSerializationError]


class BuiltValues(NamedTuple):
    """The value columns of some messages."""

    arrays: dict[str, Array]
    """The columns by name, with a row for each message; null where it can't be decoded."""
    errors: Mapping[int, SchemaSerializationError]
    """The errors of rows that can't be decoded, by row."""


class ValueColumns(Protocol):
    """Makes the columns of values; `topic_schemas` finds the one for a topic."""

    @property
    def fields(self) -> Sequence[pa.Field]:
        """Name and Arrow type of each column."""

    def build(self, messages: Sequence[Message], wanted: frozenset[str]) -> BuiltValues:
        """The wanted columns of messages. Tombstones are null."""


class Writers(Protocol):
    """The schemas that messages were written with."""

    def writer(self, topic: str, version: bytes) -> SchemaInfo | None:
        """The definition of a version of a topic's schema; None where it was deleted.

        Raises:
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """


def columns_of_schema(info: SchemaInfo, writers: Writers) -> ValueColumns:
    """The columns for the values of a schema.

    Raises:
        ConfigurationError: Values of the schema can't be columns.
    """
    if info.type is SchemaType.KEY_VALUE:
        return KeyValueColumns(info, writers)
    return SchemaColumns(info, writers)


def payloads_of(messages: Sequence[Message]) -> list[bytes | None]:
    """The payload of each message, None for a null value."""
    if isinstance(messages, WholeBatches):
        return [*messages.payloads()]
    # Metadata is parsed for empty payloads only: others are not null.
    return [
        data if (data := message.data()) or not message.has_null_value() else None
        for message in messages
    ]


class RawValues:
    """The payload as it is, in one column `value`."""

    @property
    def fields(self) -> Sequence[pa.Field]:
        """Name and Arrow type of each column."""
        return (pa.field(VALUE, pa.binary()),)

    def build(self, messages: Sequence[Message], wanted: frozenset[str]) -> BuiltValues:
        """The column, where it is wanted; null for a tombstone."""
        # Hot path: batch read in `make bench-spark`.
        if isinstance(messages, WholeBatches):
            return BuiltValues(dict.fromkeys(wanted, messages.values()), {})
        column = RAW_BYTES.decode(payloads_of(messages), None)
        return BuiltValues(dict.fromkeys(wanted, column), {})


class SchemaColumns:
    """Value columns of any schema but KEY_VALUE."""

    def __init__(self, info: SchemaInfo, writers: Writers) -> None:
        """Raises ConfigurationError where values can't be columns."""
        self._info = info
        self._writers = writers
        self._codec = codec_of(info)
        self._column_codec = self._codec if isinstance(self._codec, ColumnCodec) else None
        kind = self._codec.arrow_type
        self._is_record = pa.types.is_struct(kind)
        self.fields: Sequence[pa.Field] = (
            tuple(kind) if self._is_record else (pa.field(VALUE, kind),)
        )

    def __reduce__(self) -> tuple[Any, ...]:  # Any: as pickle has it
        return type(self), (self._info, self._writers)

    def build(self, messages: Sequence[Message], wanted: frozenset[str]) -> BuiltValues:
        """See `ValueColumns`."""
        # Hot path: batch read in `make bench-spark`, with a schema.
        if isinstance(messages, WholeBatches) and self._column_codec is not None:
            with suppress(SchemaSerializationError):  # the bad payloads are found below
                column = self._column_codec.decode_column(messages.values())
                return BuiltValues(dict.fromkeys(wanted, column), {})
        groups = _by_writer(messages, self._info, self._writers, self._codec.reads_versions)
        array, errors = _decode_groups(self._codec, payloads_of(messages), groups)
        if not self._is_record:
            return BuiltValues(dict.fromkeys(wanted, array), errors)
        columns = zip(self.fields, array.flatten(), strict=True)
        return BuiltValues(
            {field.name: column for field, column in columns if field.name in wanted}, errors
        )


class KeyValueColumns:
    """The columns `key` and `value` of KEY_VALUE pairs."""

    def __init__(self, info: SchemaInfo, writers: Writers) -> None:
        """Raises ConfigurationError where keys or values can't be columns."""
        self._info = info
        self._writers = writers
        try:
            key, value = split_key_value_info(info)
            encoding = key_value_encoding_of(info)
        except SchemaSerializationError as error:
            raise ConfigurationError(f"the topic's schema: {error}") from error
        self._codecs: tuple[PayloadCodec, PayloadCodec] = (codec_of(key), codec_of(value))
        self._reads_versions = any(each.reads_versions for each in self._codecs)
        # Splits pairs into the bytes of key and value.
        self._split = KeyValueSchema(BytesSchema(), BytesSchema(), encoding).decoder_for(None)
        comment = {COMMENT: pair_comment(encoding)}
        self.fields: Sequence[pa.Field] = (
            pa.field(KEY, self._codecs[0].arrow_type, metadata=comment),
            pa.field(VALUE, self._codecs[1].arrow_type),
        )

    def __reduce__(self) -> tuple[Any, ...]:  # Any: as pickle has it
        return type(self), (self._info, self._writers)

    def build(self, messages: Sequence[Message], wanted: frozenset[str]) -> BuiltValues:
        """See `ValueColumns`."""
        keys, values, errors = self._split_all(messages)
        groups = _by_writer(messages, self._info, self._writers, self._reads_versions)
        arrays = {}
        for index, (name, payloads) in enumerate(((KEY, keys), (VALUE, values))):
            parts = [(_part_of(writer, index), rows) for writer, rows in groups]
            array, broken = _decode_groups(self._codecs[index], payloads, parts)
            arrays[name] = array
            errors |= broken
        if errors:
            rows = [None if row in errors else row for row in range(len(messages))]
            sound = pa.array(rows, pa.int64())
            arrays = {name: array.take(sound) for name, array in arrays.items()}
        return BuiltValues({name: arrays[name] for name in wanted}, errors)

    def _split_all(
        self, messages: Sequence[Message]
    ) -> tuple[list[bytes | None], list[bytes | None], dict[int, SchemaSerializationError]]:
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        errors: dict[int, SchemaSerializationError] = {}
        for row, (message, data) in enumerate(zip(messages, payloads_of(messages), strict=True)):
            key = value = None
            try:
                pair = self._split(data, message.key_bytes())
            except (SchemaSerializationError, ValueError) as error:
                errors[row] = SchemaSerializationError(str(error))
            else:
                if pair is not None:
                    key, value = pair.key, pair.value
            keys.append(key)
            values.append(value)
        return keys, values, errors


# --- versions ------------------------------------------------------------------------------------

Groups: TypeAlias = Sequence[tuple[SchemaInfo | None, Sequence[int]]]
"""The rows by the definition that they were written with; None: the topic's own."""


def _by_writer(
    messages: Sequence[Message],
    info: SchemaInfo,
    writers: Writers,
    reads_versions: bool,  # noqa: FBT001 - of the codec
) -> Groups:
    """The rows by the definition that they were written with."""
    if not reads_versions:
        return [(None, range(len(messages)))]
    groups: dict[bytes, tuple[SchemaInfo | None, list[int]]] = {}
    known: tuple[str, bytes | None] | None = None
    rows: list[int] = []
    first = 0
    for message, count in rows_of(messages).entries:
        topic_and_version = (message.entry.topic, message.schema_version())
        if known != topic_and_version:
            known = topic_and_version
            writer = _writer_of(message, info, writers)
            name = b"" if writer is None else b"%d %b" % (writer.type, writer.data)
            rows = groups.setdefault(name, (writer, []))[1]
        rows += range(first, first + count)
        first += count
    return list(groups.values())


def _writer_of(message: Message, info: SchemaInfo, writers: Writers) -> SchemaInfo | None:
    """The definition that a message was written with; None: the topic's own."""
    version = message.schema_version()
    writer = writers.writer(message.entry.topic, version) if version else None
    if writer is not None and (writer.type, writer.data) == (info.type, info.data):
        return None
    return writer


def _decode_groups(
    codec: PayloadCodec, payloads: Payloads, groups: Groups
) -> tuple[Array, dict[int, SchemaSerializationError]]:
    """All values in the order of their rows."""
    if len(groups) == 1:
        return decode_around(codec, payloads, groups[0][0])
    arrays: list[Array] = []
    errors: dict[int, SchemaSerializationError] = {}
    order: list[int] = []
    for writer, rows in groups:
        array, broken = decode_around(codec, [payloads[row] for row in rows], writer)
        arrays.append(array)
        errors |= {rows[index]: error for index, error in broken.items()}
        order += rows
    places = [0] * len(order)
    for place, row in enumerate(order):
        places[row] = place
    return pa.concat_arrays(arrays).take(pa.array(places, pa.int64())), errors


def _part_of(writer: SchemaInfo | None, index: int) -> SchemaInfo | None:
    """The definition of key or value; None, the topic's own, where the version is not KEY_VALUE."""
    if writer is None or writer.type is not SchemaType.KEY_VALUE:
        return None
    return split_key_value_info(writer)[index]
