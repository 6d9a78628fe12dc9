"""Columns made in one go equal columns made value by value."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pulsar_py.spark.values.arrays import binary_array, is_text, repeated


def test_a_binary_array_has_each_value() -> None:
    values = [b"a", b"", b"\x00\xff" * 3]
    array = binary_array(values)
    array.validate(full=True)
    assert array.type == pa.binary()
    assert array.to_pylist() == values
    assert binary_array([]).to_pylist() == []


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (7, pa.int64()),
        (None, pa.string()),
        ([], pa.map_(pa.string(), pa.string())),
        ([("k", "v")], pa.map_(pa.string(), pa.string())),
    ],
)
def test_one_value_is_repeated(value: object, kind: pa.DataType) -> None:
    column = repeated(pa.array([value], kind), 3)
    assert column.type == kind
    assert column.to_pylist() == [value] * 3


def test_both_types_of_strings_are_text() -> None:
    assert is_text(pa.string())
    assert is_text(pa.large_string())
    assert not is_text(pa.binary())
