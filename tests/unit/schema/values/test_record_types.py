from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pulsar_py.schema.values.collection_types import ArrayType, MapType
from pulsar_py.schema.values.named_types import EnumType
from pulsar_py.schema.values.record_types import (
    NO_DEFAULT,
    MappingType,
    ObjectType,
    RecordField,
    UnionType,
)
from pulsar_py.schema.values.value_types import (
    BytesType,
    FloatingType,
    IntegerType,
    MisfitError,
    Names,
    NullType,
    StringType,
)


@dataclass
class Point:
    x: int
    name: str | None = None


def optional(node: Any) -> UnionType:
    return UnionType([NullType(), node])


def points() -> ObjectType:
    node = ObjectType("Point", None, Point)
    node.fields = (
        RecordField("x", IntegerType("int")),
        RecordField("name", optional(StringType()), None, may_be_absent=True),
    )
    return node


def dicts(make: Any = None) -> MappingType:
    node = MappingType("Point", None, make)
    node.fields = (
        RecordField("x", IntegerType("int")),
        RecordField("name", optional(StringType())),
        RecordField("data", BytesType(), "\xff"),
    )
    return node


def test_the_definition_has_the_fields_in_order() -> None:
    assert points().definition(Names()) == {
        "type": "record",
        "name": "Point",
        "fields": [
            {"name": "x", "type": "int"},
            {"name": "name", "type": ["null", "string"], "default": None},
        ],
    }


def test_a_default_may_stand_before_the_type() -> None:
    field = RecordField("x", StringType(), "d", default_stands_first=True)

    assert [*field.definition(Names())] == ["name", "default", "type"]


@pytest.mark.parametrize("value", [Point(1), Point(2, "b")])
def test_objects_are_taken_apart_and_put_together(value: Point) -> None:
    node = points()

    assert node.to_json(value) == {"x": value.x, "name": value.name}
    assert node.from_avro(node.to_avro(value)) == value
    assert node.from_json(node.to_json(value)) == value


def test_json_may_leave_out_what_has_a_default_and_say_more() -> None:
    assert points().from_json({"x": 1, "more": 2}) == Point(1)
    assert dicts().from_json({"x": 1}) == {"x": 1, "name": None, "data": b"\xff"}


def test_dicts_may_leave_out_what_has_a_default() -> None:
    assert dicts().to_avro({"x": 1}) == {"x": 1, "name": None, "data": b"\xff"}


def test_dicts_may_not_say_more() -> None:
    with pytest.raises(MisfitError, match="no field 'y'"):
        dicts().to_avro({"x": 1, "y": 2})


def test_a_record_of_dicts_may_become_something_else() -> None:
    assert dicts(lambda values: tuple(values.values())).from_json({"x": 1}) == (1, None, b"\xff")


@pytest.mark.parametrize("value", [{"x": 1}, None, 5])
def test_objects_of_other_classes_are_refused(value: Any) -> None:
    with pytest.raises(MisfitError, match="takes Point"):
        points().to_avro(value)


def test_errors_name_the_field() -> None:
    with pytest.raises(MisfitError, match=r"^x: takes integers"):
        points().to_avro(Point("x"))  # type: ignore[arg-type]
    with pytest.raises(MisfitError, match=r"^x: takes integers"):
        points().to_json(Point("x"))  # type: ignore[arg-type]
    with pytest.raises(MisfitError, match=r"^x: takes integers"):
        points().from_json({"x": "x"})
    with pytest.raises(MisfitError, match=r"^x: is missing"):
        dicts().to_avro({})


def test_json_that_is_no_object_is_refused() -> None:
    with pytest.raises(MisfitError, match="takes objects"):
        points().from_json([1])


def test_a_class_that_refuses_its_values_is_quoted() -> None:
    node = ObjectType("Point", None, Point)
    node.fields = (RecordField("other", IntegerType("int")),)

    with pytest.raises(MisfitError, match="Point refuses"):
        node.from_avro({"other": 1})


def union() -> UnionType:
    node = UnionType(
        [
            NullType(),
            IntegerType("long"),
            FloatingType("double"),
            points(),
            MapType(IntegerType("int")),
            EnumType("Letter", None, ["A"]),
            StringType(),
            ArrayType(StringType()),
        ]
    )
    node.definition(Names())
    return node


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (5, ("long", 5)),
        (5.0, ("double", 5.0)),
        (Point(1), ("Point", {"x": 1, "name": None})),
        ({"a": 1}, ("map", {"a": 1})),
        ("A", ("Letter", "A")),
        ("B", ("string", "B")),
        (["B"], ("array", ["B"])),
    ],
)
def test_a_value_goes_to_the_branch_that_accepts_it(value: Any, plain: Any) -> None:
    assert union().to_avro(value) == plain
    assert union().from_json(union().to_json(value)) == value


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        (("Point", {"x": 1, "name": None}), Point(1)),
        (("Letter", "A"), "A"),
        (5, 5),
        (5.0, 5.0),
        (["a"], ["a"]),
        (None, None),
        ({"x": 1, "name": None}, Point(1)),
    ],
)
def test_what_comes_back_may_name_its_branch(plain: Any, value: Any) -> None:
    assert union().from_avro(plain) == value


def test_what_no_branch_accepts_is_refused() -> None:
    with pytest.raises(MisfitError, match="takes null or long or"):
        union().to_avro(b"bytes")
    with pytest.raises(MisfitError, match="takes null or string"):
        UnionType([NullType(), StringType(), BytesType()]).from_json([1])
    assert not union().accepts(b"bytes")


def test_one_type_or_none_needs_no_branch() -> None:
    node = optional(points())

    assert node.to_avro(Point(1)) == ("Point", {"x": 1, "name": None})
    assert node.from_avro(("renamed", {"x": 1, "name": None})) == Point(1)
    assert node.from_json(None) is None
    assert node.to_default(None) is None
    assert node.to_default(Point(1)) == {"x": 1, "name": None}


def test_no_default_says_what_it_is() -> None:
    assert repr(NO_DEFAULT) == "NO_DEFAULT"
