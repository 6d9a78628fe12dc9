"""Reads texts, numbers and objects out of parsed JSON as Pulsar's JSON library does (pure).

A text with a number counts as a number, a number counts as a text if that is required, a missing
field is None, an unknown field is ignored.

Source: ObjectMapperFactory in Pulsar; Jackson's coercion of scalars.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from pulsar_py.admin.http_messages import UnreadableBodyError

INT_BITS: Final = 32
"""The size of Java's int, for counts and times in seconds."""
LONG_BITS: Final = 64
"""The size of Java's long, for sizes, ids and times in milliseconds."""

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,40}")


def read_int(
    value: Any,  # Any: parsed JSON
    what: str = "value",
    *,
    bits: int = INT_BITS,
) -> int | None:
    """A signed whole number of at most `bits` bits, or a text with one; a fraction is cut off.

    Raises:
        UnreadableBodyError: It is neither.
    """
    if value is None:
        return None
    number = _whole_number(value)
    if number is None:
        raise UnreadableBodyError(f"{what}: {value!r:.100} is not a whole number")
    if not _fits(number, bits):
        raise UnreadableBodyError(f"{what}: {value!r:.100} has more than {bits} bits")
    return number


def read_float(value: Any, what: str = "value") -> float | None:  # Any: parsed JSON
    """A finite number, or a text with one.

    Raises:
        UnreadableBodyError: It is neither.
    """
    if value is None:
        return None
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise UnreadableBodyError(f"{what}: {value!r:.100} is not a number")
    return number


def _whole_number(value: Any) -> int | None:  # Any: parsed JSON
    if isinstance(value, str):
        text = value.strip()
        return int(text) if _WHOLE_NUMBER.fullmatch(text) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value)


def _fits(number: int, bits: int) -> bool:
    """Whether a signed number of `bits` bits can have that value."""
    return -(1 << bits - 1) <= number < 1 << bits - 1


def read_bool(value: Any, what: str = "value") -> bool | None:  # Any: parsed JSON
    """A boolean, or a text with one; a whole number is True unless it is 0.

    Raises:
        UnreadableBodyError: It is neither.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value != 0
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise UnreadableBodyError(f"{what}: {value!r} is not true or false")


def read_text(value: Any, what: str = "value") -> str | None:  # Any: parsed JSON
    """A text; a number or boolean is converted to one.

    Raises:
        UnreadableBodyError: It is a list or an object.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise UnreadableBodyError(f"{what}: expected a text, got a list or an object")


def read_texts(value: Any, what: str = "value") -> list[str] | None:  # Any: parsed JSON
    """A list of texts.

    Raises:
        UnreadableBodyError: It is something else.
    """
    if value is None:
        return None
    if not isinstance(value, list):
        raise UnreadableBodyError(f"{what}: expected a list")
    return [read_text(item, what) or "" for item in value]


def read_object(value: Any, what: str = "value") -> dict[str, Any] | None:  # Any: parsed JSON
    """An object.

    Raises:
        UnreadableBodyError: It is something else.
    """
    if value is None or isinstance(value, dict):
        return value
    raise UnreadableBodyError(f"{what}: expected an object")


def read_properties(value: Any, what: str = "properties") -> dict[str, str] | None:  # Any: JSON
    """An object of texts.

    Raises:
        UnreadableBodyError: It is something else.
    """
    fields = read_object(value, what)
    if fields is None:
        return None
    return {name: read_text(item, f"{what}.{name}") or "" for name, item in fields.items()}
