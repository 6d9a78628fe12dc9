"""`JsonSchema`: records in JSON, with an Avro definition (pure).

Values are dataclasses, `Record` classes, or dicts by a definition. JSON names its fields, so all
versions are decoded alike: unknown fields are ignored, and missing ones get their default. The
forms written are those that Jackson reads into Java's classes: enumerations by their members'
names, bytes in Base64, times in ISO 8601, decimals and numbers that are not finite as text. The
forms that Jackson and the official Python client write are read, too.

Source: JSONSchema in Pulsar's Java client, `JsonSchema` in the official Python client.
"""

from __future__ import annotations

import json
from typing import Any

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema.avro_schema import AvroDefined
from pulsar_py.schema.classes.union_checks import check_json
from pulsar_py.schema.schema import T
from pulsar_py.schema.schema_info import SchemaType
from pulsar_py.schema.values.value_types import MisfitError, ValueType

__all__ = ["JsonSchema", "json_payload"]


class JsonSchema(AvroDefined[T]):
    """Dataclasses, records or dicts in JSON."""

    schema_type = SchemaType.JSON

    def check_types(self) -> None:
        """See `AvroDefined`; JSON does not name the branches of unions."""
        check_json(self.types)

    def encode(self, value: T) -> bytes:
        """See `Schema`."""
        return json_payload(self.types, value)

    def decode(self, data: bytes) -> T:
        """See `Schema`."""
        try:
            value: T = self.types.from_json(json.loads(data))
        except (MisfitError, RecursionError, ValueError) as error:
            raise self.misfit(error) from None
        return value


def json_payload(types: ValueType, value: Any) -> bytes:  # Any: what the types say
    """The JSON payload of a value.

    Raises:
        SchemaSerializationError: The value does not fit `types`; the message says where.
    """
    try:
        plain = types.to_json(value)
        return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
    except (MisfitError, RecursionError, UnicodeEncodeError) as error:
        raise SchemaSerializationError(f"{types.branch}: {error}") from None
