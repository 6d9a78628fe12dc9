"""Large answers are encoded in small pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.admin.json_text import TEXT_UNIT, EncodedJson, json_pieces, units_of, without_nulls

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["x" * 3 * TEXT_UNIT]),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(inner, min_size=9).map(tuple)
    ),
    max_leaves=60,
)


@given(VALUES, st.integers(1, 20))
def test_pieces_joined_are_the_text_without_nulls(value: Any, piece_units: int) -> None:
    text = json.dumps(without_nulls(value), separators=(",", ":"), ensure_ascii=False)
    assert "".join(json_pieces(value, piece_units)) == text


@pytest.mark.parametrize(
    "value",
    [
        list(range(1000)),
        {str(number): number for number in range(1000)},
        {str(number): {"a": [number] * 30, "b": "x" * 2 * TEXT_UNIT} for number in range(50)},
        {"inner": {"inner": [[[number], number] for number in range(500)]}},
    ],
)
def test_no_piece_has_more_units_than_it_may(value: Any) -> None:
    pieces = list(json_pieces(value, 100))
    assert "".join(pieces) == json.dumps(value, separators=(",", ":"))
    # A number, name or text in the piece stands before a comma, a colon or a bracket.
    ends = [sum(map(piece.count, (",", ":", "]", "}"))) for piece in pieces]
    assert max(ends) <= 2 * 100
    assert len(pieces) >= units_of(value, 10**6) // 100


def test_what_is_encoded_already_stands_where_it_belongs() -> None:
    def encoded(value: Any) -> EncodedJson:
        return EncodedJson(json_pieces(value))

    value = {"a": 1, "b": encoded({"x": [1, None]}), "c": [encoded(2), 3, encoded([4])]}
    assert "".join(json_pieces(value)) == '{"a":1,"b":{"x":[1,null]},"c":[2,3,[4]]}'
    assert "".join(json_pieces(encoded("z"))) == '"z"'


def test_counting_units_stops_at_the_limit() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert units_of(endless, 50) == 51
    assert units_of({"a": [1, None], "b" * TEXT_UNIT: "c" * TEXT_UNIT}, 50) == 7
