"""Texts of options as times, sizes and assignments."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings.texts import (
    parse_assignments,
    parse_duration,
    parse_size,
    parse_time,
)

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), ("1.5h", 5400), ("7", 7), ("250ms", 0.25)]
)
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("128MiB", 128 << 20), ("64M", 64_000_000), ("1000", 1000), ("2 kb", 2000)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "x", "5 parsecs", "-5s"])
def test_what_is_neither(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not"):
        parse_duration(text)
    with pytest.raises(ConfigurationError, match="is not"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("now", NOW),
        ("-2h", NOW - 7_200_000),
        ("2h", NOW - 7_200_000),
        ("2h ago", NOW - 7_200_000),
        ("1.5 d", NOW - 129_600_000),
        ("250ms", NOW - 250),
        ("today", 1_699_920_000_000),
        ("Yesterday", 1_699_833_600_000),
        ("20231114", 1_699_920_000_000),
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
        ("2023-11-14T22:13:20", NOW),
        ("2023-11-14T23:13:20+01:00", NOW),
    ],
)
def test_times(text: str, millis: int) -> None:
    assert parse_time(text, NOW) == millis


@pytest.mark.parametrize("text", ["tomorrow", "", "last week", "90", "2 parsecs", "1.2.3h", "-x"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'{text.removeprefix('-')}' is not"):
        parse_time(text, NOW)


def test_the_refusal_names_what_is_taken() -> None:
    with pytest.raises(ConfigurationError, match=r"2026-01-31, .*2h \(before now\).*yesterday"):
        parse_time("tomorrow", NOW)


def test_assignments() -> None:
    assert parse_assignments(["a=b=c", "d="], "--conf") == {"a": "b=c", "d": ""}
    with pytest.raises(ConfigurationError, match="--conf: 'a'"):
        parse_assignments(["a"], "--conf")
