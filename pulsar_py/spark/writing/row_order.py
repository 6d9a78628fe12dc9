"""Sorts the rows of a task into an order that is the same at each attempt (pure).

After a shuffle a repeated task gets the same rows in another order. Sorted by everything that is
written of them, they are in the same order again; rows that are alike may stand for each other.
Sorting by columns first keeps an order that readers care about, and rows that are equal in these
columns are sorted by the rest.

All rows of a task are held in memory as Arrow batches while they are sorted. They are not
concatenated: Arrow would do that again for each slice that is taken, which takes the square of
their number, and fails where a text column has more than 2 GiB.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate
from struct import Struct
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.shared.options import INPUT_ORDER
from pulsar_py.spark.writing.outgoing_rows import OutgoingRows, RowEncoder

SLICE_ROWS: Final = 4096
SLICE_BYTES: Final = 64 << 20
"""Limits of a resulting batch: its rows, and (about) the bytes of its payloads."""
_DIGEST_BYTES: Final = 16
_DIGEST_COLUMN: Final = "\0digest"
_LENGTH: Final = Struct(">q")


def ordered(
    batches: Iterable[pa.RecordBatch], order: str | tuple[str, ...], encoder: RowEncoder
) -> Iterator[pa.RecordBatch]:
    """The rows in the order that `sequenceOrder` asks for.

    Args:
        batches: The record batches of one task, all of one schema.
        order: `input`, `content`, or the columns to sort by.
        encoder: Encodes what is written of a row.

    Raises:
        ConfigurationError: A column does not exist, or has a type without an order.
        SchemaSerializationError: A value can't be written.
    """
    if order == INPUT_ORDER:
        yield from batches
        return
    columns = () if isinstance(order, str) else order
    held = list(batches)
    if not held:
        return
    check_order(held[0].schema, columns)
    table = pa.Table.from_batches(held)
    digests: list[bytes] = []
    sizes: list[int] = []
    for batch in held:
        rows = encoder.encode(batch)
        digests += digests_of(rows)
        sizes += [len(payload or b"") for payload in rows.payloads]
    keys = table.select(list(columns)).append_column(
        _DIGEST_COLUMN, pa.array(digests, pa.binary(_DIGEST_BYTES))
    )
    indices = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    starts = list(accumulate((batch.num_rows for batch in held), initial=0))
    for numbers in _slices(indices.to_pylist(), sizes):
        yield from _taken(held, starts, numbers).to_batches()


def _slices(numbers: Iterable[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers in order, cut into slices; `sizes` has the payload bytes of each row."""
    found: list[int] = []
    size_bytes = 0
    for number in numbers:
        if found and (len(found) == SLICE_ROWS or size_bytes + sizes[number] > SLICE_BYTES):
            yield found
            found, size_bytes = [], 0
        found.append(number)
        size_bytes += sizes[number]
    if found:
        yield found


def _taken(
    held: Sequence[pa.RecordBatch], starts: Sequence[int], numbers: Sequence[int]
) -> pa.Table:
    """The rows with these numbers as one chunk of a table; `starts` has each batch's first row."""
    # The places of rows in the result, by their batch.
    places: dict[int, list[int]] = {}
    for place, number in enumerate(numbers):
        places.setdefault(bisect_right(starts, number) - 1, []).append(place)
    parts = [
        held[index].take(pa.array([numbers[each] - starts[index] for each in own], pa.int64()))
        for index, own in places.items()
    ]
    order = [0] * len(numbers)
    for row, place in enumerate(place for own in places.values() for place in own):
        order[place] = row
    return pa.Table.from_batches(parts).take(pa.array(order, pa.int64())).combine_chunks()


def check_order(schema: pa.Schema, columns: tuple[str, ...]) -> None:
    """Refuse columns that rows can't be sorted by.

    Raises:
        ConfigurationError: The text names the column.
    """
    for name in columns:
        if schema.names.count(name) != 1:
            raise ConfigurationError(
                f"sequenceOrder: column {name!r} has to be once among {', '.join(schema.names)}"
            )
        if pa.types.is_nested(kind := schema.field(name).type):
            raise ConfigurationError(
                f"sequenceOrder: column {name!r}: {kind} has no order; name a column of single"
                " values"
            )


def digests_of(rows: OutgoingRows) -> list[bytes]:
    """A hash of 16 bytes of all that is written of a row, for each row."""
    count = len(rows)
    columns = [
        rows.payloads,
        *(
            column if column is not None else [None] * count
            for column in (
                rows.keys,
                rows.ordering_keys,
                rows.event_times_millis,
                rows.topics,
                rows.partitions,
                rows.deliver_at_millis,
                rows.properties,
            )
        ),
    ]
    return [_digest(row) for row in zip(*columns, strict=True)]


def _digest(row: tuple[Any, ...]) -> bytes:  # Any: by column
    state = blake2b(digest_size=_DIGEST_BYTES)
    for value in row:
        if value is None:
            state.update(_LENGTH.pack(-1))
            continue
        is_bytes = isinstance(value, bytes)  # keys may be either, which are two messages
        data = value if is_bytes else _text(value).encode()
        state.update(_LENGTH.pack(len(data) * 2 + is_bytes))
        state.update(data)
    return state.digest()


def _text(value: object) -> str:
    """The same text for the same value, whatever the order of its properties."""
    return repr(sorted(value.items())) if isinstance(value, Mapping) else str(value)
