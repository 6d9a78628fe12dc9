"""The tree of types that dataclasses, `Record` classes and Avro definitions become (pure).

A node knows its Avro definition, and converts Python values to the forms of fastavro and of JSON,
and back. It checks values that are encoded, because fastavro accepts numbers that no Avro reader
could read back; and values that are decoded, because anybody may have written them.

    Python value  --to_avro-->  what fastavro writes    --from_avro-->  Python value
    Python value  --to_json-->  what json.dumps writes  --from_json-->  Python value

A value that doesn't fit raises `MisfitError`, to which each enclosing record, array and map adds a
step of the path; the schema converts it to a SchemaSerializationError. Nodes belong to one schema:
`definition` sets their full names.

This module has primitive types; `named_types` has enumerations and fixed sizes, `collection_types`
arrays and maps, `logical_types` times, decimals and UUIDs, `record_types` unions and records.

Source: the Avro 1.11 specification; JSON as Jackson writes it in Pulsar's Java client.
"""

from __future__ import annotations

import base64
import binascii
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Final

__all__ = [
    "AvroJson",
    "BooleanType",
    "BytesType",
    "FloatingType",
    "IntegerType",
    "MisfitError",
    "Names",
    "NullType",
    "StringType",
    "ValueType",
    "takes",
]

AvroJson = Any  # Any: what JSON can hold
"""An Avro definition: text, list or object."""


class MisfitError(Exception):
    """A value doesn't fit its type; schemas convert it to SchemaSerializationError."""

    def __init__(self, text: str, where: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.where = where

    def inside(self, step: str) -> MisfitError:
        """The same error with `step` before its path, for the enclosing type to raise."""
        separator = "." if self.where and not self.where.startswith("[") else ""
        return MisfitError(self.text, f"{step}{separator}{self.where}")

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


def takes(wanted: str, value: object) -> MisfitError:
    """The error for a value of a wrong type."""
    return MisfitError(f"takes {wanted}, not {type(value).__name__} {value!r:.100}")


class Names:
    """The named types that a definition has defined so far, and its namespace."""

    def __init__(self) -> None:
        self.defined: dict[str, Any] = {}  # Any: a NamedType, which knows this class
        self.namespace: str | None = None

    def reference(self, name: str) -> str:
        """The shortest name by which a defined type can be referred to here."""
        namespace, _, short = name.rpartition(".")
        return short if namespace == (self.namespace or "") else name


class ValueType(ABC):
    """One type. The default methods suit values that are the same in Python, Avro and JSON."""

    branch: str
    """The name by which fastavro knows it among the branches of a union."""

    @abstractmethod
    def definition(self, names: Names) -> AvroJson:
        """The Avro definition, after those that `names` has collected so far."""

    @abstractmethod
    def to_avro(self, value: Any) -> Any:
        """The value for fastavro; raises MisfitError."""

    def from_avro(self, plain: Any) -> Any:
        """The Python value of what fastavro read, or of a definition's default."""
        return plain

    def to_json(self, value: Any) -> Any:
        """The value for JSON; raises MisfitError."""
        return self.to_avro(value)

    def from_json(self, plain: Any) -> Any:
        """The Python value of a JSON value; raises MisfitError."""
        return self.to_avro(plain)

    def to_default(self, value: Any) -> AvroJson:
        """A default, as Avro definitions write it."""
        return self.to_json(value)

    def accepts(self, value: Any) -> bool:
        """Whether a Python value belongs to this branch of a union."""
        try:
            self.to_avro(value)
        except MisfitError:
            return False
        return True

    def is_own(self, value: Any) -> bool:
        """Whether a Python value is one that `from_avro` and `from_json` make, in class and all."""
        return self.accepts(value)

    def wrote_json(self, plain: Any) -> bool:
        """Whether `to_json` may have written this, which tells apart the branches of a union."""
        try:
            written = self.to_json(self.from_json(plain))
        except MisfitError:
            return False
        return type(written) is type(plain) and bool(written == plain)

    def json_values(self) -> list[Any] | None:
        """All that `to_json` writes, if that is a few values; None if not."""
        return None

    @property
    def children(self) -> Iterable[ValueType]:
        """The types that it contains."""
        return ()


class NullType(ValueType):
    """None."""

    branch = "null"

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        del names
        return "null"

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        if value is not None:
            raise takes("None", value)


class BooleanType(ValueType):
    """True and False."""

    branch = "boolean"

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        del names
        return "boolean"

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        if value is True or value is False:
            return value
        raise takes("True or False", value)


class IntegerType(ValueType):
    """Avro's `int` of 32 bits, and `long` of 64."""

    def __init__(self, branch: str) -> None:
        self.branch = branch
        self._limit = 1 << (31 if branch == "int" else 63)

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        del names
        return self.branch

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        if type(value) is not int and (not isinstance(value, int) or isinstance(value, bool)):
            raise takes("integers", value)
        if -self._limit <= value < self._limit:
            return value
        raise MisfitError(
            f"{value} is not an Avro {self.branch}: expected {-self._limit} to {self._limit - 1}"
        )

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`; 7.0 is 7, as some write it."""
        if isinstance(plain, float) and plain.is_integer():
            plain = int(plain)
        return self.to_avro(plain)


_FLOAT_MAX: Final = 3.4028235677973366e38
"""The least number that rounds to infinity in 32 bits: half a step above the largest float."""
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class FloatingType(ValueType):
    """Avro's `float` of 32 bits, and `double` of 64. What is not finite is text in JSON."""

    def __init__(self, branch: str) -> None:
        self.branch = branch

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        del names
        return self.branch

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise takes("numbers", value)
        try:
            number = float(value)
        except OverflowError:
            raise MisfitError(f"{value!r:.100} is too large for a {self.branch}") from None
        if self.branch == "float" and math.isfinite(number) and abs(number) >= _FLOAT_MAX:
            raise MisfitError(f"{value!r} is too large for a float of 32 bits")
        return number

    def is_own(self, value: Any) -> bool:
        """See `ValueType`; whole numbers are taken, and come back with a point."""
        return isinstance(value, float) and self.accepts(value)

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        number = self.to_avro(value)
        if math.isfinite(number):
            return number
        if math.isnan(number):
            return "NaN"
        return "Infinity" if number > 0 else "-Infinity"

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`."""
        if isinstance(plain, str) and plain in _NOT_FINITE:
            return _NOT_FINITE[plain]
        return self.to_avro(plain)


class StringType(ValueType):
    """Text."""

    branch = "string"

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        del names
        return "string"

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        if isinstance(value, str):
            return value
        raise takes("text", value)


class BytesType(ValueType):
    """Bytes; Base64 in JSON, characters up to 255 in defaults."""

    branch = "bytes"

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        del names
        return "bytes"

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        if isinstance(value, bytes):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        raise takes("bytes", value)

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`."""
        return plain.encode("latin-1") if isinstance(plain, str) else plain

    def is_own(self, value: Any) -> bool:
        """See `ValueType`."""
        return isinstance(value, bytes)

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        return base64.b64encode(self.to_avro(value)).decode()

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`."""
        if not isinstance(plain, str):
            raise takes("Base64", plain)
        try:
            return self.to_avro(base64.b64decode(plain, validate=True))
        except (ValueError, binascii.Error) as error:
            raise MisfitError(f"{plain!r:.100} is not Base64: {error}") from None

    def to_default(self, value: Any) -> AvroJson:
        """See `ValueType`."""
        return self.to_avro(value).decode("latin-1")
