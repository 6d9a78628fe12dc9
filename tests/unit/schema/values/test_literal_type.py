from __future__ import annotations

import pytest

from pulsar_py.schema.values.literal_type import LiteralType
from pulsar_py.schema.values.value_types import (
    BooleanType,
    BytesType,
    IntegerType,
    MisfitError,
    Names,
    StringType,
)

TEXTS = LiteralType(StringType(), ["a", "b"])
BYTES = LiteralType(BytesType(), [b"\xff"])


def test_the_definition_is_the_type_s() -> None:
    assert TEXTS.definition(Names()) == "string"
    assert TEXTS.branch == "string"
    assert [each.branch for each in TEXTS.children] == ["string"]


def test_its_values_are_taken_both_ways() -> None:
    assert TEXTS.to_avro("a") == TEXTS.from_avro("a") == TEXTS.to_json("a") == "a"
    assert TEXTS.from_json("b") == TEXTS.to_default("b") == "b"
    assert BYTES.from_json(BYTES.to_json(b"\xff")) == b"\xff"
    assert BYTES.from_avro(BYTES.to_default(b"\xff")) == b"\xff"
    assert BYTES.json_values() == ["/w=="]


@pytest.mark.parametrize("call", ["to_avro", "from_avro", "to_json", "from_json", "to_default"])
def test_others_are_refused_with_the_list(call: str) -> None:
    with pytest.raises(MisfitError, match="takes one of 'a', 'b', not str 'c'"):
        getattr(TEXTS, call)("c")


def test_true_is_not_one() -> None:
    with pytest.raises(MisfitError):
        LiteralType(IntegerType("long"), [1]).to_avro(True)
    with pytest.raises(MisfitError):
        LiteralType(BooleanType(), [True]).to_avro(1)
