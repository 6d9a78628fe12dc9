"""places: where a cluster is, and how what was found is printed."""

from __future__ import annotations

import json

import pytest

from pulsar_py.cli.places import connected, run, show, show_one
from pulsar_py.common.errors import ConfigurationError

NOWHERE = {"config_file": None, "overrides": (), "metadata_store": None, "bookkeeper_uri": None}


def test_a_table_has_a_line_of_names_and_even_columns(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": 1, "longer": None, "more": 1}, {"a": 123, "longer": ["x", "y"], "more": 1}]
    show(rows, ("a", "longer"), "table")
    assert capsys.readouterr().out == "A    LONGER\n1    -\n123  x y\n"


def test_json_is_one_object_a_line_with_everything(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": 1, "more": {"k": "ü"}}, {"a": 2, "more": {}}]
    show(rows, ("a",), "json")
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == rows


def test_one_thing_is_a_line_a_member(capsys: pytest.CaptureFixture[str]) -> None:
    show_one({"a": 1, "labels": {"k": "v", "l": "w"}, "none": {}}, "table")
    assert capsys.readouterr().out == "a       1\nlabels  k=v l=w\nnone    -\n"


async def test_somewhere_has_to_be_named() -> None:
    with pytest.raises(ConfigurationError, match="metadataStoreUrl is not set"):
        async with connected(NOWHERE):
            pass


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def fail() -> int:
        raise ConfigurationError("what is wrong")

    assert run(fail()) == 1
    assert capsys.readouterr().err == "Error: what is wrong\n"
