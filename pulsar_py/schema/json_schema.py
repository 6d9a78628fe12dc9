"""`JsonSchema`: records in JSON, with an Avro definition (pure).

Values are dataclasses, `Record` classes, or dicts by a definition. JSON names its fields, so all
versions are read alike: unknown fields are ignored, and missing ones get their default. Written are
the names of enumerations' members, bytes in Base64, times as ISO 8601, decimals and what is not
finite as text: what Jackson reads into Java's classes. The forms that Jackson and the official
Python client write are read, too.

Source: JSONSchema in Pulsar's Java client, `JsonSchema` in the official Python client.
"""

from __future__ import annotations

import json

from pulsar_py.schema.avro_schema import AvroDefined
from pulsar_py.schema.schema import T
from pulsar_py.schema.schema_info import SchemaType
from pulsar_py.schema.value_types import MisfitError

__all__ = ["JsonSchema"]


class JsonSchema(AvroDefined[T]):
    """Dataclasses, records or dicts in JSON."""

    schema_type = SchemaType.JSON

    def encode(self, value: T) -> bytes:
        """See `Schema`."""
        try:
            plain = self.types.to_json(value)
            return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
        except (MisfitError, RecursionError, UnicodeEncodeError) as error:
            raise self.misfit(error) from None

    def decode(self, data: bytes) -> T:
        """See `Schema`."""
        try:
            value: T = self.types.from_json(json.loads(data))
        except (MisfitError, RecursionError, ValueError) as error:
            raise self.misfit(error) from None
        return value
