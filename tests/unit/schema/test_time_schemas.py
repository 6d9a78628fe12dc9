"""Bytes as Apache Pulsar 4.2.4's Java client makes them."""
# ruff: noqa: DTZ001 - local times have no time zone

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import pytest

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema import (
    DateSchema,
    InstantSchema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    Schema,
    SchemaType,
    TimeSchema,
    TimestampSchema,
)

NEW_YEAR = datetime(2021, 1, 1, tzinfo=UTC)

VECTORS: list[tuple[Schema[Any], Any, str]] = [
    (DateSchema(), NEW_YEAR + timedelta(milliseconds=123), "00000176bb3e707b"),
    (DateSchema(), datetime(1969, 12, 31, 23, 59, 59, 999000, UTC), "ffffffffffffffff"),
    (TimestampSchema(), NEW_YEAR + timedelta(milliseconds=123), "00000176bb3e707b"),
    (TimeSchema(), time(1, 2, 3, 4000), "000000000038cefc"),
    (InstantSchema(), NEW_YEAR + timedelta(microseconds=123456), "000000005fee6600075bca00"),
    (LocalDateSchema(), date(2021, 1, 1), "00000000000048c4"),
    (LocalDateSchema(), date(1969, 12, 31), "ffffffffffffffff"),
    (LocalTimeSchema(), time(1, 2, 3, 4), "00000362d417bda0"),
    (LocalDateTimeSchema(), datetime(2021, 1, 1, 1, 2, 3, 4), "00000000000048c400000362d417bda0"),
]


@pytest.mark.parametrize(("schema", "value", "data"), VECTORS)
def test_bytes_are_java_s(schema: Schema[Any], value: Any, data: str) -> None:
    assert schema.encode(value).hex() == data
    assert schema.decode(bytes.fromhex(data)) == value


@pytest.mark.parametrize(
    ("schema", "data", "value"),
    [
        (
            InstantSchema(),
            "000000005fee6600075bcd15",
            NEW_YEAR + timedelta(microseconds=123456),
        ),
        (
            InstantSchema(),
            "ffffffffffffffff3b9ac9ff",
            datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        ),
        (
            LocalDateTimeSchema(),
            "ffffffffffffffff00004e94914effff",
            datetime(1969, 12, 31, 23, 59, 59, 999999),
        ),
        (TimeSchema(), "ffffffffffffffff", time(23, 59, 59, 999000)),
        (TimeSchema(), "00000176bb3e707b", time(0, 0, 0, 123000)),
    ],
)
def test_what_java_can_say_and_python_can_not_is_cut(
    schema: Schema[Any], data: str, value: Any
) -> None:
    assert schema.decode(bytes.fromhex(data)) == value


def test_milliseconds_are_rounded_towards_the_past() -> None:
    late = datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)

    assert TimestampSchema().encode(late).hex() == "ffffffffffffffff"


def test_points_in_time_come_in_utc() -> None:
    east = datetime(2021, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))

    decoded = InstantSchema().decode(InstantSchema().encode(east))

    assert decoded == east
    assert decoded.tzinfo is UTC


def test_a_day_is_its_midnight_for_java_s_date() -> None:
    assert DateSchema().decode(DateSchema().encode(date(2021, 1, 1))) == NEW_YEAR


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (DateSchema(), "2021"),
        (TimestampSchema(), datetime(2021, 1, 1)),
        (InstantSchema(), datetime(2021, 1, 1)),
        (InstantSchema(), date(2021, 1, 1)),
        (TimeSchema(), time(1, tzinfo=UTC)),
        (LocalDateSchema(), NEW_YEAR),
        (LocalTimeSchema(), 5),
        (LocalDateTimeSchema(), NEW_YEAR),
        (LocalDateTimeSchema(), date(2021, 1, 1)),
    ],
)
def test_what_does_not_fit_is_refused(schema: Schema[Any], value: Any) -> None:
    with pytest.raises(SchemaSerializationError, match=schema.schema_info().type.name):
        schema.encode(value)


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (TimestampSchema(), "7fffffffffffffff"),
        (DateSchema(), "8000000000000000"),
        (InstantSchema(), "7fffffffffffffff00000000"),
        (LocalDateSchema(), "7fffffffffffffff"),
        (LocalTimeSchema(), "7fffffffffffffff"),
        (LocalTimeSchema(), "ffffffffffffffff"),
        (LocalDateTimeSchema(), "7fffffffffffffff0000000000000000"),
        (LocalDateTimeSchema(), "00000000000000007fffffffffffffff"),
        (LocalDateTimeSchema(), "00"),
    ],
)
def test_bytes_that_no_value_has_are_refused(schema: Schema[Any], data: str) -> None:
    with pytest.raises(SchemaSerializationError):
        schema.decode(bytes.fromhex(data))


def test_definitions_are_java_s() -> None:
    schemas = [
        DateSchema(),
        TimeSchema(),
        TimestampSchema(),
        InstantSchema(),
        LocalDateSchema(),
        LocalTimeSchema(),
        LocalDateTimeSchema(),
    ]

    infos = [each.schema_info() for each in schemas]

    assert [(each.type, each.name) for each in infos] == [
        (SchemaType.DATE, "Date"),
        (SchemaType.TIME, "Time"),
        (SchemaType.TIMESTAMP, "Timestamp"),
        (SchemaType.INSTANT, "Instant"),
        (SchemaType.LOCAL_DATE, "LocalDate"),
        (SchemaType.LOCAL_TIME, "LocalTime"),
        (SchemaType.LOCAL_DATE_TIME, "LocalDateTime"),
    ]
    assert not any(each.data for each in infos)
