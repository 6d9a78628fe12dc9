"""Combines functions that convert single values into functions for lists, maps and records (pure).

None stands for the identity, and a combination of None alone is None again: a value that needs no
conversion costs no call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

__all__ = ["MISFITS", "Convert", "both", "each", "each_item", "in_record", "null_or"]

Convert = Callable[[Any], Any]
"""Converts a value. Raises one of `MISFITS` where the value does not fit."""

MISFITS: Final = (ValueError, TypeError, ArithmeticError, KeyError)
"""The errors of conversions where a value does not fit; Arrow's errors are subclasses of them."""


def both(first: Convert | None, second: Convert | None) -> Convert | None:
    """Convert with the first, then with the second."""
    if first is None or second is None:
        return first or second
    return lambda value: second(first(value))


def null_or(convert: Convert | None) -> Convert | None:
    """Convert all values but null, which stays null."""
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def each(convert: Convert | None) -> Convert | None:
    """Convert each item of a list."""
    if convert is None:
        return None
    return lambda values: [convert(value) for value in values]


def each_item(convert: Convert | None) -> Convert | None:
    """Convert each value of a dict."""
    if convert is None:
        return None
    return lambda values: {key: convert(value) for key, value in values.items()}


def in_record(fields: Sequence[tuple[str, Convert]], record: str = "record") -> Convert | None:
    """Convert these fields of a copy of a dict. Errors name the field.

    `record` is the name of the type, for errors about a missing field.
    """
    if not fields:
        return None

    def convert_fields(values: dict[str, Any]) -> dict[str, Any]:
        # The dict may be a default, which all records without the field share.
        values = values.copy()
        name = ""
        try:
            for name, convert in fields:
                values[name] = convert(values[name])
        except KeyError as error:
            raise ValueError(f"{name}: a value of {record} has no {error}") from error
        except MISFITS as error:
            raise ValueError(f"{name}: {error}") from error
        return values

    return convert_fields
