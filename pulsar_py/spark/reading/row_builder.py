"""Builds record batches of messages, cut by bytes (pure).

A `RowBuilder` collects messages until their payloads reach `batch_bytes`, then makes one record
batch of them, with the columns of the read's schema in its order. Only requested columns are
computed. Memory is bounded by one batch and one entry, whatever the topic holds.

Whole batches of producers become columns separately from single messages, and both are then
concatenated.

Values are decoded a batch at a time. The option `undecodable` decides about a message that can't be
decoded: it fails the read, is dropped and counted, or becomes a row whose value is null and whose
bytes are in `__undecodable`. A message whose own metadata can't be parsed can't become a
row, so it fails the read unless such messages are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from google.protobuf.message import DecodeError

from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.received_batch import ReceivedBatch
from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.spark.shared.options import UndecodableMode
from pulsar_py.spark.values.arrays import Array
from pulsar_py.spark.values.batch_rows import WholeBatches, rows_of
from pulsar_py.spark.values.metadata_columns import COLUMNS, UNDECODABLE_COLUMN
from pulsar_py.spark.values.value_columns import ValueColumns


class RowBuilder:
    """Collects messages and gives out record batches. One for each piece that is read."""

    def __init__(
        self,
        names: Sequence[str],
        values: ValueColumns,
        *,
        batch_bytes: int,
        undecodable: UndecodableMode = UndecodableMode.FAIL,
    ) -> None:
        """Begin with no messages.

        Args:
            names: The columns of the result, of values and of metadata, in order.
            values: Makes the columns of values.
            batch_bytes: Payload bytes from which a batch is made.
            undecodable: Decides about messages that can't be decoded.
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
        # The next record batch: finished parts, then messages or batches of the part that grows.
        self._parts: list[Sequence[Message]] = []
        self._messages: list[Message] = []
        self._batches: list[ReceivedBatch] = []
        self._size_bytes = 0
        self.dropped_count = 0

    def add(self, messages: Sequence[Message]) -> Iterator[pa.RecordBatch]:
        """Add messages; gives the record batches that are full with them.

        Raises:
            SchemaSerializationError: A message can't be decoded, and `undecodable` is `fail`; the
                text names topic and message id.
        """
        # Hot path: batch read in `make bench-spark`.
        if isinstance(messages, ReceivedBatch):
            yield from self._add_whole(messages)
            return
        if self._batches:
            self._end_part()
        for message in messages:
            self._messages.append(message)
            self._size_bytes += message.size()
            if self._size_bytes >= self._batch_bytes:
                yield from self._cut()

    def _add_whole(self, batch: ReceivedBatch) -> Iterator[pa.RecordBatch]:
        size_bytes = batch.size()
        if self._is_full_for(size_bytes):
            yield from self._cut()
        if self._messages:
            self._end_part()
        self._batches.append(batch)
        self._size_bytes += size_bytes
        # Now, if the next one will not fit: then its memory is free when that is read.
        if self._size_bytes >= self._batch_bytes or self._is_full_for(size_bytes):
            yield from self._cut()

    def _is_full_for(self, size_bytes: int) -> bool:
        """Whether a batch of producers does not fit any more; it would cost a copy of both."""
        is_enough = self._size_bytes * 2 >= self._batch_bytes
        return is_enough and self._size_bytes + size_bytes > self._batch_bytes

    def _end_part(self) -> None:
        """End a part: the next messages are of the other kind, whole batches or single messages."""
        if self._messages:
            self._parts.append(self._messages)
            self._messages = []
        if self._batches:
            self._parts.append(WholeBatches(self._batches))
            self._batches = []

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The record batches of the remaining messages, if any; raises as `add`."""
        yield from self._cut()

    def _cut(self) -> Iterator[pa.RecordBatch]:
        """The collected messages, in record batches of about `batch_bytes`."""
        self._end_part()
        parts, size_bytes = self._parts, self._size_bytes
        self._parts, self._size_bytes = [], 0
        built = [each for part in parts if (each := self._build(part)) is not None]
        if not built:
            return
        whole = built[0]
        if len(built) > 1:
            (whole,) = pa.Table.from_batches(built).combine_chunks().to_batches()
        step = max(-(-whole.num_rows // max(size_bytes // self._batch_bytes, 1)), 1)
        for first in range(0, whole.num_rows, step):
            yield whole.slice(first, step)

    def _build(self, messages: Sequence[Message]) -> pa.RecordBatch | None:
        dropped_count = self.dropped_count
        try:
            return self._build_readable(messages)
        except DecodeError:
            errors = _metadata_errors(messages)
            if not errors:
                raise
            if self._undecodable is not UndecodableMode.DROP:
                # A row needs the metadata: there is no null for it, as there is for a value.
                raise _named(messages, errors) from None
            self.dropped_count = dropped_count + len(errors)
            readable = [each for row, each in enumerate(messages) if row not in errors]
            return self._build_readable(readable) if readable else None

    def _build_readable(self, messages: Sequence[Message]) -> pa.RecordBatch | None:
        arrays: dict[str, Array] = {}
        errors: Mapping[int, SchemaSerializationError] = {}
        if self._wanted_values:
            arrays, errors = self._values.build(messages, self._wanted_values)
        if errors and self._undecodable is UndecodableMode.FAIL:
            raise _named(messages, errors)
        if errors and self._undecodable is UndecodableMode.DROP:
            self.dropped_count += len(errors)
            kept = [row for row in range(len(messages)) if row not in errors]
            messages = [messages[row] for row in kept]
            arrays = {
                name: array.take(pa.array(kept, pa.int64())) for name, array in arrays.items()
            }
        return self._batch(messages, arrays, errors) if messages else None

    def _batch(
        self,
        messages: Sequence[Message],
        arrays: dict[str, Array],
        errors: Mapping[int, SchemaSerializationError],
    ) -> pa.RecordBatch:
        rows = rows_of(messages)
        for name in self._names:
            if name in COLUMNS:
                arrays[name] = COLUMNS[name].build(rows)
            elif name == UNDECODABLE_COLUMN:
                broken: list[bytes | None] = [None] * len(messages)
                for row in errors:
                    broken[row] = messages[row].data()
                arrays[name] = pa.array(broken, pa.binary())
        return pa.RecordBatch.from_arrays(
            [arrays[name] for name in self._names], schema=self.schema
        )


def _metadata_errors(messages: Sequence[Message]) -> dict[int, SchemaSerializationError]:
    """The errors of messages whose own metadata can't be parsed, by row."""
    errors: dict[int, SchemaSerializationError] = {}
    for row, message in enumerate(messages):
        try:
            _ = message.single
        except DecodeError as error:
            errors[row] = SchemaSerializationError(str(error))
    return errors


def _named(
    messages: Sequence[Message], errors: Mapping[int, SchemaSerializationError]
) -> SchemaSerializationError:
    """The first error, with topic and id of its message."""
    row = min(errors)
    message = messages[row]
    return SchemaSerializationError(
        f"{message.entry.topic}: message {message.message_id()}: {errors[row]}"
    )
