from __future__ import annotations

import collections.abc
import dataclasses
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, ClassVar, NewType, Optional, Union
from uuid import UUID

import pytest

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema import (
    AvroType,
    Float32,
    Int32,
    Integer,
    LocalTimestamp,
    Record,
    TimeMillis,
    TimestampMillis,
    decimal_of,
)
from pulsar_py.schema.classes.type_builder import record_of
from pulsar_py.schema.values.value_types import Names


class Colour(Enum):
    RED = 1
    GREEN = 2


class OldRecord(Record):
    x = Integer()


@dataclass
class Inner:
    a: str


@dataclass
class Tree:
    children: list[Tree] = field(default_factory=list)
    parent: Tree | None = None


UserId = NewType("UserId", int)


@dataclass
class Everything:
    _avro_namespace: ClassVar[str] = "com.example"
    a: bool
    b: int
    c: float
    d: str
    e: bytes
    f: datetime
    g: date
    h: time
    i: UUID
    j: Decimal
    k: Colour
    ll: list[Inner]
    m: dict[str, Inner]
    n: tuple[int, ...]
    o: set[str]
    p: Inner | None
    q: Union[int, str, None]  # noqa: UP007 - both spellings
    r: Optional[int]  # noqa: UP045 - both spellings
    s: OldRecord
    t: UserId
    u: Int32
    v: Float32
    w: TimestampMillis | None
    x: LocalTimestamp
    y: TimeMillis | None
    z: Annotated[Decimal, decimal_of(9, 2)]
    aa: Annotated[bytes, AvroType({"type": "fixed", "name": "Four", "size": 4})]
    bb: Annotated[int, "a remark"]
    cc: collections.abc.Sequence[int]
    dd: collections.abc.Mapping[str, int]
    ee: frozenset[int]
    ff: None


def definition(owner: type) -> Any:
    return record_of(owner).definition(Names())


def types(owner: type) -> dict[str, Any]:
    return {each["name"]: each["type"] for each in definition(owner)["fields"]}


def test_each_annotation_has_its_type() -> None:
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "string"}]}
    old = {
        "type": "record",
        "name": "OldRecord",
        "fields": [{"name": "x", "type": ["null", "int"]}],
    }

    assert types(Everything) == {
        "a": "boolean",
        "b": "long",
        "c": "double",
        "d": "string",
        "e": "bytes",
        "f": {"type": "long", "logicalType": "timestamp-micros"},
        "g": {"type": "int", "logicalType": "date"},
        "h": {"type": "long", "logicalType": "time-micros"},
        "i": {"type": "string", "logicalType": "uuid"},
        "j": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18},
        "k": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]},
        "ll": {"type": "array", "items": inner},
        "m": {"type": "map", "values": "Inner"},
        "n": {"type": "array", "items": "long"},
        "o": {"type": "array", "items": "string"},
        "p": ["null", "Inner"],
        "q": ["null", "long", "string"],
        "r": ["null", "long"],
        "s": old,
        "t": "long",
        "u": "int",
        "v": "float",
        "w": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
        "x": {"type": "long", "logicalType": "local-timestamp-micros"},
        "y": ["null", {"type": "int", "logicalType": "time-millis"}],
        "z": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        "aa": {"type": "fixed", "name": "Four", "size": 4},
        "bb": "long",
        "cc": {"type": "array", "items": "long"},
        "dd": {"type": "map", "values": "long"},
        "ee": {"type": "array", "items": "long"},
        "ff": "null",
    }


def test_name_and_namespace_are_the_class_s() -> None:
    text = definition(Everything)

    assert (text["name"], text["namespace"]) == ("Everything", "com.example")


def test_a_class_may_contain_itself() -> None:
    assert types(Tree) == {
        "children": {"type": "array", "items": "Tree"},
        "parent": ["null", "Tree"],
    }


@dataclass
class Defaults:
    a: int = 5
    b: str | None = None
    c: str | None = "x"
    d: Colour = Colour.RED
    e: list[int] = field(default_factory=lambda: [1])
    f: bytes = b"\xff"
    g: date = date(1970, 1, 2)
    h: Inner = field(default_factory=lambda: Inner("i"))
    i: bool = False
    j: int = field(default=7, init=False)


def test_defaults_are_avro_s_and_their_branch_stands_first() -> None:
    fields = {each["name"]: each for each in definition(Defaults)["fields"]}

    assert {name: each["default"] for name, each in fields.items()} == {
        "a": 5,
        "b": None,
        "c": "x",
        "d": "RED",
        "e": [1],
        "f": "\xff",
        "g": 1,
        "h": {"a": "i"},
        "i": False,
    }
    assert fields["b"]["type"] == ["null", "string"]
    assert fields["c"]["type"] == ["string", "null"]


def test_sequences_come_back_as_they_were_declared() -> None:
    node = record_of(Defaults)

    assert isinstance(record_of(Tuples).from_avro({"a": [1], "b": ["x"]}).a, tuple)
    assert record_of(Tuples).from_json({"a": [1], "b": ["x"]}) == Tuples((1,), frozenset({"x"}))
    assert node.from_json({}) == Defaults()


@dataclass(frozen=True, slots=True)
class Tuples:
    a: tuple[int, ...]
    b: frozenset[str]


def test_frozen_and_slotted_classes_do() -> None:
    node, value = record_of(Tuples), Tuples((1, 2), frozenset({"a"}))

    assert node.from_avro(node.to_avro(value)) == value


class NotARecord:
    pass


@pytest.mark.parametrize(
    "annotation", [Any, object, NotARecord, list, dict[int, str], tuple[int, str], "Missing"]
)
def test_what_says_nothing_to_avro_is_refused_with_its_field(annotation: Any) -> None:
    owner = dataclasses.make_dataclass("Owner", [("it", annotation)])

    with pytest.raises(InvalidConfigurationError, match="Owner"):
        record_of(owner)


@pytest.mark.parametrize("owner", [int, NotARecord, "text", Colour])
def test_other_classes_are_refused(owner: Any) -> None:
    with pytest.raises(InvalidConfigurationError):
        record_of(owner)


def test_a_default_that_does_not_fit_is_refused() -> None:
    owner = dataclasses.make_dataclass("Owner", [("it", int, field(default="text"))])
    union = dataclasses.make_dataclass("Owner", [("it", int | None, field(default="text"))])

    for each in (owner, union):
        with pytest.raises(InvalidConfigurationError, match=r"Owner\.it"):
            record_of(each)


def test_two_classes_of_one_name_are_refused() -> None:
    twin = dataclasses.make_dataclass("Inner", [("b", int)])
    owner = dataclasses.make_dataclass("Owner", [("one", Inner), ("two", twin)])

    with pytest.raises(InvalidConfigurationError, match="Inner"):
        definition(owner)


def test_annotations_of_avro_types_can_be_part_of_unions() -> None:
    assert hash(AvroType({"type": "int"})) == hash(AvroType({"type": "int"}))
