"""Columns of whole producer batches, without an object for each message (pure).

Payloads are gathered from where they lie: Arrow makes one copy, and a second one where several
batches become one column. Metadata that all messages of a batch share is built once. Message ids of
a batch differ in their batch index alone, so one join makes them all. Other columns are built from
messages, as for any rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from typing import overload

import pyarrow as pa

from pulsar_py.client.messages.message import Message, OwnMetadata
from pulsar_py.client.receiving.received_batch import BARE_METADATA, ReceivedBatch
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.varint import varint
from pulsar_py.spark.values.arrays import Array, repeated
from pulsar_py.spark.values.metadata_columns import BATCH_INDEX_TAG, BATCH_SIZE_TAG, Rows

_KEPT_SIZES = 1000
"""How many sizes of batches are cached, a few bytes a message each."""


class WholeBatches(Sequence[Message]):
    """Consecutive batches as one sequence of messages, which are made on demand."""

    def __init__(self, batches: Sequence[ReceivedBatch]) -> None:
        self.batches = batches
        self._count = sum(map(len, batches))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        return self._messages[index]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    @cached_property
    def _messages(self) -> list[Message]:
        return [*chain.from_iterable(self.batches)]

    def payloads(self) -> list[bytes]:
        """The payload of each message."""
        return [*chain.from_iterable(batch.payloads() for batch in self.batches)]

    def values(self) -> Array:
        """The payloads as a column."""
        return _joined([_values_of(batch) for batch in self.batches])


class BatchRows(Rows):
    """The rows of whole batches."""

    def __init__(self, messages: WholeBatches) -> None:
        super().__init__(messages)
        self._batches = messages.batches

    @cached_property
    def entries(self) -> list[tuple[Message, int]]:
        """The last message of each batch, for the metadata that it shares, and the batch's size."""
        return [(batch.last, len(batch)) for batch in self._batches]

    def of_own_metadata(self, build: Callable[[Sequence[OwnMetadata]], Array]) -> Array:
        """The column, built once for each batch whose messages share their metadata."""
        if self._has_bare_metadata:
            return _of_bare(build, len(self.messages))
        if all(len(batch.own) == 1 for batch in self._batches):
            column = build([batch.own[0] for batch in self._batches])
            if len(column) == 1 or column.null_count == len(column):
                return repeated(column[:1], len(self.messages))
            return column.take(pa.array(self._batch_of_each, pa.int32()))
        own: list[OwnMetadata] = []
        for batch in self._batches:
            own += batch.own if len(batch.own) > 1 else [*batch.own] * len(batch)
        return build(own)

    @cached_property
    def _has_bare_metadata(self) -> bool:
        """Whether no message has more of its own than a size and a sequence id."""
        return all(batch.is_bare for batch in self._batches)

    @property
    def _batch_of_each(self) -> list[int]:
        numbers: list[int] = []
        for number, batch in enumerate(self._batches):
            numbers += [number] * len(batch)
        return numbers

    def message_ids(self) -> Array:
        """Serialized ids."""
        return _joined([_ids_of(batch) for batch in self._batches])


def rows_of(messages: Sequence[Message]) -> Rows:
    """The rows of messages, single ones or whole batches."""
    return BatchRows(messages) if isinstance(messages, WholeBatches) else Rows(messages)


@lru_cache(maxsize=32)
def _of_bare(build: Callable[[Sequence[OwnMetadata]], Array], count: int) -> Array:
    """A column of messages without metadata of their own; consecutive batches share it."""
    # Hot path: batch read in `make bench-spark`.
    return repeated(build([BARE_METADATA]), count)


def _joined(columns: list[Array]) -> Array:
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def _values_of(batch: ReceivedBatch) -> Array:
    # Hot path: batch read in `make bench-spark`.
    bounds = pa.py_buffer(batch.bounds)
    parts = pa.BinaryArray.from_buffers(
        pa.binary(), len(batch) * 2, [None, bounds, pa.py_buffer(batch.body)]
    )
    return parts.take(_odd(len(batch)))


def _ids_of(batch: ReceivedBatch) -> Array:
    entry, size = batch.entry, batch.entry.batch_size
    shared = MessageId(*entry.key, partition_index=entry.partition_index).serialize()
    end = BATCH_SIZE_TAG + varint(size)
    data = b"".join((shared, (end + shared).join(_batch_indexes(size)), end))
    offsets = _offsets_of_ids(len(shared) + len(end), size)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), size, buffers)


@lru_cache(maxsize=_KEPT_SIZES)
def _odd(count: int) -> Array:
    """The odd numbers: every second slice of a body is a payload, those between are metadata."""
    return pa.array(range(1, count * 2, 2), pa.int32())


@lru_cache(maxsize=_KEPT_SIZES)
def _offsets_of_ids(others_size: int, batch_size: int) -> array[int]:
    """The offsets of a batch's serialized ids, whose other fields take `others_size` bytes."""
    sizes = [others_size + len(index) for index in _batch_indexes(batch_size)]
    return array("i", accumulate(sizes, initial=0))


def _batch_indexes(batch_size: int) -> list[bytes]:
    """The field `batch_index` of each message of a batch, serialized."""
    return _first_batch_indexes(1 << (batch_size - 1).bit_length())[:batch_size]


@lru_cache(maxsize=32)  # by powers of two, so that few sizes are kept
def _first_batch_indexes(count: int) -> list[bytes]:
    return [BATCH_INDEX_TAG + varint(index) for index in range(count)]
