"""`EncodedSchema`: registers a definition, and takes payloads that were written with it (pure).

For producers that copy payloads or encode them by themselves: dead letters, of which many can't be
decoded, rows of Spark, and policy events.

Source: Schema.AUTO_PRODUCE_BYTES in Pulsar's Java client, without its check.
"""

from __future__ import annotations

from pulsar_py.schema.schema import Schema
from pulsar_py.schema.schema_info import SchemaInfo

__all__ = ["EncodedSchema"]


class EncodedSchema(Schema[bytes]):
    """Bytes that were encoded already, registered by a given definition and not checked."""

    def __init__(self, info: SchemaInfo) -> None:
        """`info` is what producers register; payloads have to fit it."""
        self._info = info

    def schema_info(self) -> SchemaInfo:
        """The definition that was given."""
        return self._info

    def encode(self, value: bytes) -> bytes:
        """The payload as it is."""
        return value

    def decode(self, data: bytes) -> bytes:
        """The payload as it is."""
        return data
