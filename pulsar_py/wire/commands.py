"""Builds the frames of a broker's responses: one function for each form of response (pure).

Callers pass values, not protobuf messages. Every other command, a client's too, is framed by
`encode` with its `Command…` message. The names of `command_codec` are here as well, so that callers
import one module.

Source: Commands in Pulsar's common module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from pulsar_py.common.message_id import to_unsigned
from pulsar_py.common.position import Position
from pulsar_py.proto.PulsarApi_pb2 import (
    AuthData,
    CommandAckResponse,
    CommandActiveConsumerChange,
    CommandAddPartitionToTxnResponse,
    CommandAddSubscriptionToTxnResponse,
    CommandAuthChallenge,
    CommandCloseConsumer,
    CommandCloseProducer,
    CommandConnected,
    CommandConsumerStatsResponse,
    CommandEndTxnOnPartitionResponse,
    CommandEndTxnOnSubscriptionResponse,
    CommandEndTxnResponse,
    CommandError,
    CommandGetLastMessageIdResponse,
    CommandGetOrCreateSchemaResponse,
    CommandGetSchemaResponse,
    CommandGetTopicsOfNamespaceResponse,
    CommandLookupTopicResponse,
    CommandNewTxnResponse,
    CommandPartitionedTopicMetadataResponse,
    CommandPing,
    CommandPong,
    CommandProducerSuccess,
    CommandReachedEndOfTopic,
    CommandSendError,
    CommandSuccess,
    CommandTcClientConnectResponse,
    CommandTopicMigrated,
    CommandWatchTopicListSuccess,
    CommandWatchTopicUpdate,
    FeatureFlags,
    MessageIdData,
    Schema,
    ServerError,
)
from pulsar_py.wire.command_codec import (
    FIELD_NAMES,
    MessageEncoder,
    SendReceiptEncoder,
    encode,
    read_command,
    serialize,
)

__all__ = [
    "FIELD_NAMES",
    "NO_REQUEST_ID",
    "MessageEncoder",
    "SendReceiptEncoder",
    "TransactionResponse",
    "ack_response",
    "active_consumer_change",
    "add_partition_to_txn_response",
    "add_subscription_to_txn_response",
    "auth_challenge",
    "close_consumer",
    "close_producer",
    "connected",
    "consumer_stats_response",
    "encode",
    "end_txn_on_partition_response",
    "end_txn_on_subscription_response",
    "end_txn_response",
    "error",
    "get_last_message_id_response",
    "get_or_create_schema_failed",
    "get_or_create_schema_response",
    "get_schema_failed",
    "get_schema_response",
    "get_topics_of_namespace_response",
    "lookup_failed",
    "lookup_response",
    "message_id_data",
    "new_txn_response",
    "partitioned_metadata_failed",
    "partitioned_metadata_response",
    "ping",
    "pong",
    "producer_success",
    "reached_end_of_topic",
    "read_command",
    "send_error",
    "serialize",
    "success",
    "tc_client_connect_response",
    "topic_migrated",
    "watch_topic_list_success",
    "watch_topic_update",
]

NO_REQUEST_ID: Final = 2**64 - 1
"""The request id of a broker's answer without a request: -1, unsigned."""


def ping() -> bytes:
    """Ask the peer to show that it is alive."""
    return _PING


def pong() -> bytes:
    """Answer a PING."""
    return _PONG


_PING: Final = encode(CommandPing())
_PONG: Final = encode(CommandPong())


def connected(
    server_version: str, protocol_version: int, max_message_size: int, feature_flags: FeatureFlags
) -> bytes:
    """Accept a CONNECT; `protocol_version` is the lower of both sides'."""
    return encode(
        CommandConnected(
            server_version=server_version,
            protocol_version=protocol_version,
            max_message_size=max_message_size,
            feature_flags=feature_flags,
        )
    )


def auth_challenge(
    auth_method_name: str, auth_data: bytes, *, server_version: str, protocol_version: int
) -> bytes:
    """Ask for credentials: further ones in the handshake, or fresh ones after it."""
    return encode(
        CommandAuthChallenge(
            server_version=server_version,
            challenge=AuthData(auth_method_name=auth_method_name, auth_data=auth_data),
            protocol_version=protocol_version,
        )
    )


def success(request_id: int, schema: Schema | None = None) -> bytes:
    """Answer a request whose success has no command of its own."""
    return encode(CommandSuccess(request_id=request_id, schema=schema))


def error(request_id: int, code: ServerError.ValueType, message: str) -> bytes:
    """Refuse a request; `NO_REQUEST_ID` refuses the connection itself."""
    return encode(CommandError(request_id=request_id, error=code, message=message))


def producer_success(
    request_id: int,
    producer_name: str,
    *,
    last_sequence_id: int = -1,
    schema_version: bytes | None = None,
    topic_epoch: int | None = None,
    is_ready: bool = True,
) -> bytes:
    """Accept a PRODUCER; if not `is_ready` it waits for exclusive access, and an answer follows."""
    return encode(
        CommandProducerSuccess(
            request_id=request_id,
            producer_name=producer_name,
            last_sequence_id=last_sequence_id,
            schema_version=schema_version if schema_version is not None else b"",
            topic_epoch=topic_epoch,
            producer_ready=is_ready,
        )
    )


def send_error(
    producer_id: int, sequence_id: int, code: ServerError.ValueType, message: str
) -> bytes:
    """Refuse a SEND."""
    return encode(
        CommandSendError(
            producer_id=producer_id, sequence_id=sequence_id, error=code, message=message
        )
    )


def ack_response(
    consumer_id: int,
    request_id: int,
    *,
    code: ServerError.ValueType | None = None,
    message: str | None = None,
    txn_id: tuple[int, int] | None = None,
) -> bytes:
    """Answer an ACK that has a request id; `txn_id` is (most, least significant bits)."""
    response = CommandAckResponse(
        consumer_id=consumer_id, request_id=request_id, error=code, message=message
    )
    if txn_id is not None:
        response.txnid_most_bits, response.txnid_least_bits = txn_id
    return encode(response)


def active_consumer_change(consumer_id: int, *, is_active: bool) -> bytes:
    """Tell a Failover consumer whether it gets the messages from here on."""
    return encode(CommandActiveConsumerChange(consumer_id=consumer_id, is_active=is_active))


def reached_end_of_topic(consumer_id: int) -> bytes:
    """Tell a consumer that the topic was terminated and nothing is left."""
    return encode(CommandReachedEndOfTopic(consumer_id=consumer_id))


def topic_migrated(
    resource_id: int,
    resource_type: CommandTopicMigrated.ResourceType.ValueType,
    *,
    broker_service_url: str | None = None,
    broker_service_url_tls: str | None = None,
) -> bytes:
    """Send a producer or consumer to another cluster."""
    return encode(
        CommandTopicMigrated(
            resource_id=resource_id,
            resource_type=resource_type,
            brokerServiceUrl=broker_service_url,
            brokerServiceUrlTls=broker_service_url_tls,
        )
    )


def close_producer(
    producer_id: int,
    request_id: int = NO_REQUEST_ID,
    *,
    assigned_url: str | None = None,
    assigned_url_tls: str | None = None,
) -> bytes:
    """Close a producer; a broker sends no request id, and the topic's new URL where it knows it."""
    return encode(
        CommandCloseProducer(
            producer_id=producer_id,
            request_id=request_id,
            assignedBrokerServiceUrl=assigned_url,
            assignedBrokerServiceUrlTls=assigned_url_tls,
        )
    )


def close_consumer(
    consumer_id: int,
    request_id: int = NO_REQUEST_ID,
    *,
    assigned_url: str | None = None,
    assigned_url_tls: str | None = None,
) -> bytes:
    """Close a consumer; a broker sends no request id, and the topic's new URL where it knows it."""
    return encode(
        CommandCloseConsumer(
            consumer_id=consumer_id,
            request_id=request_id,
            assignedBrokerServiceUrl=assigned_url,
            assignedBrokerServiceUrlTls=assigned_url_tls,
        )
    )


def consumer_stats_response(response: CommandConsumerStatsResponse) -> bytes:
    """Answer CONSUMER_STATS; numbers below zero have to be made unsigned before."""
    return encode(response)


def message_id_data(
    position: Position,
    *,
    partition_index: int = -1,
    batch_index: int = -1,
    batch_size: int | None = None,
) -> MessageIdData:
    """A position as MessageIdData; a partition or batch index below 0 is left out."""
    data = MessageIdData(
        ledgerId=to_unsigned(position.ledger_id), entryId=to_unsigned(position.entry_id)
    )
    if partition_index >= 0:
        data.partition = partition_index
    if batch_index >= 0:
        data.batch_index = batch_index
    if batch_size is not None:
        data.batch_size = batch_size
    return data


def get_last_message_id_response(
    request_id: int,
    last_message_id: MessageIdData,
    consumer_mark_delete_position: Position | None = None,
) -> bytes:
    """Answer GET_LAST_MESSAGE_ID."""
    response = CommandGetLastMessageIdResponse(
        request_id=request_id, last_message_id=last_message_id
    )
    if consumer_mark_delete_position is not None:
        response.consumer_mark_delete_position.CopyFrom(
            message_id_data(consumer_mark_delete_position)
        )
    return encode(response)


def get_topics_of_namespace_response(
    request_id: int,
    topics: Iterable[str],
    *,
    is_filtered: bool,
    topics_hash: str,
    is_changed: bool,
) -> bytes:
    """Answer GET_TOPICS_OF_NAMESPACE; `topics` has to be empty if `is_changed` is False."""
    return encode(
        CommandGetTopicsOfNamespaceResponse(
            request_id=request_id,
            topics=topics,
            filtered=is_filtered,
            topics_hash=topics_hash,
            changed=is_changed,
        )
    )


def watch_topic_list_success(
    request_id: int, watcher_id: int, topics: Iterable[str], topics_hash: str
) -> bytes:
    """Accept WATCH_TOPIC_LIST; the list is empty where the client's hash matched."""
    return encode(
        CommandWatchTopicListSuccess(
            request_id=request_id, watcher_id=watcher_id, topic=topics, topics_hash=topics_hash
        )
    )


def watch_topic_update(
    watcher_id: int, new_topics: Iterable[str], deleted_topics: Iterable[str], topics_hash: str
) -> bytes:
    """Tell a watcher what changed; the hash is that of the whole list after the change."""
    return encode(
        CommandWatchTopicUpdate(
            watcher_id=watcher_id,
            new_topics=new_topics,
            deleted_topics=deleted_topics,
            topics_hash=topics_hash,
        )
    )


def partitioned_metadata_response(request_id: int, partitions_count: int) -> bytes:
    """Answer PARTITIONED_METADATA; 0 for a topic without partitions."""
    return encode(
        CommandPartitionedTopicMetadataResponse(
            request_id=request_id,
            partitions=partitions_count,
            response=CommandPartitionedTopicMetadataResponse.Success,
        )
    )


def partitioned_metadata_failed(
    request_id: int, code: ServerError.ValueType, message: str
) -> bytes:
    """Refuse PARTITIONED_METADATA."""
    return encode(
        CommandPartitionedTopicMetadataResponse(
            request_id=request_id,
            response=CommandPartitionedTopicMetadataResponse.Failed,
            error=code,
            message=message,
        )
    )


def lookup_response(
    request_id: int,
    *,
    broker_service_url: str | None,
    broker_service_url_tls: str | None,
    is_redirect: bool,
    is_authoritative: bool,
    is_proxy_through_service_url: bool,
) -> bytes:
    """Answer LOOKUP: connect to that broker, or send it the LOOKUP again (`is_redirect`)."""
    kind = CommandLookupTopicResponse
    return encode(
        CommandLookupTopicResponse(
            request_id=request_id,
            brokerServiceUrl=broker_service_url,
            brokerServiceUrlTls=broker_service_url_tls,
            response=kind.Redirect if is_redirect else kind.Connect,
            authoritative=is_authoritative,
            proxy_through_service_url=is_proxy_through_service_url,
        )
    )


def lookup_failed(request_id: int, code: ServerError.ValueType, message: str) -> bytes:
    """Refuse LOOKUP."""
    return encode(
        CommandLookupTopicResponse(
            request_id=request_id,
            response=CommandLookupTopicResponse.Failed,
            error=code,
            message=message,
        )
    )


def get_schema_response(request_id: int, schema: Schema, schema_version: bytes) -> bytes:
    """Answer GET_SCHEMA."""
    return encode(
        CommandGetSchemaResponse(
            request_id=request_id, schema=schema, schema_version=schema_version
        )
    )


def get_schema_failed(request_id: int, code: ServerError.ValueType, message: str) -> bytes:
    """Refuse GET_SCHEMA."""
    return encode(
        CommandGetSchemaResponse(request_id=request_id, error_code=code, error_message=message)
    )


def get_or_create_schema_response(request_id: int, schema_version: bytes) -> bytes:
    """Answer GET_OR_CREATE_SCHEMA."""
    return encode(
        CommandGetOrCreateSchemaResponse(request_id=request_id, schema_version=schema_version)
    )


def get_or_create_schema_failed(
    request_id: int, code: ServerError.ValueType, message: str
) -> bytes:
    """Refuse GET_OR_CREATE_SCHEMA."""
    return encode(
        CommandGetOrCreateSchemaResponse(
            request_id=request_id, error_code=code, error_message=message
        )
    )


def tc_client_connect_response(
    request_id: int, *, code: ServerError.ValueType | None = None, message: str | None = None
) -> bytes:
    """Answer TC_CLIENT_CONNECT_REQUEST."""
    return encode(
        CommandTcClientConnectResponse(request_id=request_id, error=code, message=message)
    )


class TransactionResponse(Protocol):
    """Builds one kind of answer to a transaction's request: an id, an error, or both."""

    def __call__(
        self,
        request_id: int,
        txn_id: tuple[int, int] | None,
        *,
        code: ServerError.ValueType | None = None,
        message: str | None = None,
    ) -> bytes:
        """The frame; `txn_id` is (most, least significant bits)."""


def _transaction_response(
    kind: type[
        CommandNewTxnResponse
        | CommandAddPartitionToTxnResponse
        | CommandAddSubscriptionToTxnResponse
        | CommandEndTxnResponse
        | CommandEndTxnOnPartitionResponse
        | CommandEndTxnOnSubscriptionResponse
    ],
) -> TransactionResponse:
    def build(
        request_id: int,
        txn_id: tuple[int, int] | None,
        *,
        code: ServerError.ValueType | None = None,
        message: str | None = None,
    ) -> bytes:
        response = kind(request_id=request_id, error=code, message=message)
        if txn_id is not None:
            response.txnid_most_bits, response.txnid_least_bits = txn_id
        return encode(response)

    return build


new_txn_response = _transaction_response(CommandNewTxnResponse)
add_partition_to_txn_response = _transaction_response(CommandAddPartitionToTxnResponse)
add_subscription_to_txn_response = _transaction_response(CommandAddSubscriptionToTxnResponse)
end_txn_response = _transaction_response(CommandEndTxnResponse)
end_txn_on_partition_response = _transaction_response(CommandEndTxnOnPartitionResponse)
end_txn_on_subscription_response = _transaction_response(CommandEndTxnOnSubscriptionResponse)
