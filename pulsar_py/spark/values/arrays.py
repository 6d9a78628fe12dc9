"""Arrow arrays: their type's name, and functions that make columns of many values (pure)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeAlias

import pyarrow as pa

__all__ = ["Array", "binary_array", "is_text", "repeated", "text_repeated"]

Array: TypeAlias = Any
"""An Arrow array. Any: pyarrow has no type annotations."""


def is_text(kind: pa.DataType) -> bool:
    """Whether a column has strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def repeated(one: Array, count: int) -> Array:
    """The only value of a column, `count` times."""
    if one.null_count:
        return _nulls(one.type, count)
    if pa.types.is_map(one.type):  # `pa.repeat` takes 0.4 us a row for an empty one
        return one.take(_zeros(count)) if len(one[0]) else _empty_maps(one.type, count)
    return pa.repeat(one[0], count)


@lru_cache(maxsize=16)
def text_repeated(text: str, count: int) -> Array:
    """A column with the same text in each row, as consecutive batches of a topic have."""
    return pa.repeat(pa.scalar(text, pa.string()), count)


@lru_cache(maxsize=16)
def _nulls(kind: pa.DataType, count: int) -> Array:
    return pa.nulls(count, kind)


@lru_cache(maxsize=16)
def _empty_maps(kind: pa.MapType, count: int) -> Array:
    return pa.array([()], kind).take(_zeros(count))


@lru_cache(maxsize=16)
def _zeros(count: int) -> Array:
    return pa.repeat(pa.scalar(0, pa.int32()), count)


def binary_array(values: Sequence[bytes]) -> Array:
    """A binary column without nulls, by one join; `pyarrow.array` would copy value by value."""
    offsets = array("i", accumulate(map(len, values), initial=0))
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    )
