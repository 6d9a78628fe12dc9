"""Times are rounded down to coarser units, before 1970 too."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.spark.values.floored_times import floored, millis_of

MICROS = pa.timestamp("us", "UTC")
MILLIS = pa.timestamp("ms", "UTC")
LISTS = pa.list_(pa.struct({"key": pa.string(), "value": MILLIS}))


@given(st.lists(st.none() | st.integers(-(2**62), 2**62)))
def test_times_are_floored_before_1970_as_after(micros: list[int | None]) -> None:
    found = floored(pa.array(micros, MICROS), MILLIS).cast(pa.int64())
    assert found.to_pylist() == [None if each is None else each // 1000 for each in micros]


@given(st.lists(st.none() | st.lists(st.none() | st.integers(-(10**6), 10**6))))
def test_nested_times_are_floored_too(lists: list[list[int | None] | None]) -> None:
    values = [
        {"in": micros, "by": None if micros is None else dict(zip("abc", micros, strict=False))}
        for micros in lists
    ]
    kind = pa.struct(
        {"in": pa.list_(MICROS), "by": pa.map_(pa.string(), MICROS), "day": pa.date32()}
    )
    other = pa.struct(
        {"in": pa.list_(MILLIS), "by": pa.map_(pa.string(), MILLIS), "day": pa.date32()}
    )
    # A slice, so that children have values that are none of the array's.
    array = floored(pa.array([None, *values], kind).slice(1), other)
    assert array.type == other
    found = pc.list_flatten(array.field("in")).cast(pa.int64()).to_pylist()
    expected = [None if each is None else each // 1000 for micros in lists for each in micros or ()]
    assert found == expected
    found = pc.list_flatten(array.field("by").cast(LISTS)).field("value").cast(pa.int64())
    few = [each for micros in lists for each in (micros or ())[:3]]
    assert found.to_pylist() == [None if each is None else each // 1000 for each in few]


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("ns"), pa.timestamp("us")])
def test_units_that_lose_nothing_are_cast(kind: pa.DataType) -> None:
    array = pa.array([-1, None, 1], pa.timestamp("us"))
    assert floored(array, kind) == array.cast(kind)


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match="out of bounds"):
        floored(pa.array([-(2**62)], pa.timestamp("us")), pa.timestamp("ns"))


def test_times_before_1970_are_floored_to_milliseconds() -> None:
    for zone in (None, "UTC"):
        array = pa.array([-1, -1000, -1001, 999, None], pa.timestamp("us", zone))
        assert millis_of(array).to_pylist() == [-1, -1, -2, 0, None]
