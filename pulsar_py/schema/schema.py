"""`Schema`: the interface of everything that encodes values as payloads and decodes them.

A `Schema` is given to a producer, consumer or reader. Producers call `encode` (and `encode_key` if
the key of a pair travels separately). Consumers call the function that `decoder_for` returns for
the definition that a message was written with; schemas without `reads_versions` need no definition.
Nothing here does I/O: the client's `schema_reader` fetches versions before a message is handed out,
and `with_topic_schema` passes the topic's schema to schemas that depend on it (auto-consume,
auto-produce).

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
"""Makes a value from payload and key; None for a null payload or key."""


class Schema(ABC, Generic[T]):
    """Encodes and decodes one type of values, and describes it to the broker."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

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
        """The value of a payload that was written with this same schema.

        Raises:
            SchemaSerializationError: The bytes don't fit.
        """

    def decoder_for(self, writer: SchemaInfo | None) -> Decoder[T]:
        """Decodes the messages of one version: made once a version, called once a message.

        Args:
            writer: The definition they were written with; None if they name no version, if it is
                not known, or if `reads_versions` is false.

        Returns:
            A function of payload (None for a null value) and key (for `has_separate_key`; None for
            a null key). It raises SchemaSerializationError if the bytes don't fit.

        Raises:
            SchemaSerializationError: This schema can't read values of that definition.
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
        """Whether `decoder_for` needs the definition of each version."""
        return False

    @property
    def has_separate_key(self) -> bool:
        """Whether part of the value travels as the message's key, which `encode_key` makes."""
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
        """Whether a value is sent as a null payload (a tombstone), without `encode`."""
        return value is None
