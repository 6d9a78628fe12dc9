"""Builds the frames of a client's commands: one function for each command (pure).

Callers pass values, not protobuf messages. A field with its default value is not sent. Commands
with many fields that callers set (PRODUCER, SUBSCRIBE, ACK) are built by the caller as
their `Command…` message and framed by `commands.encode`; `SendEncoder` builds SEND for the hot path
with a reused message. CLOSE_PRODUCER, CLOSE_CONSUMER, PING and PONG stand in `commands`: both sides
send them.

Source: Commands in Pulsar's common module; PulsarApi.proto.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pulsar_py.proto.PulsarApi_pb2 import (
    AuthData,
    CommandAck,
    CommandAuthResponse,
    CommandConnect,
    CommandConsumerStats,
    CommandFlow,
    CommandGetLastMessageId,
    CommandGetOrCreateSchema,
    CommandGetSchema,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandPartitionedTopicMetadata,
    CommandProducer,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandSend,
    CommandSubscribe,
    CommandUnsubscribe,
    CommandWatchTopicList,
    CommandWatchTopicListClose,
    FeatureFlags,
    MessageIdData,
    Schema,
)
from pulsar_py.wire.command_codec import encode, serialize
from pulsar_py.wire.framing import SIZES
from pulsar_py.wire.versions import CURRENT_VERSION

__all__ = [
    "SendEncoder",
    "ack",
    "auth_response",
    "connect",
    "consumer_stats",
    "flow",
    "get_last_message_id",
    "get_or_create_schema",
    "get_schema",
    "get_topics_of_namespace",
    "lookup",
    "partitioned_metadata",
    "producer",
    "redeliver_unacknowledged",
    "seek_to_id",
    "seek_to_time",
    "subscribe",
    "unsubscribe",
    "watch_topic_list",
    "watch_topic_list_close",
]

FEATURE_FLAGS: Final = FeatureFlags(
    supports_auth_refresh=True,
    supports_broker_entry_metadata=True,
    supports_partial_producer=True,
    supports_get_partitioned_metadata_without_auto_creation=True,
)
"""The feature flags of our client."""


def connect(
    client_version: str,
    *,
    auth_method_name: str,
    auth_data: bytes | None,
    proxy_to_broker_url: str | None = None,
    protocol_version: int = CURRENT_VERSION,
) -> bytes:
    """Begin the handshake; `proxy_to_broker_url` is the `host:port` that a proxy connects to."""
    return encode(
        CommandConnect(
            client_version=client_version,
            auth_method_name=auth_method_name,
            auth_data=auth_data,
            protocol_version=protocol_version,
            proxy_to_broker_url=proxy_to_broker_url,
            feature_flags=FEATURE_FLAGS,
        )
    )


def auth_response(client_version: str, *, auth_method_name: str, auth_data: bytes) -> bytes:
    """Answer AUTH_CHALLENGE."""
    return encode(
        CommandAuthResponse(
            client_version=client_version,
            response=AuthData(auth_method_name=auth_method_name, auth_data=auth_data),
            protocol_version=CURRENT_VERSION,
        )
    )


def lookup(
    topic: str,
    request_id: int,
    *,
    is_authoritative: bool = False,
    listener_name: str | None = None,
) -> bytes:
    """Ask which broker owns a topic; authoritative after a redirect that said so."""
    return encode(
        CommandLookupTopic(
            topic=topic,
            request_id=request_id,
            authoritative=is_authoritative,
            advertised_listener_name=listener_name or None,
        )
    )


def partitioned_metadata(topic: str, request_id: int, *, may_create: bool = True) -> bytes:
    """Ask how many partitions a topic has."""
    return encode(
        CommandPartitionedTopicMetadata(
            topic=topic, request_id=request_id, metadata_auto_creation_enabled=may_create
        )
    )


def get_topics_of_namespace(
    namespace: str,
    request_id: int,
    *,
    mode: CommandGetTopicsOfNamespace.Mode.ValueType,
    topics_pattern: str | None = None,
    topics_hash: str | None = None,
) -> bytes:
    """Ask for the topics of `tenant/namespace`; with a hash, only if they changed."""
    return encode(
        CommandGetTopicsOfNamespace(
            namespace=namespace,
            request_id=request_id,
            mode=mode,
            topics_pattern=topics_pattern,
            topics_hash=topics_hash,
        )
    )


def watch_topic_list(
    namespace: str,
    request_id: int,
    watcher_id: int,
    topics_pattern: str,
    *,
    topics_hash: str | None = None,
) -> bytes:
    """Ask for the topics whose names match, and for every later change of that list."""
    return encode(
        CommandWatchTopicList(
            namespace=namespace,
            request_id=request_id,
            watcher_id=watcher_id,
            topics_pattern=topics_pattern,
            topics_hash=topics_hash,
        )
    )


def watch_topic_list_close(request_id: int, watcher_id: int) -> bytes:
    """End a WATCH_TOPIC_LIST: no more changes are sent."""
    return encode(CommandWatchTopicListClose(request_id=request_id, watcher_id=watcher_id))


def get_schema(topic: str, request_id: int, version: bytes | None = None) -> bytes:
    """Ask for a topic's schema; the newest one without `version`."""
    return encode(CommandGetSchema(topic=topic, request_id=request_id, schema_version=version))


def get_or_create_schema(topic: str, request_id: int, schema: Schema) -> bytes:
    """Ask for the version of a schema, which is registered if it is new."""
    return encode(CommandGetOrCreateSchema(topic=topic, request_id=request_id, schema=schema))


def producer(command: CommandProducer) -> bytes:
    """Register a producer; the caller fills the command, `request_id` included."""
    return encode(command)


def subscribe(command: CommandSubscribe) -> bytes:
    """Register a consumer; the caller fills the command, `request_id` included."""
    return encode(command)


def unsubscribe(consumer_id: int, request_id: int, *, is_forced: bool = False) -> bytes:
    """Delete the consumer's subscription; forced even if others use it."""
    return encode(
        CommandUnsubscribe(consumer_id=consumer_id, request_id=request_id, force=is_forced)
    )


def flow(consumer_id: int, permits_count: int) -> bytes:
    """Allow the broker to send `permits_count` more messages; above 0."""
    assert permits_count > 0, f"consumer {consumer_id}: {permits_count} permits"
    return encode(CommandFlow(consumer_id=consumer_id, messagePermits=permits_count))


def ack(command: CommandAck) -> bytes:
    """Acknowledge; the caller fills the command, with `request_id` if it wants an ACK_RESPONSE."""
    return encode(command)


def redeliver_unacknowledged(
    consumer_id: int,
    message_ids: Iterable[MessageIdData] = (),
    *,
    consumer_epoch: int | None = None,
) -> bytes:
    """Ask for messages again: those of `message_ids`, or all unacknowledged ones if it is empty."""
    return encode(
        CommandRedeliverUnacknowledgedMessages(
            consumer_id=consumer_id, message_ids=message_ids, consumer_epoch=consumer_epoch
        )
    )


def seek_to_id(consumer_id: int, request_id: int, message_id: MessageIdData) -> bytes:
    """Move the subscription so that this entry comes next."""
    return encode(
        CommandSeek(consumer_id=consumer_id, request_id=request_id, message_id=message_id)
    )


def seek_to_time(consumer_id: int, request_id: int, publish_time_millis: int) -> bytes:
    """Move the subscription to the first entry published at that time or later."""
    return encode(
        CommandSeek(
            consumer_id=consumer_id,
            request_id=request_id,
            message_publish_time=publish_time_millis,
        )
    )


def get_last_message_id(consumer_id: int, request_id: int) -> bytes:
    """Ask for the topic's last message."""
    return encode(CommandGetLastMessageId(consumer_id=consumer_id, request_id=request_id))


def consumer_stats(consumer_id: int, request_id: int) -> bytes:
    """Ask for the broker's figures about a consumer."""
    return encode(CommandConsumerStats(consumer_id=consumer_id, request_id=request_id))


class SendEncoder:
    """Builds what precedes an entry in SEND; one for each producer.

    Invariant: between two calls `_message` has nothing set but the producer's id.
    """

    __slots__ = ("_message",)

    def __init__(self, producer_id: int) -> None:
        self._message = CommandSend(producer_id=producer_id)

    def encode(
        self,
        sequence_id: int,
        payload_length: int,
        *,
        highest_sequence_id: int | None = None,
        messages_count: int = 1,
        is_chunk: bool = False,
        txn_id: tuple[int, int] | None = None,
    ) -> bytes:
        """The beginning of the frame; `payload_length` bytes of an entry have to follow it.

        `payload_length` counts everything after the command: checksum, metadata and payload.
        `highest_sequence_id` is a batch's last; `txn_id` is (most, least significant bits).
        """
        # Hot path: produce in `make bench-client`.
        message = self._message
        message.sequence_id = sequence_id
        if messages_count != 1 or highest_sequence_id is not None or is_chunk or txn_id is not None:
            command = self._serialize_rare(highest_sequence_id, messages_count, is_chunk, txn_id)
        else:
            command = serialize(message)
        size = len(command)
        return SIZES.pack(size + 4 + payload_length, size) + command

    def plain_start(self, id_size: int, payload_length: int) -> bytes:
        """What `encode` gives for one message, up to its sequence id, whose bytes have to follow.

        `id_size` is the number of these bytes, `payload_length` as there.
        """
        message = self._message
        message.sequence_id = 1 << 7 * (id_size - 1)  # any that takes so many bytes
        command = serialize(message)
        size = len(command)
        return SIZES.pack(size + 4 + payload_length, size) + command[:-id_size]

    def _serialize_rare(
        self,
        highest_sequence_id: int | None,
        messages_count: int,
        is_chunk: bool,  # noqa: FBT001 - private, handed on as it came
        txn_id: tuple[int, int] | None,
    ) -> bytes:
        message = self._message
        if messages_count != 1:
            message.num_messages = messages_count
        if highest_sequence_id is not None:
            message.highest_sequence_id = highest_sequence_id
        if is_chunk:
            message.is_chunk = True
        if txn_id is not None:
            message.txnid_most_bits, message.txnid_least_bits = txn_id
        command = serialize(message)
        message.ClearField("num_messages")
        message.ClearField("highest_sequence_id")
        message.ClearField("is_chunk")
        message.ClearField("txnid_most_bits")
        message.ClearField("txnid_least_bits")
        return command
