"""Names and functions for `Annotated` give the Avro types that they say."""

from __future__ import annotations

from dataclasses import make_dataclass
from decimal import Decimal
from typing import Annotated, Any

import pytest

from pulsar_py.schema import AvroSchema, AvroType, Float32, Int32, decimal_of
from pulsar_py.schema.classes.type_builder import record_of
from pulsar_py.schema.values.value_types import Names


def test_they_can_be_part_of_unions_and_sets() -> None:
    same = {AvroType({"type": "int"}), AvroType({"type": "int"})}

    assert len(same) == 1
    assert hash(Int32) != hash(Float32)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Int32, "int"),
        (Int32 | None, ["null", "int"]),
        (Annotated[Int32, "a remark"], "int"),
        (
            Annotated[Decimal, decimal_of(4)],
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 0},
        ),
    ],
)
def test_they_replace_the_type(annotation: Any, expected: Any) -> None:
    definition = record_of(make_dataclass("R", [("it", annotation)])).definition(Names())

    assert definition["fields"][0]["type"] == expected


def test_values_are_checked_by_them() -> None:
    owner: Any = make_dataclass("R", [("it", Int32)])

    with pytest.raises(Exception, match="2147483648 is not an Avro int"):
        AvroSchema(owner).encode(owner(1 << 31))
