"""Values of one definition, read as another."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema.avro.avro_codec import AvroWriter
from pulsar_py.schema.avro.avro_nodes import avro_node
from pulsar_py.spark.avro.resolution import ResolvedReader
from pulsar_py.spark.avro.shapes import shape_of

PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
INNER = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}


def field(kind: Any, name: str = "f", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def reader_of(writer: Any, reader: Any = None) -> ResolvedReader:
    node = avro_node(writer)
    if reader is None:
        return ResolvedReader(node, node, shape_of(node))
    read_as = avro_node(reader)
    return ResolvedReader(node, read_as, shape_of(read_as))


def read(writer: Any, reader: Any, *values: Any) -> Sequence[Any]:
    """Fields named `f` of records that have one."""
    payloads = [AvroWriter(record(field(writer))).write({"f": each}) for each in values]
    resolved = reader_of(record(field(writer)), record(field(reader)))
    return [each["f"] for each in resolved.read(payloads)]


def member(index: int, value: Any) -> dict[str, Any]:
    return {f"member{index}": value}


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize(
    ("union", "branch", "value", "index"),
    [
        (["double", "long"], "long", 2**53 + 1, 1),
        (["double", "long"], "long", 5, 1),
        (["double", "long"], "double", 5.0, 0),
        (["null", "string", "float", "double"], "double", 1e300, 2),
        (["null", "string", "float", "double"], "double", 0.1, 2),
        (["null", "string", "float", "double"], "float", 0.5, 1),
        (["int", "boolean"], "boolean", True, 1),
        (["int", "string", "long"], "long", 2**40, 2),
        (["int", "string", "long"], "long", 1, 2),
        (["string", "bytes"], "bytes", b"x", 1),
        (["string", INNER], "I", {"x": 1}, 1),
    ],
)
def test_the_branch_that_was_written_is_the_member(
    union: Any, branch: str, value: Any, index: int, *, is_same: bool
) -> None:
    payload = AvroWriter(union).write((branch, value))
    reader = reader_of(union) if is_same else reader_of(union, [*union])
    assert reader.read([payload, None]) == [member(index, value), None]
    (found,) = reader.read([payload])
    assert type(found[f"member{index}"]) is type(value)


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize(
    ("named", "value"),
    [
        (INNER, {"x": 1}),
        ({"type": "enum", "name": "I", "symbols": ["A", "B"]}, "B"),
        ({"type": "fixed", "name": "I", "size": 2}, b"xy"),
    ],
)
def test_a_named_type_may_be_a_branch_of_several_unions(
    named: Any, value: Any, *, is_same: bool
) -> None:
    of_items = {"type": "array", "items": ["long", "I"]}
    fields = [field([named, "string"], "p"), field(["null", "I", "string"], "q"), field(of_items)]
    payloads = [
        AvroWriter(record(*fields)).write(each)
        for each in (
            {"p": ("I", value), "q": "s", "f": [1, ("I", value)]},
            {"p": "s", "q": ("I", value), "f": []},
            {"p": ("I", value), "q": None, "f": [("I", value)]},
        )
    ]
    more = record(*fields, field("int", "more", default=0))
    found = reader_of(record(*fields), None if is_same else more).read(payloads)
    assert [(each["p"], each["q"], each["f"]) for each in found] == [
        (member(0, value), member(1, "s"), [member(0, 1), member(1, value)]),
        (member(1, "s"), member(0, value), []),
        (member(0, value), None, [member(1, value)]),
    ]


def test_a_named_type_of_several_unions_may_contain_one_and_change() -> None:
    def definition(*more: Any) -> Any:
        inner = record(field(["int", "string"], "x"), *more, name="I")
        return record(field([inner, "string"], "p"), field(["null", "string", "I"], "q"))

    value = {"p": ("I", {"x": 1}), "q": ("I", {"x": "s"})}
    payload = AvroWriter(definition()).write(value)
    new = definition(field("int", "y", default=2))
    assert reader_of(definition(), new).read([payload]) == [
        {"p": member(0, {"x": member(0, 1), "y": 2}), "q": member(1, {"x": member(1, "s"), "y": 2})}
    ]


def test_writers_of_several_unions_may_contain_themselves() -> None:
    inner = record(field("int", "x"), field(["null", "I", "string"], "next"), name="I")
    writer = record(field([inner, "string"], "p"), field(["null", "I", "string"], "q"))
    deep = {"x": 1, "next": ("I", {"x": 2, "next": "s"})}
    payload = AvroWriter(writer).write({"p": ("I", deep), "q": ("I", deep)})
    reader = record(field([INNER, "string"], "p"), field(["null", "I", "string"], "q"))
    (found,) = reader_of(writer, reader).read([payload])
    assert found["p"]["member0"]["x"] == found["q"]["member0"]["x"] == 1


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        ("int", "long", 1, 1),
        ("long", "double", 2**53 + 1, 2.0**53),
        ("string", "bytes", "ä", "ä".encode()),
        ("bytes", "string", "ä".encode(), "ä"),
        ("bytes", PRICE, b"\x7d", Decimal("1.25")),
        ("int", ["string", "double", "long"], 1, member(1, 1.0)),
        ("long", ["string", "double", "long"], 1, member(2, 1)),
        ("string", ["null", "string"], "x", "x"),
        ("null", ["null", "string"], None, None),
        ("null", ["null", "string", "int"], None, None),
        (["null", "int"], ["int", "null"], None, None),
        (["null", "int"], ["string", "double", "null"], None, None),
        (["int", "string"], "long", ("int", 1), 1),
        (["int", "string"], ["null", "double"], ("int", 1), 1.0),
        (["int", "string"], ["boolean", "string", "int"], ("int", 1), member(2, 1)),
        (["int", "long"], ["double", "int"], ("long", 1), member(0, 1.0)),
        (["null", INNER], INNER, ("I", {"x": 1}), {"x": 1}),
        (INNER, ["null", INNER], {"x": 1}, {"x": 1}),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "double"}, [1], [1.0]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": ["int", "string"]}, {"k": 1}, {"k": member(0, 1)}),
    ],
)  # fmt: skip
def test_values_become_what_the_reader_has(
    writer: Any, reader: Any, value: Any, expected: Any
) -> None:
    (found,) = read(writer, reader, value)
    assert found == expected
    assert type(found) is type(expected)


def test_fields_come_and_go_and_get_other_names() -> None:
    old = record(field("int", "gone"), field(INNER, "in"), field("int", "old"), name="n.Old")
    more = [field("int", "x"), field("bytes", "y", default="\u00ff")]
    new = record(
        field({**INNER, "fields": more}, "in"),
        field("long", "new", aliases=["old"]),
        field(["null", "int"], "nothing", default=None),
    )
    payload = AvroWriter(old).write({"gone": 1, "in": {"x": 2}, "old": 3})
    (found,) = reader_of(old, new).read([payload])
    del found["gone"]
    assert found == {"in": {"x": 2, "y": b"\xff"}, "new": 3}


@pytest.mark.parametrize(
    ("written", "fields", "expected"),
    [
        # Names that went on by one.
        ("ab", [("b", "a"), ("c", "b")], {"b": "a", "c": "b"}),
        ("ab", [("c", "b"), ("b", "a")], {"b": "a", "c": "b"}),
        ("abc", [("b", "a"), ("c", "b"), ("d", "c")], {"b": "a", "c": "b", "d": "c"}),
        # The same definition, after they went on.
        ("bc", [("b", "a"), ("c", "b")], {"b": "b", "c": "c"}),
        ("abc", [("b", "a"), ("c", "b")], {"b": "b", "c": "c"}),
        # What has the name comes before what has the alias, wherever it stands.
        ("a", [("a", ""), ("b", "a", "-")], {"a": "a", "b": "-"}),
        ("a", [("b", "a", "-"), ("a", "", "+")], {"b": "-", "a": "a"}),
        ("ab", [("a", "b"), ("b", "a")], {"a": "a", "b": "b"}),
        ("b", [("b", "a"), ("c", "b", "-")], {"b": "b", "c": "-"}),
        ("abz", [("b", "a"), ("c", "bz")], {"b": "b", "c": "z"}),
        # The first of those who have the alias.
        ("a", [("b", "a", "-"), ("c", "a", "+")], {"b": "a", "c": "+"}),
        ("a", [("c", "a", "+"), ("b", "a", "-")], {"c": "a", "b": "-"}),
        ("a", [("b", "a", None), ("c", "a", None)], {"b": "a", "c": None}),
        ("ax", [("b", "ax"), ("c", "a")], {"b": "x", "c": "a"}),
        ("a", [("b", "aa")], {"b": "a"}),
    ],
)
def test_a_written_field_goes_into_one_field(
    written: str, fields: Any, expected: dict[str, Any]
) -> None:
    def text(name: str, aliases: str, *default: str | None) -> dict[str, Any]:
        kind: Any = ["null", "string"] if None in default else "string"
        return field(kind, name, aliases=[*aliases], **({"default": default[0]} if default else {}))

    old = record(*(field("string", name) for name in written))
    payload = AvroWriter(old).write({name: name for name in written})
    (found,) = reader_of(old, record(*(text(*each) for each in fields))).read([payload])
    assert {name: found.get(name) for name in expected} == expected


def test_renamed_fields_become_what_the_reader_has() -> None:
    old = record(field("int", "a"), field("string", "b"))
    new = record(field("double", "b", aliases=["a"]), field("bytes", "c", aliases=["b"]))
    payload = AvroWriter(old).write({"a": 7, "b": "x"})
    assert reader_of(old, new).read([payload]) == [{"b": 7.0, "c": b"x"}]


def test_a_field_whose_aliases_are_others_is_named() -> None:
    old = record(field("int", "a"))
    with pytest.raises(
        SchemaSerializationError, match="b: 'a' goes into 'a', and R has no default"
    ):
        reader_of(old, record(field("int", "b", aliases=["a"]), field("int", "a", default=0)))
    fields = [field("int", name, aliases=["a"]) for name in "bc"]
    with pytest.raises(
        SchemaSerializationError, match="c: 'a' goes into 'b', and R has no default"
    ):
        reader_of(old, record(*fields))


def test_what_a_value_lacks_is_named_with_the_record() -> None:
    old, new = record(field("int", "a")), record(field("int", "b", aliases=["a"]))
    convert = reader_of(old, new).convert
    assert convert is not None
    with pytest.raises(ValueError, match="a: a value of R has no 'a'"):
        convert({})


def test_symbols_that_went_have_the_default() -> None:
    def enum(*symbols: str, **more: Any) -> dict[str, Any]:
        return {"type": "enum", "name": "E", "symbols": [*symbols], **more}

    assert read(enum("A"), enum("A", "B"), "A") == ["A"]
    assert read(enum("A", "B"), enum("B", "C", default="C"), "A", "B") == ["C", "B"]
    with pytest.raises(ValueError, match="f: 'A' is not a symbol of E"):
        read(enum("A", "B"), enum("B"), "A")


@pytest.mark.parametrize(
    ("writer", "reader", "text"),
    [
        ("long", "int", "f: written as long, which can't be read as int"),
        ("string", ["null", "int"], "f: written as string, which can't be read as null or int"),
        ({**INNER, "name": "J"}, INNER, "f: written as record J, which can't be read as record I"),
        (
            {"type": "fixed", "name": "F", "size": 1},
            {"type": "fixed", "name": "F", "size": 2},
            "can't be read as fixed F",
        ),
    ],
)
def test_types_that_do_not_go_together_are_named(writer: Any, reader: Any, text: str) -> None:
    with pytest.raises(SchemaSerializationError, match=text):
        reader_of(record(field(writer)), record(field(reader)))


def test_a_branch_that_does_not_go_into_the_reader_s_type_is_a_matter_of_its_values() -> None:
    assert read(["int", "string"], "int", ("int", 1)) == [1]
    with pytest.raises(ValueError, match="f: written as string, which can't be read as int: 'x'"):
        read(["int", "string"], "int", ("string", "x"))
    with pytest.raises(ValueError, match="f: null was written"):
        read(["null", "int"], "int", None)


def test_a_field_without_default_can_not_be_made_up() -> None:
    with pytest.raises(SchemaSerializationError, match="f: was not written, and R has no default"):
        reader_of(record(), record(field("int")))
    with pytest.raises(SchemaSerializationError, match="f: missing, and 'x', its default in R"):
        reader_of(record(), record(field("int", default="x")))


def test_writers_may_contain_themselves_where_nobody_looks() -> None:
    writer = record(field("int"), field(["null", "R"], "next"))
    payload = AvroWriter(writer).write({"f": 1, "next": {"f": 2, "next": None}})
    (found,) = reader_of(writer, record(field("int"))).read([payload])
    assert found["f"] == 1


def test_what_needs_no_conversion_has_none() -> None:
    moment = {"type": "long", "logicalType": "timestamp-millis"}
    definition = record(field("int"), field(["null", "string"], "g"), field(moment, "h"))
    assert reader_of(definition).convert is None
    more = record(*definition["fields"], field(["null", "int"], "more", default=None))
    assert reader_of(definition, more).convert is None
