"""The messages of one batch as rows, without an object for each of them (pure).

Values are gathered from where they lie: one copy, made by Arrow. What all messages share is built
once; ids differ in their batch index alone, so their ends are kept for each size of a batch. Other
columns are built from messages, as for any rows.

Source: spec sections 6 and 8.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_py.client.message import Message, OwnMetadata
from pulsar_py.client.received_batch import ReceivedBatch
from pulsar_py.common.message_id import MessageId
from pulsar_py.spark.columns import Array, Rows, id_ends, repeated

_KEPT_SIZES = 16
"""Sizes of batches for which something is kept."""


class BatchRows(Rows):
    """The rows of one batch."""

    def __init__(self, batch: ReceivedBatch) -> None:
        super().__init__(batch)
        self._batch = batch

    @cached_property
    def entries(self) -> list[tuple[Message, int]]:
        """Its last message stands for what all of them share."""
        return [(self._batch.last, len(self._batch))]

    def of_own_metadata(self, build: Callable[[Sequence[OwnMetadata]], Array]) -> Array:
        """Built once where it is the same for all."""
        own = self._batch.own
        column = build(own)
        return column if len(own) == len(self._batch) else repeated(column, len(self._batch))

    def message_ids(self) -> Array:
        """Serialized ids."""
        entry = self._batch.entry
        shared = MessageId(*entry.key, partition_index=entry.partition_index).serialize()
        return pc.binary_join_element_wise(
            pa.scalar(shared, pa.binary()), _ends_of(entry.batch_size), pa.scalar(b"")
        )


def values_of(batch: ReceivedBatch) -> Array:
    """The payloads as a column."""
    # Hot path: batch read in `make bench-spark`.
    bounds = pa.py_buffer(batch.bounds)
    parts = pa.BinaryArray.from_buffers(
        pa.binary(), len(batch) * 2, [None, bounds, pa.py_buffer(batch.body)]
    )
    return parts.take(_odd(len(batch)))


@lru_cache(maxsize=_KEPT_SIZES)
def _odd(count: int) -> Array:
    """1, 3, 5 and so on."""
    return pa.array(range(1, count * 2, 2), pa.int32())


@lru_cache(maxsize=_KEPT_SIZES)
def _ends_of(batch_size: int) -> Array:
    return pa.array(id_ends(range(batch_size), batch_size), pa.binary())
