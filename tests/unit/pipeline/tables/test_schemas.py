"""Columns that are added, become wider, or do not fit."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from pulsar_py.pipeline.tables.schemas import (
    Schema,
    TableSchemaError,
    grown_columns,
    merged_schema,
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
