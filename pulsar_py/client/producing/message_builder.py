"""`OutgoingMessage`: the arguments of `send`, and their conversion to message metadata (pure).

Routers and interceptors get it; its accessors are named as those of a
received message. `fill_metadata` puts it into the metadata of an entry of its own, and
`fill_single_metadata` into that of one message of a batch.

Source: TypedMessageBuilder in Pulsar's Java client; `Producer.send` of the official Python client.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from pulsar_py.client.messages.option_checks import check_delay
from pulsar_py.common.errors import InvalidConfigurationError, InvalidMessageError
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata

__all__ = [
    "NO_REPLICATION",
    "OutgoingMessage",
    "fill_key",
    "fill_metadata",
    "fill_single_metadata",
]

NO_REPLICATION: Final = ("__local__",)
"""The value of `replicate_to` for a message that is not replicated."""

_MAX_SIGNED: Final = 2**63 - 1
_MAX_UNSIGNED: Final = 2**64 - 1


class OutgoingMessage:
    """One message that a producer was asked to send. Interceptors may return another one."""

    __slots__ = (
        "content",
        "deliver_at_time",
        "event_time",
        "is_encoded",
        "key",
        "null_value",
        "ordering",
        "payload",
        "property_map",
        "replicate_to",
        "schema",
        "schema_version",
        "sequence_id",
    )

    def __init__(  # noqa: PLR0917 - the official client's order
        self,
        content: Any,  # Any: whatever the producer's schema takes
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        *,
        disable_replication: bool = False,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        schema: Any = None,  # Any: a `schema.Schema` of whatever values
        now_millis: int = 0,
    ) -> None:
        """As `Producer.send`; `deliver_after` counts from `now_millis`.

        Raises:
            InvalidMessageError: A property or key can't be encoded in UTF-8, or a number does not
                fit its field. So encoding a batch can't fail later because of one message.
            InvalidConfigurationError: `deliver_after` is not a timedelta, or negative, or there is
                `deliver_at` beside it.
        """
        # The value as given; None for a null value.
        self.content = content
        # The encoded value; the producer sets it before routers and interceptors get the message.
        self.payload: bytes = b""
        # Whether the payload is final: a thread encoded it before it handed the message over.
        self.is_encoded = False
        self.null_value = content is None
        # A copy: it may be encoded later, after the application has changed its own.
        self.property_map = dict(properties) if properties else None
        self.key = partition_key
        self.ordering = (
            _utf8("ordering_key", ordering_key) if isinstance(ordering_key, str) else ordering_key
        )
        self.sequence_id = sequence_id
        self.replicate_to: tuple[str, ...] = ()
        if disable_replication:
            self.replicate_to = NO_REPLICATION
        elif replication_clusters:
            self.replicate_to = tuple(replication_clusters)
        # Milliseconds since 1970, None for unset.
        self.event_time = event_timestamp
        self.deliver_at_time = deliver_at
        if deliver_after is not None:
            check_delay("deliver_after", deliver_after)
            if deliver_at is not None:
                raise InvalidConfigurationError(
                    f"deliver_at={deliver_at}, deliver_after={deliver_after}: give only one of them"
                )
            self.deliver_at_time = now_millis + deliver_after // timedelta(milliseconds=1)
        # The message's own schema; None for the producer's.
        self.schema = schema
        # The version of `schema`; None: the version of the producer's schema.
        self.schema_version: bytes | None = None
        self._check()

    def __repr__(self) -> str:
        count = len(self.property_map or ())
        what = "null" if self.null_value else type(self.content).__name__
        return f"OutgoingMessage({what}, key {self.key!r}, {count} properties)"

    def _check(self) -> None:
        if self.property_map:
            _check_properties(self.property_map)
        if self.key is not None and not isinstance(self.key, str | bytes):
            raise InvalidMessageError(f"partition_key={self.key!r}: expected text or bytes")
        if isinstance(self.key, str):
            _utf8("partition_key", self.key)
        if self.ordering is not None and not isinstance(self.ordering, bytes):
            raise InvalidMessageError(f"ordering_key={self.ordering!r}: expected text or bytes")
        _check_number("sequence_id", self.sequence_id, _MAX_SIGNED)
        _check_number("event_timestamp", self.event_time, _MAX_UNSIGNED)
        _check_number("deliver_at", self.deliver_at_time, _MAX_SIGNED)
        for cluster in self.replicate_to:
            if not isinstance(cluster, str):
                raise InvalidMessageError(f"replication cluster {cluster!r}: expected text")
            _utf8("replication cluster", cluster)

    def value(self) -> Any:  # Any: whatever was given
        """The value that `send` got."""
        return self.content

    def data(self) -> bytes:
        """The payload: the value as the schema encoded it."""
        return self.payload

    def properties(self) -> dict[str, str]:
        """The properties that the application attached; a copy."""
        return dict(self.property_map or {})

    def set_property(self, name: str, value: str) -> None:
        """Add a property, or replace the one of that name; for interceptors.

        Raises:
            InvalidMessageError: One of the two is not text, or can't be encoded in UTF-8.
        """
        _check_properties({name: value})
        self.property_map = {**(self.property_map or {}), name: value}

    def has_key(self) -> bool:
        """Whether it has a partition key."""
        return self.key is not None

    def partition_key(self) -> str:
        """The key as text, Base64 if it was given as bytes; empty where there is none."""
        if isinstance(self.key, bytes):
            return base64.b64encode(self.key).decode()
        return self.key or ""

    def key_bytes(self) -> bytes | None:
        """The key's bytes, None where there is none."""
        return self.key.encode() if isinstance(self.key, str) else self.key

    def ordering_key(self) -> bytes | None:
        """The key that Key_Shared uses instead of the partition key; None without one."""
        return self.ordering

    def event_timestamp(self) -> int:
        """Milliseconds that the application gave, 0 where it gave none."""
        return self.event_time or 0

    def batching_key(self) -> bytes:
        """The key that messages of one batch share with key-based batching."""
        if self.ordering is not None:
            return self.ordering
        return self.key_bytes() or b""

    @property
    def is_plain(self) -> bool:
        """Whether it has nothing but a payload."""
        return (
            not self.property_map
            and self.key is None
            and self.ordering is None
            and self.sequence_id is None
            and self.event_time is None
            and self.deliver_at_time is None
            and not self.replicate_to
            and not self.null_value
            and self.schema_version is None
        )

    @property
    def extra_bytes(self) -> int:
        """About how many bytes of metadata it needs beside its payload."""
        count = 0
        if self.property_map:
            count += sum(4 + len(name) + len(text) for name, text in self.property_map.items())
        if self.key is not None:
            count += 2 * len(self.key)
        if self.ordering is not None:
            count += len(self.ordering)
        return count


def fill_metadata(metadata: MessageMetadata, message: OutgoingMessage) -> None:
    """Write a message's fields into the metadata of its own entry."""
    _fill_common(metadata, message)
    if message.replicate_to:
        metadata.replicate_to.extend(message.replicate_to)
    if message.deliver_at_time is not None:
        metadata.deliver_at_time = message.deliver_at_time
    if message.schema_version is not None:
        metadata.schema_version = message.schema_version


def fill_single_metadata(metadata: SingleMessageMetadata, message: OutgoingMessage) -> None:
    """Write a message's fields into its metadata within a batch; the caller adds id and size."""
    _fill_common(metadata, message)


def _fill_common(
    metadata: MessageMetadata | SingleMessageMetadata, message: OutgoingMessage
) -> None:
    if message.property_map:
        for name, text in message.property_map.items():
            metadata.properties.add(key=name, value=text)
    fill_key(metadata, message)
    if message.event_time is not None:
        metadata.event_time = message.event_time
    if message.null_value:
        metadata.null_value = True


def fill_key(metadata: MessageMetadata | SingleMessageMetadata, message: OutgoingMessage) -> None:
    """Write a message's keys into metadata: its own, or that of the batch it is the first of."""
    if message.key is not None:
        metadata.partition_key = message.partition_key()
        if isinstance(message.key, bytes):
            metadata.partition_key_b64_encoded = True
    if message.ordering is not None:
        metadata.ordering_key = message.ordering


def _check_properties(properties: Mapping[str, str]) -> None:
    for name, text in properties.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidMessageError(
                f"property {name!r}={text!r}: expected texts for name and value"
            )
        _utf8("name of property", name)
        _utf8("property", text)


def _utf8(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidMessageError(f"{what} {text!r} can't be encoded in UTF-8: {error}") from None


def _check_number(name: str, value: int | None, maximum: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidMessageError(f"{name}={value!r}: expected an integer")
    if not 0 <= value <= maximum:
        raise InvalidMessageError(f"{name}={value}: expected 0 to {maximum}")
