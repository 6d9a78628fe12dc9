"""Casts times to coarser units, rounding down before 1970 as after (pure).

Arrow truncates towards 1970: 23:59:59.999999 of the day before becomes midnight. `floored` casts as
Arrow does, and takes one unit off where the result is later than the value. Most columns have no
times before 1970, and pay for one look at their least value only.

Source: `Instant.toEpochMilli` of Java, which floors too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_py.spark.values.arrays import Array

__all__ = ["floored", "millis_of", "with_numbers"]

_UNITS_PER_SECOND: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


def floored(array: Array, kind: pa.DataType) -> Array:
    """The array as another type, times floored to its units.

    Raises:
        ValueError: A value does not fit the type; Arrow's errors are subclasses.
    """
    cast = _cast(array, kind)
    if not any(_is_early(leaf, leaf_kind) for leaf, leaf_kind in _leaves(array, kind)):
        return cast
    if not pa.types.is_nested(kind):
        is_later = pc.greater(_cast(cast, array.type), array)
        numbers = pc.subtract(cast.cast(pa.int64()), is_later.cast(pa.int64()))
        return numbers.cast(kind)
    values = array.cast(with_numbers(array.type)).to_pylist(maps_as_pydicts="strict")
    values = [_floored_value(value, array.type, kind) for value in values]
    return _cast(pa.array(values, array.type), kind)


def with_numbers(kind: pa.DataType) -> pa.DataType:
    """The type with days and times replaced by integers of their units."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, with_numbers(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(with_numbers(kind.value_type))
    return pa.map_(kind.key_type, with_numbers(kind.item_type)) if pa.types.is_map(kind) else kind


def millis_of(array: Array) -> Array:
    """Milliseconds since 1970, as integers, of timestamps, dates or such integers."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        return floored(array, pa.timestamp("ms", kind.tz)).cast(pa.int64())
    if pa.types.is_date32(kind):
        return array.cast(pa.date64()).cast(pa.int64())
    return array


def _cast(array: Array, kind: pa.DataType) -> Array:
    return array.cast(options=pc.CastOptions(target_type=kind, allow_time_truncate=True))


def _leaves(array: Array, kind: pa.DataType) -> Iterator[tuple[Array, pa.DataType]]:
    """The arrays of single values inside a nested array, each with its new type."""
    if pa.types.is_struct(kind):
        for child, field in zip(array.flatten(), kind, strict=True):
            yield from _leaves(child, field.type)
    elif pa.types.is_map(kind):
        yield from _leaves(array.items, kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(array.flatten(), kind.value_type)
    else:
        yield array, kind


def _is_early(array: Array, kind: pa.DataType) -> bool:
    """Whether a column has times before 1970 that the cast would truncate."""
    if _lost(array.type, kind) == 1:
        return False
    least = pc.min(array.cast(pa.int64())).as_py()
    return least is not None and least < 0


def _lost(kind: pa.DataType, other: pa.DataType) -> int:
    """How many units of `kind` make one of `other`, if it is a coarser type of times; else 1."""
    if not pa.types.is_timestamp(kind) or not pa.types.is_timestamp(other):
        return 1
    return max(1, _UNITS_PER_SECOND[kind.unit] // _UNITS_PER_SECOND[other.unit])


def _floored_value(value: Any, kind: pa.DataType, other: pa.DataType) -> Any:
    """A value, its times as numbers, rounded down to the other unit and kept in their own."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        fields = zip(kind, other, strict=True)
        return {
            field.name: _floored_value(value[field.name], field.type, wanted.type)
            for field, wanted in fields
        }
    if pa.types.is_map(kind):
        return {
            key: _floored_value(item, kind.item_type, other.item_type)
            for key, item in value.items()
        }
    if pa.types.is_list(kind):
        return [_floored_value(item, kind.value_type, other.value_type) for item in value]
    lost = _lost(kind, other)
    return value if lost == 1 else value - value % lost
