"""Finds the defaults that a definition can have: those that are always equal (pure).

A definition is text that the broker keeps, and another text is another version of the topic's
schema. A factory that gives ids, times or random numbers has no place in it: such a field has no
default for readers in Avro, and its class still fills it in where JSON lacks it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import date, time
from typing import Any
from uuid import UUID

__all__ = ["fixed_default"]


def fixed_default(factory: Callable[[], Any]) -> tuple[Any, bool]:
    """What a factory makes, and whether that is always the same.

    Times and ids count as changing, also if two that are made at once are equal.
    """
    value = factory()
    return value, not _is_of_a_moment(value) and bool(factory() == value)


def _is_of_a_moment(value: Any) -> bool:
    if isinstance(value, date | time | UUID):
        return True
    if isinstance(value, Mapping):
        return any(map(_is_of_a_moment, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(_is_of_a_moment, value))
    if dataclasses.is_dataclass(value) or hasattr(value, "model_fields_set"):
        return any(map(_is_of_a_moment, vars(value).values() if hasattr(value, "__dict__") else ()))
    return False
