"""Errors name what was given and what to use; `docs/client/SCHEMAS.md` has the table of types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pytest

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.classes.refusals import avro_name, no_record, no_type

T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    it: T


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Box, "Box has no type in Avro: use a dataclass"),
        (Box[int], r"class SomeBox\(.*Box\[int\]\)"),
        ("Missing", "'Missing' has no type in Avro: its text names no class"),
        ({}, "use a dataclass"),
        (Callable[[int], str], "a function is no data: use str, for its name"),
        (Callable, "a function is no data"),
        (dict[int, str], r"dict\[int, str\] has no type in Avro: keys are texts"),
    ],
)
def test_no_type(annotation: Any, text: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=text):
        raise no_type(annotation)


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        (str, "use StringSchema"),
        (int, "use Int64Schema"),
        (list[int], "give a class with a field of it"),
        (int | None, "schema_definition|class with a field"),
        (Box(1), "that is an object: give its class, Box"),
        ([1], "a NamedTuple or a class derived from Record, or an Avro definition"),
    ],
)
def test_no_record(owner: Any, text: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=text):
        raise no_record(owner)


def test_names_of_avro_are_ascii() -> None:
    assert avro_name("_a1", "field") == "_a1"
    with pytest.raises(InvalidConfigurationError, match="field 'größe': names in Avro"):
        avro_name("größe", "field")
