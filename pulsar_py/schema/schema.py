"""What turns values into payloads and payloads into values.

A `Schema` is given to a producer, consumer or reader. Producers call `encode` (and `encode_key` of
key-value schemas whose key goes apart); consumers call `decode_with`, which gets the definition
that the message was written with as far as `reads_versions` asks for it. Nothing here does I/O: the
versions are fetched by `client.schema_reader` before a message is handed out, and a schema that
depends on the topic (auto-consume, auto-produce) is told it by `with_topic_schema`.

Schemas hold no state of a topic and are safe to share between producers and consumers.

Source: Schema in Pulsar's Java client; `pulsar.schema.Schema` of the official Python client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from pulsar_py.schema.schema_info import SchemaInfo

__all__ = ["Schema", "SchemaInfo", "T"]

T = TypeVar("T")


class Schema(ABC, Generic[T]):
    """Codec of one type of values, and how the broker is told of it."""

    @abstractmethod
    def schema_info(self) -> SchemaInfo:
        """The definition that producers register and consumers are checked by."""

    @abstractmethod
    def encode(self, value: T) -> bytes:
        """The payload of a value that is not None.

        Raises:
            SchemaSerializationError: The value doesn't fit; the message says where.
        """

    @abstractmethod
    def decode(self, data: bytes) -> T:
        """The value of a payload that was written with this very schema.

        Raises:
            SchemaSerializationError: The bytes don't fit.
        """

    def decode_with(
        self,
        writer: SchemaInfo | None,
        data: bytes | None,
        key: bytes | None = None,
    ) -> T | None:
        """The value of a message.

        Args:
            writer: The definition it was written with; None where the message names no version, or
                it is not known, or the schema doesn't ask for it.
            data: The payload; None for a null value.
            key: The message's key, for `has_separate_key`.

        Raises:
            SchemaSerializationError: The bytes don't fit.
        """
        del writer, key
        return None if data is None else self.decode(data)

    @property
    def reads_versions(self) -> bool:
        """Whether `decode_with` wants the definition of each version that it meets."""
        return False

    @property
    def has_separate_key(self) -> bool:
        """Whether part of the value travels as the message's key: `encode_key` makes it."""
        return False

    @property
    def needs_topic_schema(self) -> bool:
        """Whether `with_topic_schema` has to be called before values are coded."""
        return False

    def with_topic_schema(self, topic_schema: SchemaInfo | None) -> Schema[T]:
        """What to use on a topic that has this schema; None where it has none."""
        del topic_schema
        return self

    def encode_key(self, value: T) -> bytes | None:
        """The message's key, where `has_separate_key`; None for a null key."""
        del value
        return None

    def is_null(self, value: T | None) -> bool:
        """Whether a value goes out as a null value (a tombstone), without `encode`."""
        return value is None
