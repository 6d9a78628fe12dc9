"""How answers are printed."""

from __future__ import annotations

import json

import pytest

from pulsar_py.cli.admin import output


def test_json_as_jackson_writes_it() -> None:
    value = {"a": [1, {"b": []}], "c": {}, "d": 'é"', "e": None, "f": True, "g": 2.0}
    assert output.pretty(value) == (
        '{\n  "a" : [ 1, {\n    "b" : [ ]\n  } ],\n  "c" : { },\n  "d" : "é\\"",\n'
        '  "e" : null,\n  "f" : true,\n  "g" : 2.0\n}'
    )
    assert json.loads(output.pretty(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0"), (1.5, "1.5"), (1e7, "1.0E7"), (12345678.9, "1.23456789E7"), (0.001, "0.001"),
     (0.0001, "1.0E-4"), (-2.5e-10, "-2.5E-10"), (1e300, "1.0E300"), (9999999.0, "9999999.0"),
     (1.234e16, "1.234E16"), (float("nan"), '"NaN"'), (float("-inf"), '"-Infinity"')],
)  # fmt: skip
def test_numbers_as_java_writes_them(value: float, text: str) -> None:
    assert output.java_double(value) == text


def test_maps_and_lists() -> None:
    assert output.mapping({"a": ["x", "y"], "b": {"c": None}}) == "a    [x, y]\nb    {c=null}\n"
    assert output.lines(["a", {"b": 1}]) == 'a\n{\n  "b" : 1\n}\n'
    shown = output.mapping_of("Quota", {"limit": "limit", "is": "is_on"})
    assert shown({"k": {"limit": 1, "is_on": False}}) == "k    Quota(limit=1, is=false)\n"


def test_tables() -> None:
    assert output.table([{"a": 1, "bb": "x"}, {"a": 22}]) == "A   BB\n1   x\n22  -\n"
    assert output.table({"a": {"b": [1, 2]}, "cc": None}) == "a\n  b  1, 2\ncc   -\n"
    assert output.table(["a", "b"]) == "a\nb\n"
    assert output.table([]) == "(none)\n"
    assert output.table({}) == "(none)\n"


def test_a_terminal_gets_no_control_characters() -> None:
    assert output.table(["a\x1b[31mb\n"]) == "a\\x1b[31mb\\n\n"
