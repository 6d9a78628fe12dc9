"""Messages into record batches, cut by bytes (pure).

A `RowBuilder` collects messages until their payloads reach `batch_bytes`, then makes one record
batch of them, with the columns of the read's schema in its order. Only columns that were asked for
are computed. Memory is bounded by one batch and one message, whatever the topic holds.

What can't be decoded follows `undecodable`: it fails the read, is left out and counted, or becomes
a row whose value is null and whose bytes stand in `__undecodable`.

Source: spec sections 5.1, 6 and 8.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from pulsar_py.client.message import Message
from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.spark.columns import COLUMNS, Rows
from pulsar_py.spark.options import UndecodableMode

Array: TypeAlias = Any
"""An Arrow array of the type its column says; pyarrow ships no types."""

UNDECODABLE_COLUMN = "__undecodable"


class ValueColumns(Protocol):
    """Makes the columns of values; `schemas` has one for each kind of schema."""

    @property
    def fields(self) -> Sequence[pa.Field]:
        """Name and Arrow type of each column."""

    def decode(self, message: Message) -> object:
        """The value of one message, None for a tombstone.

        Raises:
            SchemaSerializationError: Its bytes do not fit the schema.
        """

    def build(self, values: Sequence[object], wanted: frozenset[str]) -> dict[str, Array]:
        """The columns of decoded values, by name; only those wanted."""


class RowBuilder:
    """Collects messages, gives out record batches. One for each piece that is read."""

    def __init__(
        self,
        names: Sequence[str],
        values: ValueColumns,
        *,
        batch_bytes: int,
        undecodable: UndecodableMode = UndecodableMode.FAIL,
    ) -> None:
        """Nothing is collected yet.

        Args:
            names: The columns of the result, of values and of metadata, in order.
            values: Makes those that are no metadata column.
            batch_bytes: Payload bytes after which a batch is made.
            undecodable: What becomes of messages that can't be decoded.
        """
        self._names = tuple(names)
        self._values = values
        self._batch_bytes = batch_bytes
        self._undecodable = undecodable
        self._wanted_values = frozenset(names) - frozenset(COLUMNS) - {UNDECODABLE_COLUMN}
        types = {field.name: field.type for field in values.fields}
        types |= {name: column.arrow_type for name, column in COLUMNS.items()}
        types[UNDECODABLE_COLUMN] = pa.binary()
        self.schema = pa.schema([pa.field(name, types[name]) for name in self._names])
        self._messages: list[Message] = []
        self._decoded: list[object] = []
        # Bytes of the rows that could not be decoded, by row; only where they get a column.
        self._broken: dict[int, bytes] = {}
        self._size_bytes = 0
        self.dropped_count = 0

    def add(self, messages: Sequence[Message]) -> Iterator[pa.RecordBatch]:
        """Take messages in; gives the batches that are full with them.

        Raises:
            SchemaSerializationError: One can't be decoded, and the mode is to fail; the text names
                topic and message id.
        """
        # Hot path: batch read in `make bench-spark`.
        decode = self._values.decode if self._wanted_values else None
        for message in messages:
            value: object = None
            if decode is not None:
                try:
                    value = decode(message)
                except SchemaSerializationError as error:
                    if not self._keeps(message, error):
                        continue
            self._messages.append(message)
            self._decoded.append(value)
            self._size_bytes += message.size()
            if self._size_bytes >= self._batch_bytes:
                yield self._cut()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is left, if anything."""
        if self._messages:
            yield self._cut()

    def _keeps(self, message: Message, error: SchemaSerializationError) -> bool:
        if self._undecodable is UndecodableMode.FAIL:
            raise SchemaSerializationError(
                f"{message.entry.topic}: message {message.message_id()}: {error}"
            ) from error
        if self._undecodable is UndecodableMode.DROP:
            self.dropped_count += 1
            return False
        self._broken[len(self._messages)] = message.data()
        return True

    def _cut(self) -> pa.RecordBatch:
        rows = Rows(self._messages)
        arrays = self._values.build(self._decoded, self._wanted_values)
        for name in self._names:
            if name in COLUMNS:
                arrays[name] = COLUMNS[name].build(rows)
            elif name == UNDECODABLE_COLUMN:
                broken = [self._broken.get(row) for row in range(len(rows.messages))]
                arrays[name] = pa.array(broken, pa.binary())
        self._messages, self._decoded, self._broken, self._size_bytes = [], [], {}, 0
        return pa.RecordBatch.from_arrays(
            [arrays[name] for name in self._names], schema=self.schema
        )
