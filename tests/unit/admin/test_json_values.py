"""Lenient reading of parsed JSON."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pulsar_py.admin.http_messages import UnreadableBodyError
from pulsar_py.admin.json_values import (
    LONG_BITS,
    read_bool,
    read_int,
    read_object,
    read_properties,
    read_text,
    read_texts,
)

read_long = partial(read_int, bits=LONG_BITS)


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (read_int, None, None),
        (read_int, "10240", 10240),
        (read_int, 2.9, 2),
        (read_int, " -7 ", -7),
        (read_int, 2**31 - 1, 2**31 - 1),
        (read_int, -(2**31), -(2**31)),
        (read_long, 2**63 - 1, 2**63 - 1),
        (read_long, str(-(2**63)), -(2**63)),
        (read_bool, None, None),
        (read_bool, "TRUE", True),
        (read_bool, 1, True),
        (read_bool, 0, False),
        (read_text, 5, "5"),
        (read_text, False, "false"),
        (read_texts, ["a", 1], ["a", "1"]),
        (read_object, {"a": 1}, {"a": 1}),
        (read_properties, {"a": 1, "b": "x"}, {"a": "1", "b": "x"}),
    ],
)
def test_json_is_read_leniently(read: Any, value: Any, expected: Any) -> None:
    assert read(value) == expected


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (read_int, "x"),
        (read_int, "1_000"),
        (read_int, 2**31),
        (read_int, -(2**31) - 1),
        (read_int, str(2**31)),
        (read_int, "9" * 5000),
        (read_int, 1e300),
        (read_long, 2**63),
        (read_long, 1e19),
        (read_int, True),
        (read_int, []),
        (read_bool, []),
        (read_bool, "yes"),
        (read_text, {}),
        (read_texts, "a"),
        (read_texts, [[]]),
        (read_object, []),
        (read_properties, {"a": {}}),
    ],
)
def test_what_can_not_be_meant_is_unreadable(read: Any, value: Any) -> None:
    with pytest.raises(UnreadableBodyError):
        read(value)
