"""Times, sizes, positions and pairs on a command line."""

from __future__ import annotations

import pytest

from pulsar_py.cli.admin import values


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("10m", 600), ("2h", 7200), ("3d", 259_200), ("1w", 604_800), ("-1", -1),
     ("5s", 5), ("1.5h", 5400), ("1y", 31_536_000), ("10M", 600)],
)  # fmt: skip
def test_times(text: str, seconds: int) -> None:
    assert values.seconds(text) == seconds
    assert values.milliseconds(text) == seconds * 1000


@pytest.mark.parametrize(
    ("text", "size"),
    [("10M", 10 << 20), ("5G", 5 << 30), ("100", 100), ("-1", -1), ("2k", 2048), ("1T", 1 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert values.size(text) == size


def test_positions() -> None:
    assert values.position("3:4") == (3, 4)
    assert values.position("-1:-1") == values.position("earliest") == (-1, -1)
    assert values.position("latest") == (2**63 - 1, 2**63 - 1)


@pytest.mark.parametrize(
    "parse", [values.seconds, values.size, values.position, values.epoch_millis]
)
@pytest.mark.parametrize("text", ["", "x", "1:2:3:4", "inf", "10q", "2024-01-02T03:04:05"])
def test_what_is_none_of_them_is_refused_in_words(parse: object, text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse(text)  # type: ignore[operator]


def test_times_of_day() -> None:
    assert values.epoch_millis("2024-01-02T03:04:05.678+02:00") == 1704157445678
    assert values.epoch_millis("1969-12-31T23:59:59Z") == -1000


def test_names_and_pairs() -> None:
    assert values.names(["a,b", " c ", ""]) == ["a", "b", "c"]
    assert values.pairs(["a=b,c=d", "e="]) == {"a": "b,c=d", "e": ""}
    with pytest.raises(ValueError, match="KEY=VALUE"):
        values.pairs(["a"])
