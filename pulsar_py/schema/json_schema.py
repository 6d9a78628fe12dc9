"""Records as JSON, with an Avro definition that says what is in them.

Values are dataclasses, `Record` classes, or dicts by a definition. JSON says by itself which fields
it has, so a version needs no other treatment than the next: what this schema doesn't know is left
out, what is missing gets its default. Written are the names of enumerations' members, bytes in
Base64, times as ISO 8601, decimals and what is not finite as text: what Jackson reads into Java's
classes. What is read may also be as Jackson or the official Python client write it. Pure.

Source: JSONSchema in Pulsar's Java client, `JsonSchema` in the official Python client.
"""

from __future__ import annotations

import json
from typing import Any

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema.avro_schema import AvroDefined
from pulsar_py.schema.schema import T
from pulsar_py.schema.schema_info import SchemaType
from pulsar_py.schema.value_types import MisfitError, ValueType

__all__ = ["JsonSchema", "json_payload"]


class JsonSchema(AvroDefined[T]):
    """Dataclasses, records or dicts in JSON."""

    schema_type = SchemaType.JSON

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
    """The payload of a value of some types.

    Raises:
        SchemaSerializationError: It does not fit them; the text says where.
    """
    try:
        plain = types.to_json(value)
        return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
    except (MisfitError, RecursionError, UnicodeEncodeError) as error:
        raise SchemaSerializationError(f"{types.branch}: {error}") from None
