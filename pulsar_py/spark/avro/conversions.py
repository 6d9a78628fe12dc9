"""Combines functions that convert single values into functions for lists, maps and records (pure).

None stands for the identity, and a combination of None alone is None again: a value that needs no
conversion costs no call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

__all__ = ["MISFITS", "Convert", "both", "each", "each_item", "in_record", "null_or"]

Convert = Callable[[Any], Any]
"""Makes of a value another one. Raises what `MISFITS` has."""

MISFITS: Final = (ValueError, TypeError, ArithmeticError, KeyError)
"""What conversions raise where a value does not fit, and Arrow, whose errors are some of these."""


def both(first: Convert | None, second: Convert | None) -> Convert | None:
    """One after the other."""
    if first is None or second is None:
        return first or second
    return lambda value: second(first(value))


def null_or(convert: Convert | None) -> Convert | None:
    """Null stays null."""
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def each(convert: Convert | None) -> Convert | None:
    """Of all items of a list."""
    if convert is None:
        return None
    return lambda values: [convert(value) for value in values]


def each_item(convert: Convert | None) -> Convert | None:
    """Of all values of a dict."""
    if convert is None:
        return None
    return lambda values: {key: convert(value) for key, value in values.items()}


def in_record(fields: Sequence[tuple[str, Convert]], record: str = "record") -> Convert | None:
    """Of these fields of a dict, which is left as it is. An error says which one.

    `record` is the type's name, for errors of what it lacks.
    """
    if not fields:
        return None

    def convert_fields(values: dict[str, Any]) -> dict[str, Any]:
        # Defaults are shared by the records that have them.
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
