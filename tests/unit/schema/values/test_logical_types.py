# ruff: noqa: DTZ001 - local times have no time zone
from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.values.logical_types import DecimalType, LogicalType, UuidType, logical_type
from pulsar_py.schema.values.value_types import (
    BytesType,
    FloatingType,
    IntegerType,
    MisfitError,
    Names,
    StringType,
    ValueType,
)

POINT = datetime(2021, 1, 1, tzinfo=UTC) + timedelta(microseconds=123456)
LOCAL = datetime(2021, 1, 1, 1, 2, 3, 4000)
UNIT = UUID(int=(1 << 64) | 2)

VALUES: list[tuple[ValueType, Any, Any, Any]] = [
    (LogicalType("date"), date(2021, 1, 1), "2021-01-01", 18628),
    (LogicalType("time-millis"), time(1, 2, 3, 4000), "01:02:03.004000", 3723004),
    (LogicalType("time-micros"), time(1, 2, 3), "01:02:03", 3723000000),
    (LogicalType("timestamp-micros"), POINT, "2021-01-01T00:00:00.123456Z", 1609459200123456),
    (
        LogicalType("timestamp-millis"),
        POINT.replace(microsecond=0),
        "2021-01-01T00:00:00Z",
        1609459200000,
    ),
    (LogicalType("local-timestamp-millis"), LOCAL, "2021-01-01T01:02:03.004000", 1609462923004),
    (LogicalType("local-timestamp-micros"), LOCAL, "2021-01-01T01:02:03.004000", 1609462923004000),
    (DecimalType(5, 2), Decimal("-1.25"), "-1.25", "\x83"),
    (UuidType(), UNIT, str(UNIT), str(UNIT)),
]


@pytest.mark.parametrize(("node", "value", "text", "default"), VALUES)
def test_json_has_text_and_defaults_have_what_avro_has(
    node: ValueType, value: Any, text: Any, default: Any
) -> None:
    assert node.to_json(value) == text
    assert node.from_json(text) == value
    assert node.to_default(value) == default
    assert node.from_avro(default) == value
    assert node.to_avro(value) == node.from_avro(value) == value


@pytest.mark.parametrize(
    ("node", "plain", "value"),
    [
        (LogicalType("timestamp-micros"), 1609459200.123456, POINT),
        (LogicalType("timestamp-micros"), 1609459200123456, POINT),
        (LogicalType("timestamp-millis"), 0, datetime(1970, 1, 1, tzinfo=UTC)),
        (LogicalType("date"), [2021, 1, 1], date(2021, 1, 1)),
        (LogicalType("date"), 18628, date(2021, 1, 1)),
        (LogicalType("time-millis"), [1, 2, 3, 4000000], time(1, 2, 3, 4000)),
        (LogicalType("time-micros"), [1, 2], time(1, 2)),
        (LogicalType("local-timestamp-micros"), [2021, 1, 1, 1, 2, 3, 4000000], LOCAL),
        (DecimalType(5, 2), 1.25, Decimal("1.25")),
        (DecimalType(5, 2), 7, Decimal(7)),
    ],
)
def test_what_jackson_writes_is_read(node: ValueType, plain: Any, value: Any) -> None:
    assert node.from_json(plain) == value


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (LogicalType("date"), POINT),
        (LogicalType("date"), 5),
        (LogicalType("time-micros"), time(1, tzinfo=UTC)),
        (LogicalType("timestamp-micros"), LOCAL),
        (LogicalType("timestamp-micros"), date(2021, 1, 1)),
        (LogicalType("local-timestamp-micros"), POINT),
        (DecimalType(5, 2), Decimal("1.255")),
        (DecimalType(5, 2), Decimal(1000)),
        (DecimalType(5, 2), Decimal("NaN")),
        (DecimalType(5, 2), 1.5),
        (UuidType(), str(UNIT)),
    ],
)
def test_what_does_not_fit_is_refused(node: ValueType, value: Any) -> None:
    with pytest.raises(MisfitError):
        node.to_avro(value)


@pytest.mark.parametrize(
    ("node", "plain"),
    [
        (LogicalType("date"), "yesterday"),
        (LogicalType("date"), 10**12),
        (LogicalType("date"), [2021, 13, 1]),
        (LogicalType("date"), 1.5),
        (LogicalType("date"), True),
        (LogicalType("time-micros"), -1),
        (LogicalType("time-micros"), ["a"]),
        (LogicalType("timestamp-micros"), [2021, 1, 1]),
        (LogicalType("timestamp-micros"), "2021-01-01T00:00:00"),
        (LogicalType("timestamp-micros"), 1e300),
        (LogicalType("local-timestamp-micros"), 1.5),
        (LogicalType("timestamp-millis"), 2**62),
        (DecimalType(5, 2), "many"),
        (DecimalType(5, 2), None),
        (UuidType(), "no"),
        (UuidType(), 5),
    ],
)
def test_json_that_does_not_fit_is_refused(node: ValueType, plain: Any) -> None:
    with pytest.raises(MisfitError):
        node.from_json(plain)


def test_zero_fits_any_decimal() -> None:
    assert DecimalType(2, 2).to_avro(Decimal("0.00")) == 0
    assert DecimalType(2, 2).to_avro(Decimal("0.99")) == Decimal("0.99")


def test_a_decimal_needs_bounds_that_make_sense() -> None:
    with pytest.raises(InvalidConfigurationError, match="scale"):
        DecimalType(2, 3)


def test_definitions_name_the_logical_type() -> None:
    assert LogicalType("date").definition(Names()) == {"type": "int", "logicalType": "date"}
    assert UuidType().definition(Names()) == {"type": "string", "logicalType": "uuid"}
    assert DecimalType(5, 2).definition(Names()) == {
        "type": "bytes",
        "logicalType": "decimal",
        "precision": 5,
        "scale": 2,
    }


@pytest.mark.parametrize(
    ("text", "underlying"),
    [
        ({"logicalType": "date"}, IntegerType("long")),
        ({"logicalType": "unheard-of"}, IntegerType("long")),
        ({"logicalType": "decimal"}, BytesType()),
        ({"logicalType": "decimal", "precision": 5}, StringType()),
        ({"logicalType": "uuid"}, BytesType()),
        ({"logicalType": 5}, BytesType()),
        ({"logicalType": "date"}, FloatingType("double")),
        ({}, StringType()),
    ],
)
def test_a_logical_type_that_means_nothing_is_left_out(text: Any, underlying: ValueType) -> None:
    assert logical_type(text, underlying) is None


@pytest.mark.parametrize("value", [Decimal("1" * 10_000), Decimal("0." + "1" * 10_000)])
def test_errors_do_not_repeat_all_of_a_decimal(value: Decimal) -> None:
    with pytest.raises(MisfitError) as caught:
        DecimalType(6, 2).to_avro(value)
    assert len(str(caught.value)) < 200
