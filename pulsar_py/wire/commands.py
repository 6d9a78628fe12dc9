"""Commands: reading them, and building the frames that carry them.

`read_command` is the one reader: it returns the parsed BaseCommand and guarantees that the
sub-message its type names is there and complete. `encode` is the one builder: it frames any
`Command…` message, whoever sends it. The functions below it spell out what a broker answers, one
for each shape of answer, so that callers name values and not fields; PING and PONG are constant.
What goes out once an entry has encoders that reuse their message: `SendReceiptEncoder` and
`MessageEncoder`. (Parsing can't reuse one: upb frees what it parsed only with the whole message.)

A frame is complete `bytes`, ready for the socket; MESSAGE is followed by the stored entry as it is.

Source: Commands in Pulsar's common module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from google.protobuf.message import DecodeError, Message

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.message_id import to_unsigned
from pulsar_py.common.position import Position
from pulsar_py.proto.PulsarApi_pb2 import (
    AuthData,
    BaseCommand,
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
    CommandMessage,
    CommandNewTxnResponse,
    CommandPartitionedTopicMetadataResponse,
    CommandPing,
    CommandPong,
    CommandProducerSuccess,
    CommandReachedEndOfTopic,
    CommandSendError,
    CommandSendReceipt,
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
from pulsar_py.wire.framing import SIZES

NO_REQUEST_ID: Final = 2**64 - 1
"""What a broker puts where there was no request: -1, unsigned."""

# type -> name of the field that holds the sub-message; the field's number equals the type.
FIELD_NAMES: Final[dict[int, str]] = {
    field.number: field.name
    for field in BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}
_TYPE_NUMBERS: Final[dict[str, int]] = {
    field.message_type.full_name: field.number
    for field in BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# full name of a Command... message -> what precedes its length in a BaseCommand: type, field tag.
_PREFIXES: Final[dict[str, bytes]] = {
    name: b"\x08" + _varint(number) + _varint(number << 3 | 2)
    for name, number in _TYPE_NUMBERS.items()
}
_VARINTS: Final = tuple(_varint(size) for size in range(1024))


def read_command(data: bytes) -> BaseCommand:
    """Parse what a frame has as its command.

    Raises:
        RemoteProtocolError: It can't be parsed, its type is unknown, the sub-message of its type is
            missing, or a required field is.
    """
    # Hot path: read_command in benchmarks/micro.
    try:
        command = BaseCommand.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError(f"command of {len(data)} bytes: {error}") from None
    if command.IsInitialized() and command.HasField(FIELD_NAMES[command.type]):  # type: ignore[arg-type] # the stub lists literals
        return command
    if not command.HasField("type"):
        raise RemoteProtocolError("command of an unknown type, or of none")
    name = BaseCommand.Type.Name(command.type)
    raise RemoteProtocolError(f"{name} lacks its message or a required field of it")


def serialize(message: Message) -> bytes:
    """The serialized BaseCommand that has `message`, any `Command…`, as its sub-message."""
    data = message.SerializeToString()
    size = len(data)
    length = _VARINTS[size] if size < len(_VARINTS) else _varint(size)
    return _PREFIXES[message.DESCRIPTOR.full_name] + length + data


def encode(message: Message) -> bytes:
    """The frame of any `Command…` message that has no payload."""
    command = serialize(message)
    size = len(command)
    return SIZES.pack(size + 4, size) + command


class SendReceiptEncoder:
    """Builds SEND_RECEIPTs; one for each event loop is enough."""

    __slots__ = ("_message", "_message_id", "_prefix")

    def __init__(self) -> None:
        self._message = CommandSendReceipt()
        # A part of `_message`: setting its fields sets them there.
        self._message_id = self._message.message_id
        self._prefix = _PREFIXES[CommandSendReceipt.DESCRIPTOR.full_name]

    def encode(
        self,
        producer_id: int,
        sequence_id: int,
        ledger_id: int,
        entry_id: int,
        highest_sequence_id: int | None = None,
    ) -> bytes:
        """The frame for one stored entry; ledger and entry -1 say that it was a duplicate.

        `highest_sequence_id` repeats that of the SEND, and stays away where that had none.
        """
        # Hot path: SEND_RECEIPT in benchmarks/micro.
        message = self._message
        message.producer_id = producer_id
        message.sequence_id = sequence_id
        if ledger_id < 0:
            ledger_id, entry_id = to_unsigned(ledger_id), to_unsigned(entry_id)
        message_id = self._message_id
        message_id.ledgerId = ledger_id
        message_id.entryId = entry_id
        if highest_sequence_id is not None:
            message.highest_sequence_id = highest_sequence_id
            data = message.SerializeToString()
            message.ClearField("highest_sequence_id")
        else:
            data = message.SerializeToString()
        size = len(data)  # at most 60 bytes, so that its length is one byte
        return b"%b%b%b%b" % (SIZES.pack(size + 8, size + 4), self._prefix, _VARINTS[size], data)


class MessageEncoder:
    """Builds what precedes an entry in MESSAGE; one for each consumer."""

    __slots__ = ("_message", "_message_id", "_prefix")

    def __init__(self, consumer_id: int, partition_index: int = -1) -> None:
        self._message = CommandMessage(consumer_id=consumer_id)
        # A part of `_message`: setting its fields sets them there.
        self._message_id = self._message.message_id
        if partition_index >= 0:
            self._message_id.partition = partition_index
        self._prefix = _PREFIXES[CommandMessage.DESCRIPTOR.full_name]

    def encode(
        self,
        ledger_id: int,
        entry_id: int,
        payload_length: int,
        *,
        redelivery_count: int = 0,
        ack_set: Sequence[int] | None = None,
        consumer_epoch: int | None = None,
    ) -> bytes:
        """The beginning of the frame; `payload_length` bytes of an entry have to follow it.

        `ack_set` are the words of the indexes to deliver; None or none means all.
        """
        # Hot path: MESSAGE in benchmarks/micro.
        message_id = self._message_id
        message_id.ledgerId = ledger_id
        message_id.entryId = entry_id
        if redelivery_count or ack_set or consumer_epoch is not None:
            data = self._serialize_rare(redelivery_count, ack_set, consumer_epoch)
        else:
            data = self._message.SerializeToString()
        size = len(data)
        length = _VARINTS[size] if size < len(_VARINTS) else _varint(size)
        command_size = size + len(length) + 3
        sizes = SIZES.pack(command_size + 4 + payload_length, command_size)
        return b"%b%b%b%b" % (sizes, b"\x08\x09\x4a", length, data)

    def _serialize_rare(
        self, redelivery_count: int, ack_set: Sequence[int] | None, consumer_epoch: int | None
    ) -> bytes:
        message = self._message
        if redelivery_count:
            message.redelivery_count = redelivery_count
        if ack_set:
            message.ack_set.extend(ack_set)
        if consumer_epoch is not None:
            message.consumer_epoch = consumer_epoch
        data = message.SerializeToString()
        message.ClearField("redelivery_count")
        message.ClearField("ack_set")
        message.ClearField("consumer_epoch")
        return data


def ping() -> bytes:
    """Ask whether the peer is there."""
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
    """Ask for (more, or fresh) credentials."""
    return encode(
        CommandAuthChallenge(
            server_version=server_version,
            challenge=AuthData(auth_method_name=auth_method_name, auth_data=auth_data),
            protocol_version=protocol_version,
        )
    )


def success(request_id: int, schema: Schema | None = None) -> bytes:
    """Answer a request that has no answer of its own."""
    return encode(CommandSuccess(request_id=request_id, schema=schema))


def error(request_id: int, code: ServerError.ValueType, message: str) -> bytes:
    """Refuse a request; `NO_REQUEST_ID` for the connection itself."""
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
    """Accept a PRODUCER; not ready means that it waits for its turn and will be told."""
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
    """Answer an ACK that asked for a receipt; `txn_id` is (most, least significant bits)."""
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
    """Close a producer; a broker gives no request id, and perhaps where the topic is now."""
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
    """Close a consumer; a broker gives no request id, and perhaps where the topic is now."""
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
    """A position as the wire has it; partition and batch index are left out below 0."""
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
    """Answer GET_TOPICS_OF_NAMESPACE; without change the list has to be empty."""
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
    """Tell a watcher what changed; the hash is that of the whole list after it."""
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
    """Answer LOOKUP: connect to that broker, or ask it (`is_redirect`)."""
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


def _transaction_response(
    kind: type[
        CommandNewTxnResponse
        | CommandAddPartitionToTxnResponse
        | CommandAddSubscriptionToTxnResponse
        | CommandEndTxnResponse
        | CommandEndTxnOnPartitionResponse
        | CommandEndTxnOnSubscriptionResponse
    ],
    request_id: int,
    txn_id: tuple[int, int] | None,
    code: ServerError.ValueType | None,
    message: str | None,
) -> bytes:
    response = kind(request_id=request_id, error=code, message=message)
    if txn_id is not None:
        response.txnid_most_bits, response.txnid_least_bits = txn_id
    return encode(response)


def new_txn_response(
    request_id: int,
    txn_id: tuple[int, int] | None,
    *,
    code: ServerError.ValueType | None = None,
    message: str | None = None,
) -> bytes:
    """Answer NEW_TXN; ids of transactions are (most, least significant bits), here and below."""
    return _transaction_response(CommandNewTxnResponse, request_id, txn_id, code, message)


def add_partition_to_txn_response(
    request_id: int,
    txn_id: tuple[int, int] | None,
    *,
    code: ServerError.ValueType | None = None,
    message: str | None = None,
) -> bytes:
    """Answer ADD_PARTITION_TO_TXN."""
    return _transaction_response(
        CommandAddPartitionToTxnResponse, request_id, txn_id, code, message
    )


def add_subscription_to_txn_response(
    request_id: int,
    txn_id: tuple[int, int] | None,
    *,
    code: ServerError.ValueType | None = None,
    message: str | None = None,
) -> bytes:
    """Answer ADD_SUBSCRIPTION_TO_TXN."""
    return _transaction_response(
        CommandAddSubscriptionToTxnResponse, request_id, txn_id, code, message
    )


def end_txn_response(
    request_id: int,
    txn_id: tuple[int, int] | None,
    *,
    code: ServerError.ValueType | None = None,
    message: str | None = None,
) -> bytes:
    """Answer END_TXN."""
    return _transaction_response(CommandEndTxnResponse, request_id, txn_id, code, message)


def end_txn_on_partition_response(
    request_id: int,
    txn_id: tuple[int, int] | None,
    *,
    code: ServerError.ValueType | None = None,
    message: str | None = None,
) -> bytes:
    """Answer END_TXN_ON_PARTITION."""
    return _transaction_response(
        CommandEndTxnOnPartitionResponse, request_id, txn_id, code, message
    )


def end_txn_on_subscription_response(
    request_id: int,
    txn_id: tuple[int, int] | None,
    *,
    code: ServerError.ValueType | None = None,
    message: str | None = None,
) -> bytes:
    """Answer END_TXN_ON_SUBSCRIPTION."""
    return _transaction_response(
        CommandEndTxnOnSubscriptionResponse, request_id, txn_id, code, message
    )
