"""Texts of tables and checkpoints as paths."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.tables.places import TableFormat, Target, spark_place


def test_targets() -> None:
    assert Target.parse("delta:/a/b") == Target(TableFormat.DELTA, Path("/a/b"))
    assert Target.parse("parquet:file:///a%20b") == Target(TableFormat.PARQUET, Path("/a b"))
    assert Target.parse("parquet:here").path == Path.cwd() / "here"


@pytest.mark.parametrize(
    "text", ["", "delta", "delta:", "csv:/a", "parquet:s3://a", "delta:http://["]
)
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"'{text}'")):
        Target.parse(text)


@pytest.mark.parametrize("text", ["parquet:s3a://bucket/a", "s3://bucket/a", "gs://bucket"])
def test_tables_of_object_stores_are_refused_with_what_is_needed(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected parquet:PATH or delta:PATH on a local"):
        Target.parse(text)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/a%20b/", "/a%20b/"),
        ("a", "a"),
        ("file:/a%20b", "file:///a b"),
        ("file:///a/b", "file:///a/b"),
        ("hdfs://host/a%20b", "hdfs://host/a%20b"),
    ],
)
def test_places_as_spark_takes_them(place: str, expected: str) -> None:
    assert spark_place(place) == expected
