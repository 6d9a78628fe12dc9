"""Keeps the newest items of an ordered map, up to a limit (pure)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

__all__ = ["remember"]

K = TypeVar("K")
V = TypeVar("V")


def remember(kept: OrderedDict[K, V], key: K, value: V, limit_count: int) -> None:
    """Put `value` under `key` as the newest item; the oldest goes if there are too many."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > limit_count:
        kept.popitem(last=False)
