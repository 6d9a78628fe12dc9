"""Encodes decimals whose Avro type is `fixed` (pure).

In AVRO they are their unscaled number, big endian, with the sign extended to the size of the type.
This module makes these bytes, and not fastavro, which cuts off the first bits of negative numbers
that do not fit. In JSON they are text, as decimals of `bytes` are; so for JSON the tree of the
definition gets decimals of `bytes` in their places.

Source: the Avro 1.11 specification, decimal.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal
from typing import Final

import pyarrow as pa

from pulsar_py.schema.avro.avro_nodes import AvroNode
from pulsar_py.spark.avro.conversions import Convert, each, each_item, in_record, null_or
from pulsar_py.spark.avro.shapes import Shape

__all__ = ["fixed_decimals", "with_decimals_of_bytes"]

_DECIMALS: Final = Context(prec=100)


def fixed_decimals(node: AvroNode, shape: Shape) -> Convert | None:
    """Converts the `fixed` decimals of a value to bytes; None where its type has none."""
    convert: Convert | None = None
    match node.kind:
        case "fixed" if pa.types.is_decimal(shape.arrow_type):
            convert = _to_bytes(node.text["size"], shape.arrow_type.scale)
        case "array":
            convert = each(fixed_decimals(node.children[0], shape.children[0]))
        case "map":
            convert = each_item(fixed_decimals(node.children[0], shape.children[0]))
        case "record":
            children = zip(node.fields, node.children, shape.children, strict=True)
            found = [(text["name"], fixed_decimals(child, kind)) for text, child, kind in children]
            convert = in_record([(name, made) for name, made in found if made is not None])
        # Unions of other kinds are structs of members, which `value_encoder` never writes.
        case "union" if len(node.others) == 1:
            convert = fixed_decimals(node.others[0], shape)
    return null_or(convert)


def _to_bytes(size_bytes: int, scale: int) -> Convert:
    def to_bytes(value: Decimal) -> bytes:
        number = int(value.scaleb(scale, _DECIMALS))
        try:
            return number.to_bytes(size_bytes, "big", signed=True)
        except OverflowError:
            raise ValueError(
                f"{value} does not fit into the {size_bytes} bytes of its fixed type"
            ) from None

    return to_bytes


def with_decimals_of_bytes(root: AvroNode) -> AvroNode:
    """The tree with decimals of `bytes` for those of `fixed`; no record may contain itself."""
    known: dict[int, AvroNode] = {}

    def made(node: AvroNode) -> AvroNode:
        if node.kind == "fixed":
            # Without a precision that is a number it is plain bytes, as in `shapes`.
            is_decimal = node.text.get("logicalType") == "decimal"
            is_decimal = is_decimal and isinstance(node.text.get("precision"), int)
            return AvroNode("bytes", node.text) if is_decimal else node
        return replace(node, children=[of(each) for each in node.children])

    def of(node: AvroNode) -> AvroNode:
        # Each named type is converted once: if a type is used twice at each level of nesting, the
        # work would double with each level.
        if id(node) not in known:
            known[id(node)] = made(node)
        return known[id(node)]

    return of(root)
