"""Decimals that are `fixed` in a definition, on their way into payloads (pure).

In AVRO they are their digits as a whole number, big endian, with the sign extended to the size that
the definition says. fastavro is given these bytes: it writes negative numbers that have no room
without their first bits. In JSON they are text, as those of `bytes`, which they are made in the
definition that is written by.

Source: the Avro 1.11 specification, decimal.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pulsar_py.schema.named_types import defined_name, full_name
from pulsar_py.spark.avro.avro_nodes import AvroNode
from pulsar_py.spark.avro.avro_types import Shape
from pulsar_py.spark.avro.conversions import Convert, each, each_item, in_record, null_or

__all__ = ["fixed_decimals", "with_decimals_of_bytes"]

AvroJson: TypeAlias = Any
"""A definition, as the JSON of it."""

_DECIMALS: Final = Context(prec=100)


def fixed_decimals(node: AvroNode, shape: Shape) -> Convert | None:
    """What makes bytes of such decimals in a value of a type; None where it has none."""
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
        # What has members is not written by the topic's definition.
        case "union" if len(node.others) == 1:
            convert = fixed_decimals(node.others[0], shape)
    return null_or(convert)


def _to_bytes(size_bytes: int, scale: int) -> Convert:
    def to_bytes(value: Decimal) -> bytes:
        number = int(value.scaleb(scale, _DECIMALS))
        try:
            return number.to_bytes(size_bytes, "big", signed=True)
        except OverflowError:
            raise ValueError(f"{value} has no room in {size_bytes} bytes") from None

    return to_bytes


def with_decimals_of_bytes(definition: AvroJson) -> AvroJson:
    """The definition with such decimals as those of `bytes`."""
    return _Rewriter().rewrite(definition, None)


class _Rewriter:
    """Rewrites one definition."""

    def __init__(self) -> None:
        # By name, what is written for each of these decimals.
        self._known: dict[str, AvroJson] = {}

    def rewrite(self, text: AvroJson, namespace: str | None) -> AvroJson:
        if isinstance(text, list):
            return [self.rewrite(branch, namespace) for branch in text]
        if isinstance(text, str):
            return self._known.get(full_name(text, namespace)) or self._known.get(text, text)
        match text["type"]:
            case "record" | "error":
                return self._record(text, namespace)
            case "fixed":
                return self._fixed(text, namespace)
            case "enum":
                return text
        parts = ("items", "values", "type")
        return {
            key: self.rewrite(value, namespace) if key in parts else value
            for key, value in text.items()
        }

    def _record(self, text: Mapping[str, Any], namespace: str | None) -> AvroJson:
        inner = defined_name(text, namespace).rpartition(".")[0] or None
        fields = [{**field, "type": self.rewrite(field["type"], inner)} for field in text["fields"]]
        return {**text, "fields": fields}

    def _fixed(self, text: Mapping[str, Any], namespace: str | None) -> AvroJson:
        is_decimal = text.get("logicalType") == "decimal"
        if not is_decimal or not isinstance(text.get("precision"), int):
            return text
        kept = {key: text[key] for key in ("logicalType", "precision", "scale") if key in text}
        made = self._known[defined_name(text, namespace)] = {"type": "bytes", **kept}
        return made
