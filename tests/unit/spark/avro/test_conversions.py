"""Conversions of values are combined for lists, dicts and records."""

from __future__ import annotations

import pytest

from pulsar_py.spark.avro.conversions import both, each, each_item, in_record, null_or


def test_what_changes_nothing_stays_none() -> None:
    assert both(None, None) is each(None) is each_item(None) is null_or(None) is in_record([])
    assert both(None, str) is both(str, None) is str


def test_conversions_reach_what_is_nested() -> None:
    convert = in_record([("a", each(null_or(str)) or str), ("b", each_item(both(str, len)) or str)])
    assert convert is not None
    values = {"a": [1, None], "b": {"k": 10}, "c": 1}
    assert convert(values) == {"a": ["1", None], "b": {"k": 2}, "c": 1}
    assert values == {"a": [1, None], "b": {"k": 10}, "c": 1}


def test_errors_say_in_which_field() -> None:
    convert = in_record([("out", in_record([("in", int)]) or int)])
    assert convert is not None
    with pytest.raises(ValueError, match=r"^out: in: invalid literal"):
        convert({"out": {"in": "x"}})


def test_what_a_record_lacks_is_named() -> None:
    convert = in_record([("a", int)], "R")
    assert convert is not None
    with pytest.raises(ValueError, match="a: a value of R has no 'a'"):
        convert({})
