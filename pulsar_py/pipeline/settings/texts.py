"""Texts of times, durations, sizes and assignments, parsed (pure).

All commands share these forms: `2026-01-31T10:00Z`, `2h` before now, `yesterday`, or milliseconds
since 1970 for a time; `90s` for a duration; `128MiB` for a size; `NAME=VALUE` for an assignment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from pulsar_py.common.errors import ConfigurationError

_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES: Final = {
    "": 1,
    "b": 1,
    "k": 1000,
    "kb": 1000,
    "kib": 1 << 10,
    "m": 1_000_000,
    "mb": 1_000_000,
    "mib": 1 << 20,
    "g": 1_000_000_000,
    "gb": 1_000_000_000,
    "gib": 1 << 30,
}
_NUMBER: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)")
_BEFORE_NOW: Final = re.compile(r"-(.+)|([0-9.]+\s*(?:ms|[smhdw]))(?:\s+ago)?", re.IGNORECASE)
_DAYS_BACK: Final = {"today": 0, "yesterday": 1}
_DAY_MILLIS: Final = 86_400_000


def parse_duration(text: str) -> float:
    """The seconds of a duration such as `90s`, `5m`, `1.5h`; a number without a unit is seconds.

    Raises:
        ConfigurationError: The text is not a duration.
    """
    return _scaled(text, {**_SECONDS, "": 1}, "a duration such as 90s, 5m or 2h")


def parse_size(text: str) -> int:
    """The bytes of a size such as `128MiB`, `64M` (of a million bytes), `1000`.

    Raises:
        ConfigurationError: The text is not a size.
    """
    return int(_scaled(text, _BYTES, "a size such as 128MiB"))


def _scaled(text: str, units: Mapping[str, float], expected: str) -> float:
    found = _NUMBER.fullmatch(text.strip())
    if found is None or found[2].lower() not in units:
        raise ConfigurationError(f"{text!r} is not {expected}")
    return float(found[1]) * units[found[2].lower()]


def parse_time(text: str, now_millis: int) -> int:
    """The milliseconds since 1970 of a date or time, of milliseconds, or of `2h`, `today`, `now`.

    A time without a zone is in UTC, and so are days: `today` and `yesterday` are their first
    moments, as dates are. `2h`, `-2h` and `2h ago` are two hours before now. Eight digits are a
    date, `20260131`; more are milliseconds.

    Raises:
        ConfigurationError: The text is not a time.
    """
    text = text.strip()
    word = text.lower()
    if word == "now":
        return now_millis
    if word in _DAYS_BACK:
        return (now_millis // _DAY_MILLIS - _DAYS_BACK[word]) * _DAY_MILLIS
    if found := _BEFORE_NOW.fullmatch(text):
        return now_millis - round(parse_duration(found[1] or found[2]) * 1000)
    if text.isdigit() and len(text) > len("20260131"):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{text!r} is not a time such as 2026-01-31, 2026-01-31T10:00Z, 2h (before now), now,"
            " today, yesterday (both from 0:00 UTC), or milliseconds since 1970"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    """The mapping of several `NAME=VALUE` texts; a later one replaces an earlier one.

    Args:
        texts: The values that the user gave.
        option: The option that had them, for the error.

    Raises:
        ConfigurationError: A text has no name, or no `=`.
    """
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ConfigurationError(f"{option}: {text!r} is not of the form NAME=VALUE")
        found[name.strip()] = value
    return found
