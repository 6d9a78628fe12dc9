from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

import pytest

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.values.named_types import EnumType, FixedType, full_name
from pulsar_py.schema.values.value_types import MisfitError, Names


class Colour(Enum):
    RED = 1
    GREEN = 2


def colours(namespace: str | None = None) -> EnumType:
    return EnumType("Colour", namespace, Colour.__members__, Colour)


def test_a_type_is_defined_once_and_then_referred_to() -> None:
    names, node = Names(), colours()

    assert node.definition(names) == {
        "type": "enum",
        "name": "Colour",
        "symbols": ["RED", "GREEN"],
    }
    assert node.definition(names) == "Colour"
    assert colours().definition(names) == "Colour"


def test_a_name_of_another_namespace_is_said_in_full() -> None:
    names, node = Names(), colours("other")
    node.definition(names)
    names.namespace = "com.example"

    assert node.definition(names) == "other.Colour"
    assert node.branch == "other.Colour"


def test_two_types_of_one_name_are_refused() -> None:
    names = Names()
    colours().definition(names)

    with pytest.raises(InvalidConfigurationError, match="Colour"):
        EnumType("Colour", None, ["BLUE"]).definition(names)


def test_members_travel_by_name() -> None:
    node = colours()

    assert node.to_avro(Colour.GREEN) == node.to_json(Colour.GREEN) == "GREEN"
    assert node.from_avro("GREEN") is node.from_json("GREEN") is Colour.GREEN


def test_values_of_members_are_read_too_as_the_official_client_writes_them() -> None:
    assert colours().from_json(2) is Colour.GREEN


def test_symbols_without_members_are_text() -> None:
    node = EnumType("Colour", None, ["RED"])

    assert node.to_avro("RED") == node.from_avro("RED") == node.from_json("RED") == "RED"
    assert node.from_json(1) == 1


class Other(IntEnum):
    RED = 1


@pytest.mark.parametrize("value", ["BLUE", 3, None, Other.RED, [1]])
def test_what_is_no_member_is_refused(value: Any) -> None:
    with pytest.raises(MisfitError, match="RED, GREEN"):
        colours().to_avro(value)


@pytest.mark.parametrize("plain", ["BLUE", 3, None, [1]])
def test_json_of_no_member_is_refused(plain: Any) -> None:
    with pytest.raises(MisfitError):
        colours().from_json(plain)


def test_a_default_for_unknown_symbols_is_kept() -> None:
    node = EnumType("Colour", None, ["RED"], default="RED")

    assert node.definition(Names())["default"] == "RED"


def test_fixed_sizes_are_kept() -> None:
    node = FixedType("Two", None, 2)

    assert node.definition(Names()) == {"type": "fixed", "name": "Two", "size": 2}
    assert node.to_avro(b"ab") == node.from_json(node.to_json(b"ab")) == b"ab"
    assert node.from_avro(node.to_default(b"a\xff")) == b"a\xff"
    with pytest.raises(MisfitError, match="2 bytes"):
        node.to_avro(b"abc")


@pytest.mark.parametrize(
    ("name", "namespace", "whole"),
    [("A", None, "A"), ("A", "x.y", "x.y.A"), ("z.A", "x.y", "z.A"), ("A", "", "A")],
)
def test_full_names(name: str, namespace: str | None, whole: str) -> None:
    assert full_name(name, namespace) == whole
