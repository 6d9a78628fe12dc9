"""Encodes and decodes Avro's binary form by fastavro, safely for foreign payloads (pure).

fastavro is imported when the first codec is made. Payloads may come from anybody:

- An array whose values take no bytes (`null`, a record without fields) may claim any number of
  them, so definitions with such an array are refused.
- A record that contains itself may be nested as deep as the payload has bytes. fastavro's compiled
  reader would crash the process then; its reader in Python, used for such records, raises.
- A decimal may have a megabyte of digits, which would take minutes to convert, or more digits than
  its definition says, which fastavro rounds off. So decimals get a logical type of our own, which
  is read here.

The names of the writer's and reader's outermost records may differ, as in Java's Avro, where they
depend on packages.

Source: the Avro 1.11 specification, schema resolution; DatumReader in Avro's Java.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.schema.avro.avro_definition import parse_definition
from pulsar_py.schema.avro.avro_mismatch import mismatch
from pulsar_py.schema.avro.avro_nodes import (
    AvroNode,
    avro_node,
    has_uncountable_arrays,
    is_recursive,
)
from pulsar_py.schema.values.logical_types import decimal_of
from pulsar_py.schema.values.value_types import AvroJson

__all__ = ["AvroReader", "AvroWriter", "reader_of"]

_DECIMAL: Final = "pulsar-py-decimal"

# The errors that fastavro raises if values or bytes don't fit; its own classes derive from these.
_ERRORS: Final = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RecursionError,
    MemoryError,
)


class AvroWriter:
    """Writes plain values as one definition says."""

    def __init__(self, definition: AvroJson) -> None:
        """Raises InvalidConfigurationError if fastavro can't use the definition."""
        from fastavro import schemaless_writer  # noqa: PLC0415 - at first use

        self._schema = _compiled(definition)
        self._write = schemaless_writer

    def write(self, plain: Any) -> bytes:  # Any: what the definition says
        """The bytes of a value, in the form that `ValueType.to_avro` returns.

        Raises:
            SchemaSerializationError: The value doesn't fit the definition.
        """
        buffer = io.BytesIO()
        try:
            self._write(buffer, self._schema, plain)
        except _ERRORS as error:
            text = f"value does not fit its schema: {error!s:.300}"
            raise SchemaSerializationError(text) from error
        return buffer.getvalue()


class AvroReader:
    """Reads values that one definition wrote, resolved into another one."""

    def __init__(self, writer: AvroJson, reader: AvroJson | None = None) -> None:
        """Without `reader`, values are not resolved.

        Raises:
            InvalidConfigurationError: A definition can't be used.
        """
        from fastavro.read import LOGICAL_READERS, SchemaResolutionError  # noqa: PLC0415 - as above

        LOGICAL_READERS[f"bytes-{_DECIMAL}"] = _read_decimal
        node = avro_node(writer)
        if has_uncountable_arrays(node):
            raise InvalidConfigurationError(
                "an array of values that take no bytes: a payload could claim any count of them"
            )
        self._name = node.name or node.kind
        # Both trees, to tell which field does not fit.
        self._nodes = None if reader is None else (node, avro_node(reader))
        self._writer = _compiled(_with_own_decimals(writer))
        if reader is not None:
            reader = _compiled(_with_own_decimals(_with_alias(reader, node)))
        self._reader = reader
        self._resolution_error = SchemaResolutionError
        self._read = _reading(may_be_deep=is_recursive(node))

    def read(self, data: bytes) -> Any:  # Any: what the definitions say
        """The value as fastavro reads it; values of named types in unions are (name, value) pairs.

        Raises:
            SchemaSerializationError: The bytes don't fit, or the definitions can't be resolved.
        """
        buffer = io.BytesIO(data)
        try:
            return self._read(buffer, self._writer, self._reader, return_named_type=True)
        except self._resolution_error as error:
            raise SchemaSerializationError(self._unlike(error)) from error
        except _ERRORS as error:
            text = str(error) or type(error).__name__
            raise SchemaSerializationError(
                f"{self._name}: {len(data)} bytes do not fit their schema: {text:.300}"
            ) from error

    def _unlike(self, error: Exception) -> str:
        """Which definition can't read which, and where."""
        assert self._nodes is not None, "only two definitions can fail to go together"
        writer, reader = self._nodes
        name = reader.name or reader.kind
        text = mismatch(writer, reader) or f"{error!s:.300}"
        return f"{name} can't read what {self._name} wrote: {text}"


def _reading(*, may_be_deep: bool) -> Callable[..., Any]:  # Any: fastavro has no types
    if may_be_deep:
        from fastavro._read_py import schemaless_reader  # noqa: PLC0415 - see above
    else:
        from fastavro import schemaless_reader  # noqa: PLC0415 - as above
    return schemaless_reader


def _compiled(definition: AvroJson) -> Any:  # Any: fastavro's form
    # Late: importing fastavro takes time that programs without Avro need not spend.
    from fastavro import parse_schema  # noqa: PLC0415 - at first use
    from fastavro.schema import SchemaParseException  # noqa: PLC0415 - at first use

    try:
        return parse_schema(_supported(definition))
    except (*_ERRORS, SchemaParseException) as error:
        raise InvalidConfigurationError(f"not an Avro definition: {error!r:.300}") from error


def _supported(definition: AvroJson) -> AvroJson:
    """The definition without the logical types that values here don't support: those of `fixed`."""
    if isinstance(definition, list):
        return [_supported(each) for each in definition]
    if not isinstance(definition, Mapping):
        return definition
    is_fixed = definition.get("type") == "fixed"
    return {
        key: value if key == "default" else _supported(value)
        for key, value in definition.items()
        if not (is_fixed and key == "logicalType")
    }


def _with_own_decimals(definition: AvroJson) -> AvroJson:
    """The definition with our logical type for decimals, which `_read_decimal` reads."""
    if isinstance(definition, list):
        return [_with_own_decimals(each) for each in definition]
    if not isinstance(definition, Mapping):
        return definition
    changed = {
        key: value if key == "default" else _with_own_decimals(value)
        for key, value in definition.items()
    }
    if definition.get("type") != "bytes" or definition.get("logicalType") != "decimal":
        return changed
    precision, scale = definition.get("precision"), definition.get("scale", 0)
    is_sound = isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision
    return changed | {"logicalType": _DECIMAL} if is_sound and precision else changed


def _read_decimal(
    data: bytes, writer: Mapping[str, Any] | None = None, reader: AvroJson = None
) -> Decimal:
    """Reads a decimal; called by fastavro with both definitions (a logical reader)."""
    del reader
    assert writer is not None, "fastavro's readers have one"
    return decimal_of(data, writer.get("scale", 0))


def _with_alias(reader: AvroJson, writer: AvroNode) -> AvroJson:
    """The reader's definition, with the name of the writer's outermost record as an alias."""
    is_record = isinstance(reader, Mapping) and reader.get("type") == "record"
    if not is_record or writer.kind != "record":
        return reader
    return {**reader, "aliases": [*reader.get("aliases", ()), writer.name]}


def reader_of(data: bytes, reader: AvroJson) -> AvroReader:
    """The reader for values that were written with a definition the broker stored.

    Raises:
        SchemaSerializationError: The definition can't be used.
    """
    try:
        return AvroReader(parse_definition(data), reader)
    except InvalidConfigurationError as error:
        raise SchemaSerializationError(f"the writer's schema: {error}") from error
