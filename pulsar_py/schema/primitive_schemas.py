"""Schemas of bytes, text, booleans and numbers: the payload is the value alone (pure).

    BYTES    the bytes             INT8, INT16, INT32, INT64   1, 2, 4, 8 bytes, big endian, signed
    STRING   UTF-8                 FLOAT, DOUBLE               4, 8 bytes, big endian, IEEE 754
    BOOLEAN  1 byte, 0 for false

A payload of another size is refused. Definitions are empty, as Java's are.

Source: BytesSchema, StringSchema, BooleanSchema, ByteSchema to DoubleSchema in Pulsar's Java
client.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812 - it is a class
from typing import ClassVar

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema.schema import Schema
from pulsar_py.schema.schema_info import SchemaInfo, SchemaType

__all__ = [
    "BooleanSchema",
    "BytesSchema",
    "DoubleSchema",
    "FloatSchema",
    "Int8Schema",
    "Int16Schema",
    "Int32Schema",
    "Int64Schema",
    "StringSchema",
    "misfit",
    "wrong_size",
]


def misfit(schema_type: SchemaType, value: object, wanted: str) -> SchemaSerializationError:
    """The error for a value that a schema doesn't take."""
    return SchemaSerializationError(
        f"a {schema_type.name} schema takes {wanted}, not {type(value).__name__} {value!r:.100}"
    )


def wrong_size(schema_type: SchemaType, data: bytes, size: int) -> SchemaSerializationError:
    """The error for a payload of another size."""
    return SchemaSerializationError(
        f"a {schema_type.name} has {size} bytes, the payload has {len(data)}"
    )


class BytesSchema(Schema[bytes]):
    """Payloads are the values, unchanged; no schema is registered."""

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        return SchemaInfo(SchemaType.BYTES, "Bytes")

    def encode(self, value: bytes) -> bytes:
        """See `Schema`; `bytearray` and `memoryview` are copied."""
        if isinstance(value, bytes):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        raise misfit(SchemaType.BYTES, value, "bytes")

    def decode(self, data: bytes) -> bytes:
        """See `Schema`."""
        return data


class StringSchema(Schema[str]):
    """Text in UTF-8."""

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        return SchemaInfo(SchemaType.STRING, "String")

    def encode(self, value: str) -> bytes:
        """See `Schema`."""
        if not isinstance(value, str):
            raise misfit(SchemaType.STRING, value, "text")
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise SchemaSerializationError(f"the text can't be encoded in UTF-8: {error}") from None

    def decode(self, data: bytes) -> str:
        """See `Schema`."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise SchemaSerializationError(
                f"the payload of a STRING is not UTF-8: {error}"
            ) from None


class BooleanSchema(Schema[bool]):
    """True or False, in one byte."""

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        return SchemaInfo(SchemaType.BOOLEAN, "Boolean")

    def encode(self, value: bool) -> bytes:  # noqa: FBT001 - the value
        """See `Schema`."""
        if not isinstance(value, bool):
            raise misfit(SchemaType.BOOLEAN, value, "True or False")
        return b"\x01" if value else b"\x00"

    def decode(self, data: bytes) -> bool:
        """See `Schema`; any byte but 0 is true."""
        if len(data) != 1:
            raise wrong_size(SchemaType.BOOLEAN, data, 1)
        return data != b"\x00"


class _IntegerSchema(Schema[int]):
    """A signed number of `layout.size` bytes."""

    schema_type: ClassVar[SchemaType]
    layout: ClassVar[Struct]

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        return SchemaInfo(self.schema_type, self.schema_type.name)

    def encode(self, value: int) -> bytes:
        """See `Schema`."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise misfit(self.schema_type, value, "integers")
        try:
            return self.layout.pack(value)
        except StructError:
            limit = 1 << (8 * self.layout.size - 1)
            raise SchemaSerializationError(
                f"{value} is not an {self.schema_type.name}: expected {-limit} to {limit - 1}"
            ) from None

    def decode(self, data: bytes) -> int:
        """See `Schema`."""
        if len(data) != self.layout.size:
            raise wrong_size(self.schema_type, data, self.layout.size)
        value: int = self.layout.unpack(data)[0]
        return value


class Int8Schema(_IntegerSchema):
    """One signed byte; Java's ByteSchema."""

    schema_type = SchemaType.INT8
    layout = Struct(">b")


class Int16Schema(_IntegerSchema):
    """Two bytes; Java's ShortSchema."""

    schema_type = SchemaType.INT16
    layout = Struct(">h")


class Int32Schema(_IntegerSchema):
    """Four bytes; Java's IntSchema."""

    schema_type = SchemaType.INT32
    layout = Struct(">i")


class Int64Schema(_IntegerSchema):
    """Eight bytes; Java's LongSchema."""

    schema_type = SchemaType.INT64
    layout = Struct(">q")


class _FloatingSchema(Schema[float]):
    """A number with a fraction."""

    schema_type: ClassVar[SchemaType]
    layout: ClassVar[Struct]

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        return SchemaInfo(self.schema_type, self.schema_type.name.capitalize())

    def encode(self, value: float) -> bytes:
        """See `Schema`; integers too, where they fit."""
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise misfit(self.schema_type, value, "numbers")
        try:
            return self.layout.pack(value)
        except (StructError, OverflowError) as error:
            raise SchemaSerializationError(
                f"{value!r:.100} is not a {self.schema_type.name}: {error}"
            ) from None

    def decode(self, data: bytes) -> float:
        """See `Schema`."""
        if len(data) != self.layout.size:
            raise wrong_size(self.schema_type, data, self.layout.size)
        value: float = self.layout.unpack(data)[0]
        return value


class FloatSchema(_FloatingSchema):
    """Four bytes: a Python float is rounded from 53 to 24 significant bits."""

    schema_type = SchemaType.FLOAT
    layout = Struct(">f")


class DoubleSchema(_FloatingSchema):
    """Eight bytes: a Python float without rounding."""

    schema_type = SchemaType.DOUBLE
    layout = Struct(">d")
