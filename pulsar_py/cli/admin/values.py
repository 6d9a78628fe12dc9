"""Parses values of the command line: times, sizes, positions, pairs (pure).

Source: RelativeTimeUtil, ByteUnitUtil and CliCommand.validateMessageIdString in Pulsar's client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
"""The units of times; a number without one is seconds."""
_BYTES: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LATEST: Final = 2**63 - 1


def seconds(text: str) -> int:
    """`90`, `10m`, `2h`, `3d`, `1w`, `1y`, `-1`: a time in seconds.

    Raises:
        ValueError: It is none.
    """
    given = text.strip()
    unit = given[-1:].lower()
    number = given[:-1] if unit in SECONDS else given
    try:
        return int(float(number) * SECONDS.get(unit, 1))
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is no time: expected a number with s, m, h, d, w or y behind, such as 10m"
        ) from None


def milliseconds(text: str) -> int:
    """As `seconds`, in milliseconds."""
    return seconds(text) * 1000


def size(text: str) -> int:
    """`100`, `10M`, `5G`, `-1`: a size in bytes, in powers of 1024.

    Raises:
        ValueError: It is none.
    """
    given = text.strip()
    unit = given[-1:].lower()
    number = given[:-1] if unit in _BYTES else given
    try:
        return int(float(number) * _BYTES.get(unit, 1))
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is no size: expected a number with K, M, G or T behind, such as 10M"
        ) from None


def position(text: str) -> tuple[int, int]:
    """`ledger:entry`, `latest` or `earliest` as two numbers.

    Raises:
        ValueError: It is none of them.
    """
    if text == "latest":
        return _LATEST, _LATEST
    if text == "earliest":
        return -1, -1
    parts = text.split(":")
    try:
        ledger_id, entry_id = map(int, parts)
    except ValueError:
        raise ValueError(
            f"{text!r} is no message id: expected LEDGER:ENTRY, latest or earliest"
        ) from None
    return ledger_id, entry_id


def epoch_millis(text: str) -> int:
    """`2024-01-02T03:04:05Z` as milliseconds since 1970.

    Raises:
        ValueError: It is no such time, or without a zone.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError(
            f"{text!r} is no time with a zone: expected such as 2024-01-02T03:04:05.678+02:00"
        )
    since = found - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def names(given: Iterable[str]) -> list[str]:
    """The parts of comma-separated texts."""
    return [each.strip() for text in given for each in text.split(",") if each.strip()]


def pairs(given: Sequence[str]) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping; a value may have `=` too.

    Raises:
        ValueError: One has no `=`.
    """
    found = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise ValueError(f"{text!r} is no property: expected KEY=VALUE")
        found[key] = value
    return found
