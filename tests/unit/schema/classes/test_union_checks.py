"""Unions whose values could not come back are refused, and all others bring them back."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, make_dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypedDict
from uuid import UUID

import pytest

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.schema import AvroSchema, Integer, JsonSchema, LocalTimestamp, Record


class Colour(Enum):
    RED = "r"
    BLUE = "b"


class Mood(Enum):
    BLUE = 1


@dataclass
class One:
    a: int


@dataclass
class Other:
    a: int
    b: str = "x"


@dataclass
class Twin:
    a: str


class Keys(TypedDict):
    k: int


class Old(Record):
    o = Integer()


VALUES: list[tuple[Any, list[Any]]] = [
    (type(None), [None]),
    (bool, [True, False]),
    (int, [0, 1, -7]),
    (float, [0.0, 1.0, 1.5]),
    (str, ["", "1", "RED", "YQ==", "2026-05-01", "NaN", str(UUID(int=1)), "true"]),
    (bytes, [b"", b"a"]),
    (Decimal, [Decimal(1), Decimal("1.5")]),
    (datetime, [datetime(2026, 5, 1, tzinfo=UTC)]),
    (LocalTimestamp, [datetime(2026, 5, 1)]),  # noqa: DTZ001 - without a time zone on purpose
    (date, [date(2026, 5, 1)]),
    (time, [time(0)]),
    (UUID, [UUID(int=1)]),
    (Colour, list(Colour)),
    (Mood, list(Mood)),
    (Literal["a", "RED"], ["a", "RED"]),
    (Literal[1, 3], [1, 3]),
    (list[int], [[], [1]]),
    (tuple[str, ...], [(), ("a",)]),
    (dict[str, int], [{}, {"a": 1}, {"k": 1}]),
    (One, [One(1)]),
    (Other, [Other(1)]),
    (Twin, [Twin("1")]),
    (Keys, [{"k": 2}]),
    (Old, [Old(o=1)]),
]


PAIRS = [
    (one | other, [*ours, *theirs])
    for (one, ours), (other, theirs) in itertools.permutations(VALUES, 2)
]


@pytest.mark.parametrize("make", [AvroSchema, JsonSchema])
@pytest.mark.parametrize(("union", "values"), PAIRS)
def test_a_union_is_refused_or_brings_back_all_its_values(
    make: Any, union: Any, values: list[Any]
) -> None:
    owner: Any = make_dataclass("Holder", [("it", union)])
    if (error := refusal(make, union)) is not None:
        assert "Holder.it: " in error
        assert ": use " in error
        return
    schema = make(owner)
    for value in values:
        back = schema.decode(schema.encode(owner(value))).it
        assert back == value
        assert type(back) is type(value)


def refusal(make: Any, union: Any) -> str | None:
    try:
        make(make_dataclass("Holder", [("it", union)]))
    except InvalidConfigurationError as error:
        return str(error)
    return None


def refused(make: Any, union: Any) -> bool:
    return refusal(make, union) is not None


@pytest.mark.parametrize(
    "union", [int | str, One | Other, Colour | None, date | datetime, float | Decimal, int | One]
)
def test_what_can_be_told_apart_is_taken_by_both(union: Any) -> None:
    assert not refused(AvroSchema, union)
    assert not refused(JsonSchema, union)


@pytest.mark.parametrize(
    "union", [str | bytes, str | date, Colour | Mood, One | Twin, Keys | dict[str, int]]
)
def test_what_json_can_t_tell_apart_is_taken_by_avro(union: Any) -> None:
    assert not refused(AvroSchema, union)
    assert refused(JsonSchema, union)


@pytest.mark.parametrize(
    "union", [int | datetime, str | UUID, bytes | Decimal, list[int] | set[str]]
)
def test_what_is_one_type_in_avro_is_refused(union: Any) -> None:
    assert refused(AvroSchema, union)
    assert refused(JsonSchema, union)


def test_unions_are_found_wherever_they_are() -> None:
    inner = make_dataclass("Inner", [("bad", list[dict[str, str | bytes]])])
    outer = make_dataclass("Outer", [("inner", inner | None)])

    with pytest.raises(
        InvalidConfigurationError, match=r"Inner\.bad: in JSON string and bytes look"
    ):
        JsonSchema(outer)


def test_a_number_that_is_text_in_json_is_refused_beside_texts() -> None:
    owner: Any = make_dataclass("Holder", [("it", float | str)])

    for value in (math.nan, math.inf):
        with pytest.raises(SchemaSerializationError, match=r"it: .* is text in JSON"):
            JsonSchema(owner).encode(owner(value))
    assert AvroSchema(owner).decode(AvroSchema(owner).encode(owner(math.inf))).it == math.inf
