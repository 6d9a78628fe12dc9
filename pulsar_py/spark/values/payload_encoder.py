"""Interface of the encoders of values, and the schema that their producers register (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from pulsar_py.schema import Schema, SchemaInfo

__all__ = ["PayloadSchema", "ValueEncoder"]


class ValueEncoder(Protocol):
    """Encodes value columns as payloads."""

    @property
    def schema_info(self) -> SchemaInfo:
        """The schema that producers register."""

    def encode(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        """The payload of each row; None for a null value.

        Args:
            batch: The value columns alone, timestamps in UTC.

        Raises:
            SchemaSerializationError: A value does not fit the schema.
        """

    def encode_keys(self, batch: pa.RecordBatch) -> Sequence[bytes | None] | None:
        """The key of each row, where it is a part of the value (SEPARATED pairs); else None.

        Args:
            batch: As for `encode`.

        Raises:
            SchemaSerializationError: A key does not fit its schema.
        """


class PayloadSchema(Schema[bytes]):
    """The schema of producers whose payloads are encoded already: it is only registered."""

    def __init__(self, info: SchemaInfo) -> None:
        """Take the schema to register, which the payloads have to fit."""
        self._info = info

    def schema_info(self) -> SchemaInfo:
        """The schema that producers register."""
        return self._info

    def encode(self, value: bytes) -> bytes:
        """The payload, as it is."""
        return value

    def decode(self, data: bytes) -> bytes:
        """The payload, as it is."""
        return data
