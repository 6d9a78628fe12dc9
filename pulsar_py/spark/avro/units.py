"""Converts AVRO numbers between the units of the writer's and the reader's logical type (pure).

The unit of a decimal is its scale; that of a time is milliseconds, microseconds or nanoseconds. The
writer's number is converted to the reader's units, so that 1.23 stays 1.23; Java's Avro takes the
number as it is. Times are floored where the reader's unit is coarser; a decimal that would lose
digits is an error. Where only one of the two has a logical type, the number is taken as it is.

Source: the Avro 1.11 specification, logical types: decimals match if their scales do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pulsar_py.schema.avro.avro_nodes import AvroNode
from pulsar_py.spark.avro.conversions import Convert

__all__ = ["change_of_unit"]

_UNITS_PER_SECOND: Final[Mapping[str, int]] = {
    "millis": 1000,
    "micros": 1_000_000,
    "nanos": 1_000_000_000,
}
_TIMES: Final = {"timestamp": "instant", "local-timestamp": "instant", "time": "time of day"}


def change_of_unit(writer: AvroNode, reader: AvroNode) -> Convert | None:
    """Converts the writer's numbers, or bytes of decimals, to the reader's unit; None: as is."""
    scales = _scale(writer), _scale(reader)
    if scales[0] is not None and scales[1] is not None:
        return _rescaling(scales[1] - scales[0])
    (kind, before), (other, after) = _time(writer), _time(reader)
    if not kind or kind != other or before == after:
        return None
    if before < after:
        return lambda value: value * (after // before)
    return lambda value: value // (before // after)


def _scale(node: AvroNode) -> int | None:
    """The scale of a decimal; None for other types, and where precision and scale don't fit."""
    if node.kind not in ("bytes", "fixed") or node.text.get("logicalType") != "decimal":
        return None
    scale, precision = node.text.get("scale", 0), node.text.get("precision")
    is_sound = isinstance(scale, int) and isinstance(precision, int) and 0 <= scale <= precision
    return scale if is_sound else None


def _rescaling(digits: int) -> Convert | None:
    """Rescales a decimal by that many digits behind the point, negative for fewer."""
    if not digits:
        return None
    factor: int = 10 ** abs(digits)

    def rescaled(value: bytes) -> bytes:
        number = int.from_bytes(value, "big", signed=True)
        if digits > 0:
            number *= factor
        else:
            number, lost = divmod(number, factor)
            if lost:
                raise ValueError(
                    f"a decimal would lose digits: the reader's scale is {-digits} less than the "
                    f"writer's"
                )
        return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)

    return rescaled


def _time(node: AvroNode) -> tuple[str, int]:
    """The kind of time, and its units per second; empty and 0 for other types."""
    name, _, unit = str(node.text.get("logicalType")).rpartition("-")
    if node.kind not in ("int", "long") or name not in _TIMES or unit not in _UNITS_PER_SECOND:
        return "", 0
    return _TIMES[name], _UNITS_PER_SECOND[unit]
