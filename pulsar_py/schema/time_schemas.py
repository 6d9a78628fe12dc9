"""Schemas of dates and times, encoded as in Pulsar's Java client (pure).

All big endian and signed:

    DATE             millis:i64                  since 1970 in UTC   datetime with a time zone
    TIMESTAMP        millis:i64                  since 1970 in UTC   datetime with a time zone
    TIME             millis:i64                  since midnight UTC  time
    INSTANT          seconds:i64 nanos:i32       since 1970 in UTC   datetime with a time zone
    LOCAL_DATE       days:i64                    since 1970-01-01    date
    LOCAL_TIME       nanos:i64                   since midnight      time
    LOCAL_DATE_TIME  days:i64 nanos:i64          both of them        datetime without a time zone

A datetime to be encoded as a point in time must have a time zone; decoded ones are in UTC. Python
counts microseconds: decoding cuts nanoseconds off, and encoding to milliseconds rounds towards the
past, as Java's `Instant.toEpochMilli` does. `java.util.Date` is a point in time, too; a `date` is
taken as its midnight in UTC. `java.sql.Time` may hold a day, which a `time` does not keep.

Source: DateSchema, TimeSchema, TimestampSchema, InstantSchema, LocalDateSchema, LocalTimeSchema,
LocalDateTimeSchema in Pulsar's Java client.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from struct import Struct
from typing import ClassVar, Final

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema.primitive_schemas import misfit, wrong_size
from pulsar_py.schema.schema import Schema, T
from pulsar_py.schema.schema_info import SchemaInfo, SchemaType

__all__ = [
    "DateSchema",
    "InstantSchema",
    "LocalDateSchema",
    "LocalDateTimeSchema",
    "LocalTimeSchema",
    "TimeSchema",
    "TimestampSchema",
]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY_MILLIS: Final = 86_400_000
_DAY_NANOS: Final = 86_400_000_000_000
_I64: Final = Struct(">q")
_SECONDS_NANOS: Final = Struct(">qi")
_DAYS_NANOS: Final = Struct(">qq")


class _TimeSchema(Schema[T]):
    """The common part of these schemas: a type, a size, and errors."""

    schema_type: ClassVar[SchemaType]
    layout: ClassVar[Struct]
    java_name: ClassVar[str]

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        return SchemaInfo(self.schema_type, self.java_name)

    def _numbers(self, data: bytes) -> tuple[int, ...]:
        if len(data) != self.layout.size:
            raise wrong_size(self.schema_type, data, self.layout.size)
        return self.layout.unpack(data)

    def _out_of_range(self, *numbers: int) -> SchemaSerializationError:
        text = ", ".join(str(number) for number in numbers)
        return SchemaSerializationError(f"{self.schema_type.name} {text}: beyond Python's years")


class _PointSchema(_TimeSchema[datetime]):
    """A point in time."""

    def _micros(self, value: datetime) -> int:
        if not isinstance(value, datetime):
            raise misfit(self.schema_type, value, "datetimes")
        if value.tzinfo is None:
            raise misfit(self.schema_type, value, "datetimes with a time zone")
        return (value - _EPOCH) // _MICROSECOND

    def _point(self, micros: int) -> datetime:
        try:
            return _EPOCH + timedelta(microseconds=micros)
        except OverflowError:
            raise self._out_of_range(micros) from None


class TimestampSchema(_PointSchema):
    """`java.sql.Timestamp`, in milliseconds."""

    schema_type = SchemaType.TIMESTAMP
    layout = _I64
    java_name = "Timestamp"

    def encode(self, value: datetime) -> bytes:
        """See `Schema`."""
        return _I64.pack(self._micros(value) // 1000)

    def decode(self, data: bytes) -> datetime:
        """See `Schema`."""
        return self._point(self._numbers(data)[0] * 1000)


class DateSchema(TimestampSchema):
    """`java.util.Date`: a point in time in milliseconds, whatever its name says."""

    schema_type = SchemaType.DATE
    java_name = "Date"

    def encode(self, value: date) -> bytes:
        """See `Schema`; a date without time is its midnight in UTC."""
        if not isinstance(value, date):
            raise misfit(self.schema_type, value, "datetimes and dates")
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
        return _I64.pack(self._micros(value) // 1000)


class InstantSchema(_PointSchema):
    """`java.time.Instant`, in nanoseconds."""

    schema_type = SchemaType.INSTANT
    layout = _SECONDS_NANOS
    java_name = "Instant"

    def encode(self, value: datetime) -> bytes:
        """See `Schema`."""
        seconds, micros = divmod(self._micros(value), 1_000_000)
        return _SECONDS_NANOS.pack(seconds, micros * 1000)

    def decode(self, data: bytes) -> datetime:
        """See `Schema`."""
        seconds, nanos = self._numbers(data)
        return self._point(seconds * 1_000_000 + nanos // 1000)


class TimeSchema(_TimeSchema[time]):
    """`java.sql.Time`: a time of day in UTC, in milliseconds."""

    schema_type = SchemaType.TIME
    layout = _I64
    java_name = "Time"

    def encode(self, value: time) -> bytes:
        """See `Schema`."""
        return _I64.pack(_micros_of_day(self.schema_type, value) // 1000)

    def decode(self, data: bytes) -> time:
        """See `Schema`; a day in the value, which `java.sql.Time` may hold, is dropped."""
        return _time_of_day(self._numbers(data)[0] % _DAY_MILLIS * 1000)


class LocalTimeSchema(_TimeSchema[time]):
    """`java.time.LocalTime`, in nanoseconds."""

    schema_type = SchemaType.LOCAL_TIME
    layout = _I64
    java_name = "LocalTime"

    def encode(self, value: time) -> bytes:
        """See `Schema`."""
        return _I64.pack(_micros_of_day(self.schema_type, value) * 1000)

    def decode(self, data: bytes) -> time:
        """See `Schema`."""
        (nanos,) = self._numbers(data)
        if not 0 <= nanos < _DAY_NANOS:
            raise SchemaSerializationError(f"LOCAL_TIME {nanos}: a day has {_DAY_NANOS} ns")
        return _time_of_day(nanos // 1000)


class LocalDateSchema(_TimeSchema[date]):
    """`java.time.LocalDate`."""

    schema_type = SchemaType.LOCAL_DATE
    layout = _I64
    java_name = "LocalDate"

    def encode(self, value: date) -> bytes:
        """See `Schema`."""
        if not isinstance(value, date) or isinstance(value, datetime):
            raise misfit(self.schema_type, value, "dates")
        return _I64.pack(value.toordinal() - _EPOCH_DAY)

    def decode(self, data: bytes) -> date:
        """See `Schema`."""
        (days,) = self._numbers(data)
        try:
            return date.fromordinal(days + _EPOCH_DAY)
        except (ValueError, OverflowError):
            raise self._out_of_range(days) from None


class LocalDateTimeSchema(_TimeSchema[datetime]):
    """`java.time.LocalDateTime`: date and time without a time zone, so not a point in time."""

    schema_type = SchemaType.LOCAL_DATE_TIME
    layout = _DAYS_NANOS
    java_name = "LocalDateTime"

    def encode(self, value: datetime) -> bytes:
        """See `Schema`."""
        if not isinstance(value, datetime) or value.tzinfo is not None:
            raise misfit(self.schema_type, value, "datetimes without a time zone")
        nanos = _micros_of_day(self.schema_type, value.time()) * 1000
        return _DAYS_NANOS.pack(value.toordinal() - _EPOCH_DAY, nanos)

    def decode(self, data: bytes) -> datetime:
        """See `Schema`."""
        days, nanos = self._numbers(data)
        if not 0 <= nanos < _DAY_NANOS:
            raise SchemaSerializationError(f"LOCAL_DATE_TIME {nanos}: a day has {_DAY_NANOS} ns")
        try:
            day = date.fromordinal(days + _EPOCH_DAY)
        except (ValueError, OverflowError):
            raise self._out_of_range(days, nanos) from None
        return datetime.combine(day, _time_of_day(nanos // 1000))


def _micros_of_day(schema_type: SchemaType, value: time) -> int:
    if not isinstance(value, time) or value.tzinfo is not None:
        raise misfit(schema_type, value, "times without a time zone")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def _time_of_day(micros: int) -> time:
    seconds, microsecond = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return time(hour, minute, second, microsecond)
