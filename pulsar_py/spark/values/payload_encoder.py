"""Interface of the encoders of values, and the schema that their producers register (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from pulsar_py.schema import Schema, SchemaInfo

__all__ = ["PayloadSchema", "ValueEncoder"]


class ValueEncoder(Protocol):
    """Makes payloads of value columns; one for each shape of values."""

    @property
    def schema_info(self) -> SchemaInfo:
        """What producers register with."""

    def encode(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        """The payload of each row; None for a null value.

        Args:
            batch: The value columns alone, timestamps in UTC.

        Raises:
            SchemaSerializationError: A value does not fit.
        """

    def encode_keys(self, batch: pa.RecordBatch) -> Sequence[bytes | None] | None:
        """The key of each row, where values bring keys along; None where they don't.

        Args:
            batch: As for `encode`.

        Raises:
            SchemaSerializationError: A key does not fit.
        """


class PayloadSchema(Schema[bytes]):
    """What producers get: payloads are encoded already, only the definition is registered."""

    def __init__(self, info: SchemaInfo) -> None:
        """Payloads have to fit `info`."""
        self._info = info

    def schema_info(self) -> SchemaInfo:
        """What producers register with."""
        return self._info

    def encode(self, value: bytes) -> bytes:
        """The payload, as it is."""
        return value

    def decode(self, data: bytes) -> bytes:
        """The payload, as it is."""
        return data
