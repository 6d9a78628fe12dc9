"""Text forms of times, lengths of time, sizes and assignments (pure)."""

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


def parse_duration(text: str) -> float:
    """Seconds of `90s`, `5m`, `1.5h`; a bare number counts seconds.

    Raises:
        ConfigurationError: It is none of these.
    """
    return _scaled(text, {**_SECONDS, "": 1}, "a length of time such as 90s, 5m or 2h")


def parse_size(text: str) -> int:
    """Bytes of `128MiB`, `64M`, `1000`.

    Raises:
        ConfigurationError: It is none of these.
    """
    return int(_scaled(text, _BYTES, "a size such as 128MiB"))


def _scaled(text: str, units: Mapping[str, float], expected: str) -> float:
    found = _NUMBER.fullmatch(text.strip())
    if found is None or found[2].lower() not in units:
        raise ConfigurationError(f"{text!r} is not {expected}")
    return float(found[1]) * units[found[2].lower()]


def parse_time(text: str, now_millis: int) -> int:
    """Milliseconds since 1970 of a date or time, of milliseconds, or of `-2h`, `now`.

    A time without a zone is in UTC.

    Raises:
        ConfigurationError: It is none of these.
    """
    text = text.strip()
    if text == "now":
        return now_millis
    if text.startswith("-"):
        return now_millis - round(parse_duration(text[1:]) * 1000)
    if text.isdigit() and len(text) > len("20260131"):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{text!r} is not a time such as 2026-01-31T10:00Z, -2h, or milliseconds since 1970"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping.

    Raises:
        ConfigurationError: One has no name, or no `=`.
    """
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ConfigurationError(f"{option}: {text!r} is not NAME=VALUE")
        found[name.strip()] = value
    return found
