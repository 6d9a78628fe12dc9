"""`Message`, as a consumer hands it out, and `ReceivedEntry`, the entry that it came in (values).

Messages of one batch share a `ReceivedEntry`: its metadata, its position, and which messages
are not acknowledged. A `Message` adds its index and its own metadata and payload; nothing else is
computed before it is asked for, so a message costs one small object.

Accessors are methods, as in the official Python client; those that only the Java client has take
the same form. A message stays valid after its consumer was closed.

Source: Message in the official Python client; MessageImpl and BatchMessageAcker in Pulsar's Java.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeAlias

from pulsar_py.client.shared import absent_names
from pulsar_py.client.shared.absent_names import lacks
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    MessageMetadata,
    SingleMessageMetadata,
)
from pulsar_py.wire.entry_summary import decode_partition_key

if TYPE_CHECKING:
    from pulsar_py.client.security.message_crypto import EncryptionContext

__all__ = [
    "EntryKey",
    "EntryMetadata",
    "Message",
    "OwnMetadata",
    "ReceivedEntry",
    "ReceivedMessageId",
    "ValueDecoder",
    "key_bytes_of",
    "payload_bytes",
    "text_of",
]

EntryMetadata: TypeAlias = MessageMetadata
"""The metadata of a whole entry."""

OwnMetadata: TypeAlias = MessageMetadata | SingleMessageMetadata
"""The metadata with a message's key, properties and event time; in a batch each has its own."""


def text_of(field: str | bytes) -> str:
    """A metadata field as text; one that is not UTF-8 comes as bytes, and gets U+FFFD in places."""
    return field if isinstance(field, str) else field.decode(errors="replace")


def key_bytes_of(fields: OwnMetadata) -> bytes | None:
    """The partition key as bytes; None if there is none."""
    if not fields.HasField("partition_key") or fields.null_partition_key:
        return None
    return decode_partition_key(fields.partition_key, is_base64=fields.partition_key_b64_encoded)


EntryKey = tuple[int, int]
"""Ledger and entry: how trackers name an entry. A plain tuple, because there is one an entry."""


class ValueDecoder(Protocol):
    """Decodes a consumer's payloads; `receiving.schema_reader` implements it."""

    def decode(self, data: bytes | None, schema_version: bytes | None, key: bytes | None) -> Any:
        """The value of a message.

        Args:
            data: Its payload; None for a null value.
            schema_version: The version that the message names, None if it names none.
            key: Its key's bytes, for separated key-value schemas.

        Raises:
            SchemaSerializationError: The bytes do not fit the schema.
        """


class ReceivedEntry:
    """One entry that was received: a plain message, a batch, or all chunks of one message.

    Its messages and their ids share it, which is how the last acknowledgement of a batch is known.
    Invariant: bit i of `unacked_bits` is set while message i is not acknowledged; a plain message
    has bit 0. Acknowledgements in order only count `next_unacked` up, which costs no operation on
    a large integer: all messages below it are acknowledged, and the message before `unacked_end`
    is not, unless all are.
    """

    __slots__ = (
        "_bits",
        "_metadata",
        "batch_size",
        "broker_metadata",
        "chunk_ids",
        "decoder",
        "encryption_context",
        "key",
        "next_unacked",
        "partition_index",
        "redelivery_count",
        "topic",
        "unacked_end",
    )

    def __init__(  # noqa: PLR0917 - made once an entry, where keywords are slow
        self,
        key: EntryKey,
        topic: str,
        metadata: MessageMetadata | bytes,
        partition_index: int = -1,
        redelivery_count: int = 0,
        batch_size: int = 0,
        unacked_bits: int = 1,
        decoder: ValueDecoder | None = None,
        broker_metadata: BrokerEntryMetadata | None = None,
        chunk_ids: Sequence[EntryKey] = (),
        encryption_context: EncryptionContext | None = None,
    ) -> None:
        # Ledger and entry; those of the last chunk.
        self.key = key
        # The full name of the topic or partition.
        self.topic = topic
        # Perhaps not parsed yet.
        self._metadata = metadata
        self.partition_index = partition_index
        # How often the broker had sent this before; 0 on Exclusive and Failover.
        self.redelivery_count = redelivery_count
        # Messages in the batch; 0: not a batch.
        self.batch_size = batch_size
        # See `unacked_bits`.
        self._bits = unacked_bits
        self.next_unacked = 0
        self.unacked_end = unacked_bits.bit_length()
        self.decoder = decoder
        self.broker_metadata = broker_metadata
        # All entries of a chunked message, the last one included; empty for others.
        self.chunk_ids = chunk_ids
        self.encryption_context = encryption_context

    @property
    def metadata(self) -> MessageMetadata:
        """The metadata of the whole entry."""
        metadata = self._metadata
        if isinstance(metadata, bytes):
            self._metadata = metadata = MessageMetadata.FromString(metadata)
        return metadata

    @property
    def unacked_bits(self) -> int:
        """The set of messages that are not acknowledged, as an integer."""
        return self._bits >> self.next_unacked << self.next_unacked

    @unacked_bits.setter
    def unacked_bits(self, bits: int) -> None:
        self._bits = bits
        self.next_unacked = max((bits & -bits).bit_length() - 1, 0)
        self.unacked_end = bits.bit_length()

    def message_id(self, batch_index: int) -> ReceivedMessageId:
        """The id of one of its messages; index -1 for an entry that is not a batch."""
        return ReceivedMessageId(self, batch_index)


@lacks(absent_names.MESSAGE_ID)
class ReceivedMessageId(MessageId):
    """The id of a message that this process received: it knows its entry, and its topic.

    Equal to, ordered and serialized as any other `MessageId`. Acknowledging by it works for batches
    without batch index acknowledgements, too.
    """

    __slots__ = ("entry",)

    def __init__(self, entry: ReceivedEntry, batch_index: int) -> None:
        ledger_id, entry_id = entry.key
        first_chunk = None
        if entry.chunk_ids:
            first_chunk = MessageId(*entry.chunk_ids[0], partition_index=entry.partition_index)
        super().__init__(
            ledger_id,
            entry_id,
            partition_index=entry.partition_index,
            batch_index=batch_index,
            batch_size=entry.batch_size,
            first_chunk=first_chunk,
        )
        self.entry = entry

    @property
    def topic_name(self) -> str:
        """The topic, or partition, that the message came from."""
        return self.entry.topic


class Message(Generic[T_co]):
    """A received message, with a value of the type that the schema gives it.

    `data` and `value` give its content; see the class of the same name in the official client.
    """

    __slots__ = ("_data", "_single", "batch_index", "entry")

    def __init__(
        self,
        entry: ReceivedEntry,
        batch_index: int,
        single: SingleMessageMetadata | bytes | None,
        data: bytes,
    ) -> None:
        # The entry, which it shares with the other messages of its batch.
        self.entry = entry
        # -1: not part of a batch.
        self.batch_index = batch_index
        # Its own metadata, perhaps not parsed yet; None if it is not part of a batch.
        self._single = single
        self._data = data

    @property
    def single(self) -> SingleMessageMetadata | None:
        """Its own metadata; None if it is not part of a batch."""
        single = self._single
        if isinstance(single, bytes):
            self._single = single = SingleMessageMetadata.FromString(single)
        return single

    def data(self) -> bytes:
        """The payload; empty for a null value."""
        return self._data

    # Any: a checker that knew of None only would ask every program for a test that matters where
    # somebody sends null values; as it is, it finds whatever the schema's type can't do.
    def value(self) -> T_co | Any:
        """The payload as the consumer's schema reads it; None for a null value.

        Of a key-value schema with a separate key, a null value still has its key.

        Raises:
            SchemaSerializationError: The payload does not fit the schema.
        """
        data = None if self.has_null_value() else self._data
        decoder = self.entry.decoder
        if decoder is None:
            return data
        return decoder.decode(data, self.schema_version(), self.key_bytes())

    def message_id(self) -> ReceivedMessageId:
        """The id of the message; store `message_id().serialize()` to seek to it later."""
        return ReceivedMessageId(self.entry, self.batch_index)

    def topic_name(self) -> str:
        """The full name of the topic or partition that it came from."""
        return self.entry.topic

    def _fields(self) -> MessageMetadata | SingleMessageMetadata:
        """The metadata that has key, properties and event time of this message."""
        single = self.single
        return self.entry.metadata if single is None else single

    @property
    def own_metadata(self) -> MessageMetadata | SingleMessageMetadata:
        """The metadata that has key, properties and event time of this message, to read only."""
        return self._fields()

    def metadata_among(self, known: dict[bytes, OwnMetadata]) -> OwnMetadata:
        """As `own_metadata`, but taken from `known` (serialized -> parsed) where it is there."""
        single = self._single
        if isinstance(single, bytes):
            shared = known.get(single)
            if isinstance(shared, SingleMessageMetadata):
                self._single = shared
            else:
                known[single] = self.own_metadata
        return self.own_metadata

    def properties(self) -> dict[str, str]:
        """The properties that the producer's application attached."""
        return {text_of(each.key): text_of(each.value) for each in self._fields().properties}

    def has_property(self, name: str) -> bool:
        """Whether there is a property of that name."""
        return any(text_of(each.key) == name for each in self._fields().properties)

    def has_key(self) -> bool:
        """Whether it has a partition key, which may be empty."""
        fields = self._fields()
        return fields.HasField("partition_key") and not fields.null_partition_key

    def partition_key(self) -> str:
        """The key, "" if it has none; a key given as bytes comes in Base64, as on the wire.

        Of a key that is not UTF-8, `key_bytes` has the bytes as they came.
        """
        return text_of(self._fields().partition_key)

    def key(self) -> str | None:
        """The key, None if it has none."""
        return self.partition_key() if self.has_key() else None

    def has_base64_encoded_key(self) -> bool:
        """Whether the key was given as bytes; `key_bytes` has them."""
        return self._fields().partition_key_b64_encoded

    def key_bytes(self) -> bytes | None:
        """The key as bytes, None if it has none."""
        return key_bytes_of(self._fields())

    def has_ordering_key(self) -> bool:
        """Whether it has an ordering key."""
        return self._fields().HasField("ordering_key")

    def ordering_key(self) -> str:
        """The ordering key as text, "" if it has none; see `ordering_key_bytes` for other bytes."""
        return self._fields().ordering_key.decode(errors="surrogateescape")

    def ordering_key_bytes(self) -> bytes:
        """The ordering key, b"" if it has none."""
        return self._fields().ordering_key

    def has_null_value(self) -> bool:
        """Whether it is a tombstone, which deletes its key from compacted topics."""
        return self._fields().null_value

    def event_timestamp(self) -> int:
        """The event time that the application set, milliseconds since 1970; 0 if it set none."""
        return self._fields().event_time

    def publish_timestamp(self) -> int:
        """The producer's clock when it published the message, milliseconds since 1970."""
        return self.entry.metadata.publish_time

    def deliver_at_timestamp(self) -> int:
        """The time before which it was not to be delivered, milliseconds since 1970; 0: none."""
        return self.entry.metadata.deliver_at_time

    def redelivery_count(self) -> int:
        """The number of deliveries before this one; counted for Shared and Key_Shared only."""
        return self.entry.redelivery_count

    def producer_name(self) -> str:
        """The name of the producer."""
        return text_of(self.entry.metadata.producer_name)

    def sequence_id(self) -> int:
        """The producer's sequence id."""
        single, metadata = self.single, self.entry.metadata
        if single is None:
            return metadata.sequence_id
        if single.HasField("sequence_id"):
            return single.sequence_id
        return metadata.sequence_id + self.batch_index

    def schema_version(self) -> bytes | None:
        """The version of the topic's schema that the message was written with; None without one."""
        metadata = self.entry.metadata
        return metadata.schema_version if metadata.HasField("schema_version") else None

    def int_schema_version(self) -> int | None:
        """The schema version as a number, counted from 0 by the broker's own registry."""
        version = self.schema_version()
        return None if version is None else int.from_bytes(version, "big")

    def size(self) -> int:
        """Bytes of the payload."""
        return len(self._data)

    def is_replicated(self) -> bool:
        """Whether it came from another cluster."""
        return self.entry.metadata.HasField("replicated_from")

    def replicated_from(self) -> str | None:
        """The cluster it came from, None if it was published in this one."""
        return text_of(self.entry.metadata.replicated_from) if self.is_replicated() else None

    def encryption_context(self) -> EncryptionContext | None:
        """The parameters of its encryption; None if it was not encrypted."""
        return self.entry.encryption_context

    def has_broker_publish_time(self) -> bool:
        """Whether the broker added the time at which it stored the message."""
        broker = self.entry.broker_metadata
        return broker is not None and broker.HasField("broker_timestamp")

    def broker_publish_time(self) -> int | None:
        """When the broker stored it, milliseconds since 1970; None if the broker adds no time."""
        broker = self.entry.broker_metadata
        return broker.broker_timestamp if broker and self.has_broker_publish_time() else None

    def has_index(self) -> bool:
        """Whether the broker added the message's index within the topic."""
        broker = self.entry.broker_metadata
        return broker is not None and broker.HasField("index")

    def index(self) -> int | None:
        """Its index within the topic, from 0; None if the broker adds none."""
        broker = self.entry.broker_metadata
        if broker is None or not self.has_index():
            return None
        # The entry has the index of its last message.
        if self.single is None:
            return broker.index
        return broker.index - self.entry.batch_size + 1 + self.batch_index

    @classmethod
    def of(
        cls,
        data: bytes,
        *,
        key: EntryKey = (0, 0),
        topic: str = "persistent://public/default/t",
        metadata: MessageMetadata | None = None,
    ) -> Self:
        """A message that no broker sent, for tests of code that takes messages."""
        whole = metadata or MessageMetadata(producer_name="p", sequence_id=0, publish_time=0)
        name = TopicName.parse(topic)
        return cls(
            ReceivedEntry(key, str(name), whole, partition_index=name.partition_index),
            _NOT_BATCHED,
            None,
            data,
        )

    def __repr__(self) -> str:
        return f"Message({self.message_id()}, {len(self._data)} bytes, {self.entry.topic})"


_NOT_BATCHED: Final = -1
_data_of: Final[Callable[[Message], bytes]] = attrgetter("_data")


def payload_bytes(messages: Iterable[Message]) -> int:
    """Bytes of all their payloads."""
    # Hot path: consume in `make bench-client`, blocking: half of what asking each message costs.
    return sum(map(len, map(_data_of, messages)))
