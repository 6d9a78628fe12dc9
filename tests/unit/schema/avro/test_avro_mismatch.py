from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema import AvroSchema
from pulsar_py.schema.avro.avro_mismatch import mismatch
from pulsar_py.schema.avro.avro_nodes import avro_node


def record(name: str = "R", **fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": key, "type": value} for key, value in fields.items()],
    }


def color(*symbols: str, **more: str) -> dict[str, Any]:
    return {"type": "enum", "name": "Color", "symbols": [*symbols], **more}


def fixed(size: int) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size}


LIST = record("List", value="int", next=["null", "List"])
LIST_OF_TEXT = record("List", value="string", next=["null", "List"])


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        (record(a="int"), record(a="long"), None),
        (record(a="int"), record(a=["null", "double"]), None),
        (record(a="string"), record(a="bytes"), None),
        (record(a="int", b="int"), record("Other", b="int"), None),
        (LIST, LIST, None),
        (color("RED"), color("RED", "BLUE"), None),
        (color("RED", "BLUE"), color("RED", default="RED"), None),
        (
            record(a="string"),
            record(a="long"),
            "field a was written as string, and is read as long",
        ),
        (record(a="long"), record(a="int"), "field a was written as long, and is read as int"),
        (record(a="int"), record(a="int", b="int"), "field b was not written, and has no default"),
        (
            record(a=record("Inner", b="string")),
            record(a=record("Inner", b="int")),
            "field a.b was written as string, and is read as int",
        ),
        (
            record(a={"type": "array", "items": "string"}),
            record(a={"type": "array", "items": "int"}),
            "field a[] was written as string, and is read as int",
        ),
        (
            record(a=["null", "int"]),
            record(a="int"),
            "field a was written as null, and is read as int",
        ),
        (
            record(a=["null", record("Inner", b="string")]),
            record(a=["null", record("Inner", b="int")]),
            "field a.b was written as string, and is read as int",
        ),
        (
            record(a="string"),
            record(a=["null", "int"]),
            "field a was written as string, and is read as one of null, int",
        ),
        (record(a=color("RED", "BLUE")), record(a=color("RED")), "field a has no symbol 'BLUE'"),
        (
            record(a=fixed(1)),
            record(a=fixed(2)),
            "field a was written as fixed F, and is read as fixed F",
        ),
        (LIST, LIST_OF_TEXT, "field value was written as int, and is read as string"),
        ("int", "string", "the value was written as int, and is read as string"),
    ],
)
def test_the_first_field_that_does_not_fit(writer: Any, reader: Any, expected: str | None) -> None:
    assert mismatch(avro_node(writer), avro_node(reader)) == expected


def test_an_unreadable_value_says_who_reads_it_who_wrote_it_and_which_field() -> None:
    writer = AvroSchema(schema_definition=record("Old", price="string"))
    reader = AvroSchema(schema_definition=record("Order", price="long"))
    with pytest.raises(SchemaSerializationError) as raised:
        reader.decode_with(writer.schema_info(), writer.encode({"price": "1"}))
    assert str(raised.value) == (
        "Order can't read what Old wrote: field price was written as string, and is read as long"
    )


def _enum(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": ["A"], **more}


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        (_enum("E"), _enum("E", namespace="x"), None),
        (_enum("E"), _enum("G"), "field f was written as enum E, and is read as enum G"),
        (_enum("E"), _enum("G", aliases=["x.E"]), None),
        (
            _enum("G", aliases=["E"]),
            _enum("E"),
            "field f was written as enum G, and is read as enum E",
        ),
        (
            fixed(4),
            {**fixed(4), "name": "G"},
            "field f was written as fixed F, and is read as fixed G",
        ),
        (fixed(4), {**fixed(4), "name": "G", "aliases": ["F"]}, None),
    ],
)
def test_enums_and_fixed_have_their_name_or_an_alias(
    writer: Any, reader: Any, expected: str | None
) -> None:
    assert mismatch(avro_node(record(f=writer)), avro_node(record(f=reader))) == expected


def test_an_alias_takes_the_field_from_the_one_of_that_name() -> None:
    reader = record(a="int", b="int", c="int")
    reader["fields"][2]["aliases"] = ["b"]
    found = mismatch(avro_node(record(a="int", b="int")), avro_node(reader))
    assert found == "field b was not written, and has no default"


def test_two_types_that_do_not_fit_do_not_fit_the_second_time_either() -> None:
    inner = record("I", x="int")
    writer = record(a=inner, b="I")
    reader = record(a=[record("J", x="string"), record("K", x="int")], b="J")
    found = mismatch(avro_node(writer), avro_node(reader))
    assert found == "field b was written as record I, and is read as record J"
