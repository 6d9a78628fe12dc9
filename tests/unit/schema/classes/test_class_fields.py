"""Fields of dataclasses, named tuples and typed dicts, whose annotations are texts here."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NotRequired, Required, TypedDict

import pydantic.dataclasses
import pytest

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.schema import AvroSchema, JsonSchema
from pulsar_py.schema.classes.class_fields import describe

SCHEMAS = [AvroSchema, JsonSchema]


class Point(NamedTuple):
    x: int
    label: str | None = None
    inner: Point | None = None


class Person(TypedDict):
    name: str
    age: NotRequired[int]


class Patch(TypedDict, total=False):
    key: Required[str]
    value: int
    owner: Person
    following: Patch


class Worker(Person):
    job: str


@dataclass
class Computed:
    a: int
    b: int = field(init=False)

    def __post_init__(self) -> None:
        self.b = self.a + 1


@pydantic.dataclasses.dataclass
class Checked:
    a: int
    b: list[int] = pydantic.Field(default_factory=list)
    c: int = pydantic.Field(default=3, gt=1)
    d: int = pydantic.Field(gt=1, default=...)


ROUND_TRIPS = [
    (Point, Point(1)),
    (Point, Point(1, "a", Point(2))),
    (Person, {"name": "a"}),
    (Person, {"name": "a", "age": 0}),
    (Patch, {"key": "k"}),
    (Patch, {"key": "k", "owner": {"name": "a"}, "following": {"key": "j", "value": 1}}),
    (Worker, {"name": "a", "job": "b"}),
    (Computed, Computed(1)),
    (Checked, Checked(a=1, b=[2], c=5, d=7)),
]


@pytest.mark.parametrize("make", SCHEMAS)
@pytest.mark.parametrize(("owner", "value"), ROUND_TRIPS)
def test_values_come_back_as_they_were(make: Any, owner: Any, value: Any) -> None:
    schema = make(owner)
    back = schema.decode(schema.encode(value))

    assert back == value
    assert type(back) is type(value)


def fields_of(owner: Any) -> dict[str, Any]:
    description = describe(owner)
    assert description is not None
    return {
        each.name: (each.factory or each.default) if each.has_default else "required"
        for each in description.fields()
    }


def test_defaults_are_found() -> None:
    assert fields_of(Point) == {"x": "required", "label": None, "inner": None}
    assert fields_of(Person) == {"name": "required", "age": None}
    assert fields_of(Patch) == {"key": "required", "value": None, "owner": None, "following": None}
    assert fields_of(Worker) == {"name": "required", "age": None, "job": "required"}
    assert fields_of(Computed) == {"a": "required"}
    assert fields_of(Checked) == {"a": "required", "b": list, "c": 3, "d": "required"}


@pytest.mark.parametrize("owner", [int, "Point", list[int], Point(1), tuple])
def test_others_have_no_fields(owner: Any) -> None:
    assert describe(owner) is None


@pytest.mark.parametrize("make", SCHEMAS)
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "name: is missing"),
        ({"name": "a", "job": "b"}, "has no key 'job'"),
        ({"name": "a", "age": None}, "age: is None: leave the key out"),
        ([("name", "a")], "takes dicts, not list"),
        ({"name": 1}, "name: takes text, not int"),
    ],
)
def test_a_dict_that_is_none_of_the_type_is_refused(make: Any, value: Any, text: str) -> None:
    with pytest.raises(SchemaSerializationError, match=text):
        make(Person).encode(value)


def test_a_key_that_may_be_absent_or_none_is_refused() -> None:
    class Both(TypedDict):
        a: NotRequired[int | None]

    with pytest.raises(InvalidConfigurationError, match=r"Both\.a may be absent, or None"):
        AvroSchema(Both)


def test_a_named_tuple_without_types_is_refused() -> None:
    bare: Any = namedtuple("bare", ["a"])  # noqa: PYI024 - on purpose

    with pytest.raises(InvalidConfigurationError, match=r"bare\.a has no type.*typing\.NamedTuple"):
        AvroSchema(bare)


def test_a_class_within_a_function_is_found_by_its_own_name_only() -> None:
    @dataclass
    class Leaf:
        leaves: list[Leaf]

    @dataclass
    class Twig:
        leaf: Leaf

    assert AvroSchema(Leaf).decode(AvroSchema(Leaf).encode(Leaf([Leaf([])]))) == Leaf([Leaf([])])
    with pytest.raises(InvalidConfigurationError, match=r"Leaf.*top level"):
        AvroSchema(Twig)
