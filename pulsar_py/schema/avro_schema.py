"""`AvroSchema`: records in Avro's binary encoding (pure).

Values are of dataclasses and other classes with fields (`docs/client/SCHEMAS.md` has a table of
types), `Record` classes, or dicts by an Avro definition. A payload has no header:
it is read as the version that the message names has it, and resolved into this schema as the Avro
specification says, so that fields may have been added and removed. A message without a version is
read by this schema.

Source: AvroSchema in Pulsar's Java client and in the official Python client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, overload

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.schema.avro.avro_codec import AvroReader, AvroWriter, reader_of
from pulsar_py.schema.avro.avro_definition import definition_text, parse_definition, types_of
from pulsar_py.schema.classes.type_builder import record_of
from pulsar_py.schema.schema import Decoder, Schema, T
from pulsar_py.schema.schema_info import SchemaInfo, SchemaType
from pulsar_py.schema.values.value_types import AvroJson, MisfitError, Names, ValueType

__all__ = ["AvroDefined", "AvroSchema", "Definition", "RecordMaker"]

Definition = str | bytes | Mapping[str, Any]
"""An Avro definition, as text or as the JSON of it."""

RecordMaker = Callable[[dict[str, Any]], Any]
"""Makes a record from the dict of its values."""


class AvroDefined(Schema[T]):
    """The common part of schemas that are defined in Avro, AVRO and JSON."""

    schema_type: SchemaType

    @overload
    def __init__(
        self,
        record_cls: type[T],
        schema_definition: None = None,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        record_cls: None = None,
        schema_definition: str | bytes | Mapping[str, Any] = ...,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        record_cls: None = None,
        schema_definition: str | bytes | Mapping[str, Any] = ...,
        *,
        properties: Mapping[str, str] | None = None,
        records_as: Callable[[dict[str, Any]], T],
    ) -> None: ...
    def __init__(
        self,
        record_cls: type[T] | None = None,
        schema_definition: str | bytes | Mapping[str, Any] | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        records_as: RecordMaker | None = None,
    ) -> None:
        """A schema of a class or of a definition.

        Args:
            record_cls: A dataclass, pydantic model, TypedDict, NamedTuple or `Record` class; None
                for dicts.
            schema_definition: An Avro definition, if there is no class.
            properties: Properties that the broker stores with the schema.
            records_as: Makes records of dicts if there is no class; None leaves dicts.

        Raises:
            InvalidConfigurationError: Neither or both are given, or they are no valid schema.
        """
        if (record_cls is None) == (schema_definition is None):
            raise InvalidConfigurationError("give a class or an Avro definition, and not both")
        self.types: ValueType
        self.definition: AvroJson
        if schema_definition is None:
            assert record_cls is not None  # see above
            self.types = record_of(record_cls)
            self.check_types()
            self.definition = self.types.definition(Names())
            data = definition_text(self.definition)
        else:
            self.definition = parse_definition(schema_definition)
            self.types = types_of(self.definition, records_as)
            self.types.definition(Names())  # names them
            data = _text_of(schema_definition, self.definition)
        self._info = SchemaInfo(self.schema_type, self.schema_type.name, data, properties or {})
        self.prepare()

    def check_types(self) -> None:
        """Refuse types of a class that the subclass's encoding would not bring back."""

    def prepare(self) -> None:
        """Prepare the subclass's encoding, once the definition is known."""

    def schema_info(self) -> SchemaInfo:
        """See `Schema`."""
        return self._info

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.types.branch})"

    def misfit(self, error: Exception) -> SchemaSerializationError:
        """The error for a value that doesn't fit."""
        return SchemaSerializationError(f"{self.types.branch}: {error}")


def _text_of(given: Definition, definition: AvroJson) -> bytes:
    """The definition's text; one given as text stays as it is, because brokers compare texts."""
    if isinstance(given, str):
        return given.encode()
    return given if isinstance(given, bytes) else definition_text(definition)


class AvroSchema(AvroDefined[T]):
    """Dataclasses, records or dicts in Avro."""

    schema_type = SchemaType.AVRO

    def prepare(self) -> None:
        """See `AvroDefined`."""
        self._writer = AvroWriter(self.definition)
        # The reader for this schema's own version; made when it is first needed.
        self._own_reader: AvroReader | None = None

    def encode(self, value: T) -> bytes:
        """See `Schema`."""
        try:
            plain = self.types.to_avro(value)
        except (MisfitError, RecursionError) as error:
            raise self.misfit(error) from None
        return self._writer.write(plain)

    def decode(self, data: bytes) -> T:
        """See `Schema`."""
        if self._own_reader is None:
            self._own_reader = AvroReader(self.definition)
        return self._value(self._own_reader, data)

    @property
    def reads_versions(self) -> bool:
        """See `Schema`."""
        return True

    def decoder_for(self, writer: SchemaInfo | None) -> Decoder[T]:
        """See `Schema`."""
        if writer is None or writer.data == self._info.data:
            return super().decoder_for(None)
        if not writer.type.has_definition_in_avro:
            raise SchemaSerializationError(
                f"{self.types.branch}: a schema of type {writer.type.name} wrote this, not AVRO"
            )
        reader = reader_of(writer.data, self.definition)
        return lambda data, _key: None if data is None else self._value(reader, data)

    def _value(self, reader: AvroReader, data: bytes) -> T:
        plain = reader.read(data)
        try:
            value: T = self.types.from_avro(plain)
        except (MisfitError, RecursionError) as error:
            raise self.misfit(error) from None
        return value
