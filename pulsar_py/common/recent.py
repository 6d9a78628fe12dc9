"""Adds to maps that keep only a number of the newest items (pure)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

__all__ = ["remember"]

K = TypeVar("K")
V = TypeVar("V")


def remember(kept: OrderedDict[K, V], key: K, value: V, limit_count: int) -> None:
    """Take in a value as the newest; beyond the limit the oldest goes."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > limit_count:
        kept.popitem(last=False)
