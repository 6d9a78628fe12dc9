"""Names, schemas and files of tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.tables import (
    Schema,
    TableFile,
    TableFormat,
    TableSchemaError,
    Target,
    Transaction,
    grown_columns,
    merged_schema,
    partition_values,
    small_file_groups,
    spark_place,
    widened_columns,
    with_metadata,
)


def schema(**types: object) -> Schema:
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in types.items()
    ]
    return {"type": "struct", "fields": fields}


def array(element: object, *, contains_null: bool = True) -> Schema:
    return {"type": "array", "elementType": element, "containsNull": contains_null}


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
    with pytest.raises(ConfigurationError, match="what is needed is parquet:PATH or delta:PATH"):
        Target.parse(text)


def test_columns_are_added_and_widened_and_stay() -> None:
    old = schema(a="integer", b="string")
    merged = merged_schema(old, schema(c="date", a="long"))
    assert merged == schema(a="long", b="string", c="date")
    assert widened_columns(old, merged) == ["a"]
    assert merged_schema(merged, schema(a="integer")) == merged


def test_columns_say_about_themselves_what_rows_did() -> None:
    written = schema(b="integer", c="date")
    written["fields"][0]["metadata"] = {"comment": "a pair"}
    found = with_metadata(schema(a="string", b="long"), written)
    assert found["fields"][1] == {
        "name": "b",
        "type": "long",
        "nullable": True,
        "metadata": {"comment": "a pair"},
    }
    assert found["fields"][0] == schema(a="string")["fields"][0]
    assert with_metadata(schema(a="string"), None) == schema(a="string")


def test_a_column_that_does_not_fit() -> None:
    with pytest.raises(TableSchemaError, match="column 'a' is long in the table and string in"):
        merged_schema(schema(a="long"), schema(a="string"))


def map_of(value: object, key: object = "string") -> Schema:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


WRAPS: list[Callable[[object], object]] = [
    lambda kind: schema(s=kind),
    array,
    map_of,
    lambda kind: schema(s=array(map_of(array(schema(x="string", y=kind))))),
]


@pytest.mark.parametrize("wrap", WRAPS)
def test_records_grow_and_become_wider_wherever_they_are(wrap: Callable[[object], object]) -> None:
    old = schema(c=wrap(schema(a="integer", b="string")))
    merged = merged_schema(old, schema(c=wrap(schema(n="date", a="long")), d="date"))
    assert merged == schema(c=wrap(schema(a="long", b="string", n="date")), d="date")
    assert merged_schema(merged, old) == merged
    assert [each["name"] for each in grown_columns(old, merged)] == ["c", "d"]
    assert not grown_columns(merged, merged_schema(merged, old))
    grown = schema(c=wrap(schema(a="integer", b="string", n="date")), d="date")
    assert widened_columns(old, grown) == []


def test_fields_that_are_added_within_may_be_null() -> None:
    one = {"type": "struct", "fields": [{**schema(n="long")["fields"][0], "nullable": False}]}
    merged = merged_schema(schema(c=array(schema())), schema(c=array(one)))
    assert merged == schema(c=array(schema(n="long")))


def test_where_types_become_wider() -> None:
    old = schema(a="long", xs=array(schema(a="integer", m=map_of("float"))))
    new = schema(a="long", xs=array(schema(a="long", m=map_of("double"), n="date")))
    assert widened_columns(old, merged_schema(old, new)) == ["xs.element.a", "xs.element.m.value"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (array(schema(a="long")), array(schema(a="string")), "'c.element.a' is long .* string in"),
        (map_of(schema(a="long")), map_of(schema(a=schema())), "'c.value.a' is long .* struct in"),
        (schema(s=array("long")), schema(s="long"), "'c.s' is array<long> in the table and long"),
        (map_of("long"), map_of("long", "date"), "'c' is map<string,long> .* map<date,long> in"),
        (array(array("long")), array("long"), "'c.element' is array<long> in .* long in"),
    ],
)
def test_what_does_not_fit_within_is_named(old: object, new: object, told: str) -> None:
    with pytest.raises(TableSchemaError, match=f"column {told}"):
        merged_schema(schema(c=old), schema(c=new))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (schema(userId="long"), schema(userid="long"), "column 'userid': there is 'userId'"),
        (schema(r=schema(a="long")), schema(r=schema(A="long")), "column 'r.A': there is 'a'"),
        (schema(r=array(schema(a="long"))), schema(r=array(schema(A="long"))), "r.element.A"),
        (None, schema(a="long", A="long"), "column 'A': there is 'a'"),
    ],
)
def test_names_that_only_case_tells_apart_are_refused(
    old: Schema | None, new: Schema, told: str
) -> None:
    with pytest.raises(TableSchemaError, match=re.escape(told)):
        merged_schema(old, new)


def test_what_may_be_null_is_no_difference() -> None:
    old = schema(a=array("long", contains_null=True))
    assert merged_schema(old, schema(a=array("long", contains_null=False))) == old
    with pytest.raises(TableSchemaError):
        merged_schema(old, schema(a=array("string", contains_null=True)))


def test_values_of_partitions() -> None:
    path = "d=2026-01-31/k=a%3Ab/n=__HIVE_DEFAULT_PARTITION__/f.parquet"
    assert partition_values(path) == {"d": "2026-01-31", "k": "a:b", "n": None}
    assert partition_values("f.parquet") == {}


def test_names_of_files_tell_their_batch() -> None:
    assert Transaction("q", 7).file_prefix == "q-00000007"


def test_small_files_of_one_partition_make_a_group() -> None:
    files = [
        TableFile("a/1", 40, 1),
        TableFile("b/1", 10, 1),
        TableFile("a/2", 40, 1),
        TableFile("a/3", 40, 1),
        TableFile("a/4", 99, 1),
        TableFile("b/2", 10, 1),
        TableFile("c/1", 10, 1),
    ]
    groups = small_file_groups(files, 100)
    assert [[file.path for file in group] for group in groups] == [["a/1", "a/2"], ["b/1", "b/2"]]


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
