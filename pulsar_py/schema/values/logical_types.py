"""Types of times, decimals and UUIDs in records: Avro's logical types (pure).

    date                     int            date
    time-millis, -micros     int, long      time
    timestamp-millis, -micros long          datetime with a time zone; read in UTC
    local-timestamp-…        long           datetime without a time zone
    decimal                  bytes          Decimal of a fixed scale
    uuid                     string         UUID

For AVRO, fastavro converts them; here they are only checked, since fastavro takes a datetime
without a time zone as one in UTC. In JSON all are text, ISO 8601 for times, which Jackson reads
into the classes of `java.time` without losing anything; what Jackson itself writes (seconds with a
fraction, arrays of numbers) and the plain numbers of Avro are read as well.

Source: the Avro 1.11 specification, logical types; the jackson-datatype-jsr310 module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.values.value_types import (
    AvroJson,
    BytesType,
    IntegerType,
    MisfitError,
    Names,
    StringType,
    ValueType,
    takes,
)

__all__ = ["DecimalType", "LogicalType", "UuidType", "decimal_of", "logical_type"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - without a time zone on purpose
_EPOCH_DATE: Final = date(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECONDS_A_DAY: Final = 86_400


class LogicalType(ValueType):
    """A date or time: a whole number of some unit."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._kind = _KINDS[name]
        self.branch = self._kind.underlying

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        del names
        return {"type": self.branch, "logicalType": self.name}

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        self._kind.check(value)
        return value

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`; a number is a default."""
        return self._of_number(plain) if type(plain) is int else plain

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        self._kind.check(value)
        text: str = value.isoformat()
        return text.replace("+00:00", "Z")

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`."""
        try:
            if isinstance(plain, str):
                value = self._kind.of_text(plain)
            elif isinstance(plain, list):
                value = self._kind.of_list(plain)
            elif isinstance(plain, float) and self._kind.of_seconds is not None:
                value = self._kind.of_seconds(plain)
            elif isinstance(plain, int) and not isinstance(plain, bool):
                return self._of_number(plain)
            else:
                raise takes(f"a {self.name}", plain)
        except (ValueError, TypeError, OverflowError) as error:
            raise MisfitError(f"{plain!r:.100} is not a {self.name}: {error}") from None
        self._kind.check(value)
        return value

    def to_default(self, value: Any) -> AvroJson:
        """See `ValueType`."""
        self._kind.check(value)
        return self._kind.number_of(value) // self._kind.divisor

    def _of_number(self, number: int) -> Any:
        try:
            return self._kind.of_number(number * self._kind.divisor)
        except (ValueError, OverflowError) as error:
            raise MisfitError(f"{self.name} {number}: {error}") from None


class _Kind:
    """The check of one kind of date or time, and its conversion to days or microseconds."""

    underlying = "long"
    divisor = 1  # counted units in one of Avro's
    of_seconds: Callable[[float], Any] | None = None

    def check(self, value: Any) -> None:
        """Raise MisfitError if the value is not of this kind."""
        raise NotImplementedError

    def number_of(self, value: Any) -> int:
        """The value as days or microseconds."""
        raise NotImplementedError

    def of_number(self, number: int) -> Any:
        """The value of a number of days or microseconds."""
        raise NotImplementedError

    def of_text(self, text: str) -> Any:
        """The value of a text in ISO 8601."""
        raise NotImplementedError

    def of_list(self, numbers: list[Any]) -> Any:
        """The value of an array of numbers, as Jackson writes it."""
        raise NotImplementedError


class _Date(_Kind):
    underlying = "int"

    def check(self, value: Any) -> None:
        if not isinstance(value, date) or isinstance(value, datetime):
            raise takes("dates", value)

    def number_of(self, value: Any) -> int:
        days: int = (value - _EPOCH_DATE).days
        return days

    def of_number(self, number: int) -> Any:
        return _EPOCH_DATE + timedelta(days=number)

    def of_text(self, text: str) -> Any:
        return date.fromisoformat(text)

    def of_list(self, numbers: list[Any]) -> Any:
        return date(*numbers)


class _Time(_Kind):
    def __init__(self, underlying: str, divisor: int) -> None:
        self.underlying = underlying
        self.divisor = divisor

    def check(self, value: Any) -> None:
        if not isinstance(value, time) or value.tzinfo is not None:
            raise takes("times without a time zone", value)

    def number_of(self, value: Any) -> int:
        return (datetime.combine(_EPOCH_DATE, value) - _LOCAL_EPOCH) // _MICROSECOND

    def of_number(self, number: int) -> Any:
        if not 0 <= number < _SECONDS_A_DAY * 1_000_000:
            raise ValueError("not within a day")
        return (_LOCAL_EPOCH + timedelta(microseconds=number)).time()

    def of_text(self, text: str) -> Any:
        return time.fromisoformat(text)

    def of_list(self, numbers: list[Any]) -> Any:
        return time(*_with_nanos(numbers, 3))


class _Timestamp(_Kind):
    def __init__(self, divisor: int) -> None:
        self.divisor = divisor

    def check(self, value: Any) -> None:
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise takes("datetimes with a time zone (LocalTimestamp takes those without)", value)

    def number_of(self, value: Any) -> int:
        micros: int = (value - _EPOCH) // _MICROSECOND
        return micros

    def of_number(self, number: int) -> Any:
        return _EPOCH + timedelta(microseconds=number)

    def of_seconds(self, seconds: float) -> Any:
        return _EPOCH + timedelta(microseconds=round(seconds * 1_000_000))

    def of_text(self, text: str) -> Any:
        return datetime.fromisoformat(text)

    def of_list(self, numbers: list[Any]) -> Any:
        raise TypeError(f"{len(numbers)} numbers are not a point in time")


class _LocalTimestamp(_Timestamp):
    of_seconds = None  # type: ignore[assignment] # Jackson writes arrays

    def check(self, value: Any) -> None:
        if not isinstance(value, datetime) or value.tzinfo is not None:
            raise takes("datetimes without a time zone", value)

    def number_of(self, value: Any) -> int:
        micros: int = (value - _LOCAL_EPOCH) // _MICROSECOND
        return micros

    def of_number(self, number: int) -> Any:
        return _LOCAL_EPOCH + timedelta(microseconds=number)

    def of_list(self, numbers: list[Any]) -> Any:
        return datetime(*_with_nanos(numbers, 6))  # noqa: DTZ001 - without on purpose


def _with_nanos(numbers: list[Any], index: int) -> list[Any]:
    """Jackson's numbers with the nanoseconds at `index`, if it wrote any, as microseconds."""
    if len(numbers) > index:
        numbers = [*numbers[:index], numbers[index] // 1000, *numbers[index + 1 :]]
    return numbers


_KINDS: Final[Mapping[str, _Kind]] = {
    "date": _Date(),
    "time-millis": _Time("int", 1000),
    "time-micros": _Time("long", 1),
    "timestamp-millis": _Timestamp(1000),
    "timestamp-micros": _Timestamp(1),
    "local-timestamp-millis": _LocalTimestamp(1000),
    "local-timestamp-micros": _LocalTimestamp(1),
}


_MAX_DECIMAL_BYTES: Final = 4096
_DECIMALS: Final = Context(prec=10_000)
"""A precision above the digits of the largest accepted decimal, so that nothing is rounded."""


def decimal_of(data: bytes, scale: int) -> Decimal:
    """The decimal with these bytes as its unscaled number, exactly.

    Raises:
        ValueError: There are too many bytes.
    """
    if len(data) > _MAX_DECIMAL_BYTES:
        raise ValueError(f"a decimal of {len(data)} bytes, more than {_MAX_DECIMAL_BYTES}")
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _DECIMALS)


class DecimalType(ValueType):
    """Decimals of `scale` digits after the point, and `precision` digits in all."""

    branch = "bytes"

    def __init__(self, precision: int, scale: int = 0) -> None:
        if precision < 1 or not 0 <= scale <= precision:
            raise InvalidConfigurationError(
                f"decimal of precision {precision} and scale {scale}: "
                "expected 0 <= scale <= precision"
            )
        self._precision = precision
        self._scale = scale

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        del names
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": self._precision,
            "scale": self._scale,
        }

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        if isinstance(value, int) and not isinstance(value, bool):
            value = Decimal(value)
        if not isinstance(value, Decimal):
            raise takes("decimals", value)
        if not value.is_finite():
            raise MisfitError(f"{value} can't be a decimal: expected a finite number")
        _sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)  # it is finite
        if -exponent > self._scale:
            raise MisfitError(f"{value!s:.100} has more than {self._scale} digits after the point")
        if len(digits) + exponent > self._precision - self._scale and value:
            raise MisfitError(
                f"{value!s:.100} has more than {self._precision - self._scale} digits before the"
                " point"
            )
        return value

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`; text is a default."""
        if not isinstance(plain, str):
            return plain
        try:
            return decimal_of(plain.encode("latin-1"), self._scale)
        except ValueError as error:
            raise MisfitError(f"{plain!r:.100} is not a default of a decimal: {error}") from None

    def is_own(self, value: Any) -> bool:
        """See `ValueType`; whole numbers are taken, and come back as decimals."""
        return isinstance(value, Decimal) and self.accepts(value)

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        return str(self.to_avro(value))

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`; numbers, too, with the digits that a float has."""
        if not isinstance(plain, str | int | float) or isinstance(plain, bool):
            raise takes("decimals", plain)
        try:
            return self.to_avro(Decimal(str(plain)))
        except InvalidOperation:
            raise MisfitError(f"{plain!r:.100} is not a decimal") from None

    def to_default(self, value: Any) -> AvroJson:
        """See `ValueType`."""
        unscaled = int(self.to_avro(value).scaleb(self._scale))
        size = unscaled.bit_length() // 8 + 1
        return unscaled.to_bytes(size, "big", signed=True).decode("latin-1")


class UuidType(ValueType):
    """UUIDs, as text."""

    branch = "string"

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        del names
        return {"type": "string", "logicalType": "uuid"}

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        if isinstance(value, UUID):
            return value
        raise takes("UUIDs", value)

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`; text is a default."""
        return self.from_json(plain) if isinstance(plain, str) else plain

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        return str(self.to_avro(value))

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`."""
        try:
            return UUID(plain)
        except (ValueError, AttributeError, TypeError):
            raise takes("UUIDs", plain) from None


_UNDERLYING: Final = (BytesType, IntegerType, StringType)


def logical_type(text: Mapping[str, Any], underlying: ValueType) -> ValueType | None:
    """The type of a definition with `logicalType`; None if Avro ignores that logical type here."""
    name = text.get("logicalType")
    if not isinstance(name, str) or not isinstance(underlying, _UNDERLYING):
        return None
    if name == "decimal" and isinstance(underlying, BytesType):
        precision, scale = text.get("precision"), text.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int):
            return None
        return DecimalType(precision, scale)
    if name == "uuid" and isinstance(underlying, StringType):
        return UuidType()
    kind = _KINDS.get(name)
    if kind is None or kind.underlying != underlying.branch:
        return None
    return LogicalType(name)
