"""Numbers of JSON are read by the type, and choose a branch of a union."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest

from pulsar_py.spark.avro.json_numbers import branch_rank, number_of, whole_number, whole_numbers


def test_whole_numbers_may_be_written_with_a_point() -> None:
    assert [whole_number(each) for each in (2.0, -0.0, 5, None, "x")] == [2, 0, 5, None, "x"]
    assert whole_numbers([1, None]) == [1, None]
    found = whole_numbers([1, 2.0, None])
    assert found == [1, 2, None]
    assert type(found[1]) is int


@pytest.mark.parametrize("value", [1.9, -0.5, math.inf, math.nan])
def test_nothing_of_a_fraction_is_cut_off(value: float) -> None:
    with pytest.raises(ValueError, match="is not a whole number"):
        whole_number(value)
    with pytest.raises(ValueError, match="is not a whole number"):
        whole_numbers([1, value])


def test_numbers_are_rounded() -> None:
    assert [number_of(each) for each in (1.5, 2**53 + 1, 10**21, "Infinity", None)] == [
        1.5,
        2.0**53,
        1e21,
        math.inf,
        None,
    ]


@pytest.mark.parametrize("value", [True, [], {}, "x", 10**400])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        number_of(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", ["int32", "int64", "timestamp[us]", "double", "float", "string"]),
        ("1.0", ["double", "float", "string", "int64", "int32", "timestamp[us]"]),
        ('"1"', ["string", "int64", "int32", "timestamp[us]", "float", "double"]),
        ('"NaN"', ["float", "string", "int64", "double", "int32", "timestamp[us]"]),
        ("true", ["float", "string", "int64", "double", "int32", "timestamp[us]"]),
        ("[1]", ["float", "string", "int64", "double", "int32", "timestamp[us]"]),
    ],
)
def test_branches_are_tried_by_how_well_they_fit(text: str, expected: list[str]) -> None:
    value: Any = json.loads(text)
    branches = [
        pa.float32(),
        pa.string(),
        pa.int64(),
        pa.float64(),
        pa.int32(),
        pa.timestamp("us"),
    ]
    assert [str(each) for each in sorted(branches, key=lambda kind: branch_rank(value, kind))] == expected  # fmt: skip
