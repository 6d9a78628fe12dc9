"""`Schema`: the interface of everything that encodes values as payloads and decodes them.

A `Schema` is given to a producer, consumer or reader. Producers call `encode` (and `encode_key` of
key-value schemas whose key goes apart); consumers call what `decoder_for` makes of the definition
that a message was written with, as far as `reads_versions` asks for it. Nothing here does I/O: the
client's `schema_reader` fetches versions before a message is handed out, and `with_topic_schema`
gives the topic's schema to one that depends on it (auto-consume, auto-produce).

Schemas hold no state of a topic and are safe to share between producers and consumers.

Source: Schema in Pulsar's Java client; `pulsar.schema.Schema` of the official Python client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from pulsar_py.schema.schema_info import SchemaInfo

__all__ = ["Decoder", "Schema", "SchemaInfo", "T"]

T = TypeVar("T")

Decoder = Callable[[bytes | None, bytes | None], T | None]
"""Makes a value of payload and key."""


class Schema(ABC, Generic[T]):
    """Encodes and decodes one type of values, and describes it to the broker."""

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

    def decoder_for(self, writer: SchemaInfo | None) -> Decoder[T]:
        """Decodes the messages of one version: made once a version, called once a message.

        Args:
            writer: The definition they were written with; None where they name no version, or it
                is not known, or the schema doesn't ask for it.

        Returns:
            A function of payload (None for a null value) and key (for `has_separate_key`; None for
            a null key). It raises SchemaSerializationError where the bytes don't fit.

        Raises:
            SchemaSerializationError: This schema can't read what that one wrote.
        """
        del writer
        decode = self.decode
        return lambda data, _key: None if data is None else decode(data)

    def decode_with(
        self, writer: SchemaInfo | None, data: bytes | None, key: bytes | None = None
    ) -> T | None:
        """The value of one message; see `decoder_for`."""
        return self.decoder_for(writer)(data, key)

    @property
    def reads_versions(self) -> bool:
        """Whether `decoder_for` wants the definition of each version that it meets."""
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
        """The schema to use on a topic with this schema; None for a topic without one."""
        del topic_schema
        return self

    def encode_key(self, value: T) -> bytes | None:
        """The message's key, where `has_separate_key`; None for a null key."""
        del value
        return None

    def is_null(self, value: T | None) -> bool:
        """Whether a value goes out as a null value (a tombstone), without `encode`."""
        return value is None
