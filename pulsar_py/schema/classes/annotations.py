"""Values for `Annotated` that choose a field's Avro type in place of its Python type's (values).

    Annotated[int, AvroType("int")]             any type that Avro has
    Annotated[Decimal, decimal_of(9, 2)]        decimals with so many digits
    Int32, Float32, TimestampMillis, …          names for the usual ones

Source: the Avro 1.11 specification.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, time
from typing import Annotated, Any

__all__ = [
    "AvroType",
    "Float32",
    "Int32",
    "LocalTimestamp",
    "TimeMillis",
    "TimestampMillis",
    "decimal_of",
]


@dataclass(frozen=True)
class AvroType:
    """For `Annotated`: the Avro type of a field, instead of that of its Python type."""

    definition: Any  # Any: text or object, as Avro definitions have it

    def __hash__(self) -> int:
        """Unions of annotations need it."""
        return hash(json.dumps(self.definition, sort_keys=True))


def decimal_of(precision: int, scale: int = 0) -> AvroType:
    """For `Annotated`: decimals of `precision` digits, `scale` of them after the point."""
    return AvroType(
        {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    )


Int32 = Annotated[int, AvroType("int")]
"""A whole number of 32 bits."""
Float32 = Annotated[float, AvroType("float")]
"""A floating-point number of 32 bits."""
TimestampMillis = Annotated[datetime, AvroType({"type": "long", "logicalType": "timestamp-millis"})]
"""A point in time, in milliseconds."""
LocalTimestamp = Annotated[
    datetime, AvroType({"type": "long", "logicalType": "local-timestamp-micros"})
]
"""Date and time without a time zone, in microseconds."""
TimeMillis = Annotated[time, AvroType({"type": "int", "logicalType": "time-millis"})]
"""A time of day in milliseconds, as Java's client writes `LocalTime` in records."""
