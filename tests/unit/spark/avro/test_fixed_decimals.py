"""Decimals of Avro's `fixed` become the bytes of their size."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pulsar_py.schema.avro.avro_nodes import AvroNode, avro_node
from pulsar_py.spark.avro.conversions import Convert
from pulsar_py.spark.avro.fixed_decimals import fixed_decimals, with_decimals_of_bytes
from pulsar_py.spark.avro.shapes import shape_of

LOGICAL = {"logicalType": "decimal", "precision": 8, "scale": 2}
FIXED = {"type": "fixed", "name": "D", "size": 4, **LOGICAL}
BYTES = {"type": "bytes", **LOGICAL}


def record(*types: Any, **more: Any) -> dict[str, Any]:
    fields = [{"name": f"f{index}", "type": each} for index, each in enumerate(types)]
    return {"type": "record", "name": "R", "fields": fields, **more}


def converted(definition: Any) -> Convert | None:
    node = avro_node(definition)
    return fixed_decimals(node, shape_of(node))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("1.25", b"\0\0\0\x7d"),
        ("-0.01", b"\xff\xff\xff\xff"),
        ("0", bytes(4)),
        ("-21474836.48", b"\x80\0\0\0"),
    ],
)
def test_the_sign_fills_the_size(number: str, expected: bytes) -> None:
    convert = converted(FIXED)
    assert convert is not None
    assert convert(Decimal(number)) == expected


@pytest.mark.parametrize("number", ["327.68", "-327.69"])
def test_what_has_no_room_is_refused(number: str) -> None:
    convert = converted(record({**FIXED, "size": 2}))
    assert convert is not None
    with pytest.raises(ValueError, match=f"f0: {number} does not fit into the 2 bytes"):
        convert({"f0": Decimal(number)})


def test_they_are_found_wherever_they_stand() -> None:
    convert = converted(
        record(["null", FIXED], {"type": "array", "items": "D"}, {"type": "map", "values": "D"})
    )
    assert convert is not None
    one, data = Decimal("0.01"), b"\0\0\0\1"
    assert convert({"f0": None, "f1": [one], "f2": {"k": one}}) == {
        "f0": None,
        "f1": [data],
        "f2": {"k": data},
    }


def test_others_need_nothing() -> None:
    assert converted(record(BYTES, "int", {"type": "fixed", "name": "F", "size": 2})) is None


def test_decimals_of_bytes_stand_in_their_places() -> None:
    plain = {"type": "fixed", "name": "F", "size": 2}
    enum = {"type": "enum", "name": "E", "symbols": ["D"]}
    definition = record(
        FIXED, ["null", "D"], {"type": "array", "items": {"type": "n.D"}}, plain, "F", enum,
        namespace="n",
    )  # fmt: skip
    expected = record(
        BYTES, ["null", BYTES], {"type": "array", "items": BYTES}, plain, "F", enum, namespace="n"
    )
    made = with_decimals_of_bytes(avro_node(definition))
    assert seen(made) == seen(avro_node(expected))


def seen(node: AvroNode) -> Any:
    """What can be told of a tree, but for the texts of records."""
    logical = [node.text.get(each) for each in LOGICAL]
    return node.kind, logical, [seen(each) for each in node.children]


def test_types_that_are_used_twice_a_level_are_made_once() -> None:
    node = avro_node(record("int"))
    for _ in range(60):
        fields = [{"name": "a"}, {"name": "b"}]
        node = AvroNode("record", {"name": "R", "fields": fields}, "R", [node, node])
    made = with_decimals_of_bytes(node)
    assert made.children[0] is made.children[1]


@pytest.mark.parametrize("precision", [None, "8"])
def test_a_decimal_without_a_precision_stays_what_it_is(precision: object) -> None:
    node = avro_node({**FIXED, "precision": precision})
    assert with_decimals_of_bytes(node) is node
