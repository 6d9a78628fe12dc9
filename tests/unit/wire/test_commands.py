"""Reading and building commands."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.proto import PulsarApi_pb2 as api
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, MessageIdData, ServerError
from pulsar_py.wire import commands
from pulsar_py.wire.commands import MessageEncoder, SendReceiptEncoder
from pulsar_py.wire.framing import FrameDecoder, encode_command

SUB_MESSAGES = [field for field in BaseCommand.DESCRIPTOR.fields if field.message_type is not None]


def read(frame: bytes) -> BaseCommand:
    (only,) = FrameDecoder(10_000_000).decode(frame)
    assert only.headers_and_payload is None
    return commands.read_command(only.command)


def fill(message: Message) -> None:
    """Set every required field to something."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required:
            continue
        if field.message_type is not None:
            fill(getattr(message, field.name))
            getattr(message, field.name).SetInParent()
        elif field.enum_type is not None:
            setattr(message, field.name, field.enum_type.values[0].number)
        elif isinstance(field.default_value, bytes):
            setattr(message, field.name, b"x")
        else:
            setattr(message, field.name, "x" if isinstance(field.default_value, str) else 7)


@pytest.mark.parametrize("field", SUB_MESSAGES, ids=lambda field: field.name)
def test_every_command_is_framed_as_protobuf_does_and_reads_back(field: Any) -> None:
    command = BaseCommand(type=field.number)
    message = getattr(command, field.name)
    message.SetInParent()
    fill(message)

    frame = commands.encode(message)

    assert frame == encode_command(command)
    assert read(frame) == command


@pytest.mark.parametrize("size", [100, 127, 128, 1023, 1024, 20_000])
def test_lengths_of_any_size(size: int) -> None:
    frame = commands.error(1, ServerError.UnknownError, "x" * size)

    assert read(frame).error.message == "x" * size


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("", "unknown type"),
        ("0829", "unknown type"),
        ("0852", "unknown type"),
        ("08e807", "unknown type"),
        ("0812", "PING lacks"),
        ("080632020801", "SEND lacks"),
        ("08029201 00", "CONNECT lacks"),
        ("ffffffffffffffff", "command of 8 bytes"),
        ("08068a", "command of 3 bytes"),
    ],
)
def test_what_is_no_command_is_refused(data: str, text: str) -> None:
    with pytest.raises(RemoteProtocolError, match=text):
        commands.read_command(bytes.fromhex(data))


def test_unknown_fields_are_ignored() -> None:
    command = commands.read_command(bytes.fromhex("0812920100a01f01"))

    assert command.type == BaseCommand.PING


def test_receipts_are_those_of_protobuf() -> None:
    encoder = SendReceiptEncoder()

    def expected(**fields: Any) -> bytes:
        receipt = api.CommandSendReceipt(
            producer_id=3,
            message_id=MessageIdData(ledgerId=fields.pop("ledger"), entryId=fields.pop("entry")),
            **fields,
        )
        return encode_command(BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=receipt))

    assert encoder.encode(3, 1, 7, 9) == expected(sequence_id=1, ledger=7, entry=9)
    assert encoder.encode(3, 2, -1, -1, 5) == expected(
        sequence_id=2, ledger=2**64 - 1, entry=2**64 - 1, highest_sequence_id=5
    )
    assert encoder.encode(3, 2**64 - 1, 0, 0) == expected(sequence_id=2**64 - 1, ledger=0, entry=0)


def test_messages_precede_their_entry() -> None:
    encoder = MessageEncoder(4, 2)
    entry = b"entry" * 1000

    plain = encoder.encode(7, 9, len(entry)) + entry
    rich = encoder.encode(
        7, 10, len(entry), redelivery_count=2, ack_set=[5, -1] * 300, consumer_epoch=0
    )
    again = encoder.encode(7, 11, 0)

    (frame,) = FrameDecoder(10_000).decode(plain)
    assert frame.headers_and_payload == entry
    assert commands.read_command(frame.command).message == api.CommandMessage(
        consumer_id=4, message_id=MessageIdData(ledgerId=7, entryId=9, partition=2)
    )
    (frame,) = FrameDecoder(100_000).decode(rich + entry)
    assert frame.headers_and_payload == entry
    assert commands.read_command(frame.command).message == api.CommandMessage(
        consumer_id=4,
        message_id=MessageIdData(ledgerId=7, entryId=10, partition=2),
        redelivery_count=2,
        ack_set=[5, -1] * 300,
        consumer_epoch=0,
    )
    assert read(again).message.message_id.entryId == 11
    assert not read(again).message.HasField("redelivery_count")
    assert not read(again).message.HasField("consumer_epoch")


def test_a_message_of_an_unpartitioned_topic_has_no_partition() -> None:
    message = read(MessageEncoder(4).encode(7, 9, 0)).message

    assert not message.message_id.HasField("partition")


SCHEMA = api.Schema(name="s", schema_data=b"d", type=api.Schema.Json)
BROKER_ANSWERS: list[tuple[bytes, Message]] = [
    (commands.ping(), api.CommandPing()),
    (commands.pong(), api.CommandPong()),
    (
        commands.connected("Pulsar Server", 21, 5, api.FeatureFlags(supports_topic_watchers=True)),
        api.CommandConnected(
            server_version="Pulsar Server",
            protocol_version=21,
            max_message_size=5,
            feature_flags=api.FeatureFlags(supports_topic_watchers=True),
        ),
    ),
    (
        commands.auth_challenge("token", b"d", server_version="v", protocol_version=20),
        api.CommandAuthChallenge(
            server_version="v",
            challenge=api.AuthData(auth_method_name="token", auth_data=b"d"),
            protocol_version=20,
        ),
    ),
    (commands.success(7), api.CommandSuccess(request_id=7)),
    (commands.success(7, SCHEMA), api.CommandSuccess(request_id=7, schema=SCHEMA)),
    (
        commands.error(commands.NO_REQUEST_ID, ServerError.AuthenticationError, "no"),
        api.CommandError(request_id=2**64 - 1, error=ServerError.AuthenticationError, message="no"),
    ),
    (
        commands.producer_success(1, "p", topic_epoch=0, is_ready=False),
        api.CommandProducerSuccess(
            request_id=1,
            producer_name="p",
            last_sequence_id=-1,
            schema_version=b"",
            topic_epoch=0,
            producer_ready=False,
        ),
    ),
    (
        commands.send_error(1, 2, ServerError.ChecksumError, "bad"),
        api.CommandSendError(
            producer_id=1, sequence_id=2, error=ServerError.ChecksumError, message="bad"
        ),
    ),
    (commands.ack_response(1, 2), api.CommandAckResponse(consumer_id=1, request_id=2)),
    (
        commands.ack_response(
            1, 2, code=ServerError.TransactionConflict, message="m", txn_id=(3, 4)
        ),
        api.CommandAckResponse(
            consumer_id=1,
            request_id=2,
            error=ServerError.TransactionConflict,
            message="m",
            txnid_most_bits=3,
            txnid_least_bits=4,
        ),
    ),
    (
        commands.active_consumer_change(1, is_active=False),
        api.CommandActiveConsumerChange(consumer_id=1, is_active=False),
    ),
    (commands.reached_end_of_topic(1), api.CommandReachedEndOfTopic(consumer_id=1)),
    (
        commands.topic_migrated(3, api.CommandTopicMigrated.Consumer, broker_service_url="u"),
        api.CommandTopicMigrated(
            resource_id=3, resource_type=api.CommandTopicMigrated.Consumer, brokerServiceUrl="u"
        ),
    ),
    (
        commands.close_producer(1),
        api.CommandCloseProducer(producer_id=1, request_id=2**64 - 1),
    ),
    (
        commands.close_consumer(1, 5, assigned_url="u", assigned_url_tls="t"),
        api.CommandCloseConsumer(
            consumer_id=1,
            request_id=5,
            assignedBrokerServiceUrl="u",
            assignedBrokerServiceUrlTls="t",
        ),
    ),
    (
        commands.consumer_stats_response(
            api.CommandConsumerStatsResponse(request_id=1, msgRateOut=2.5)
        ),
        api.CommandConsumerStatsResponse(request_id=1, msgRateOut=2.5),
    ),
    (
        commands.get_last_message_id_response(
            1,
            commands.message_id_data(
                Position(1, 2), partition_index=0, batch_index=3, batch_size=4
            ),
            EARLIEST,
        ),
        api.CommandGetLastMessageIdResponse(
            request_id=1,
            last_message_id=MessageIdData(
                ledgerId=1, entryId=2, partition=0, batch_index=3, batch_size=4
            ),
            consumer_mark_delete_position=MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1),
        ),
    ),
    (
        commands.get_topics_of_namespace_response(
            1, ["t"], is_filtered=True, topics_hash="h", is_changed=True
        ),
        api.CommandGetTopicsOfNamespaceResponse(
            request_id=1, topics=["t"], filtered=True, topics_hash="h", changed=True
        ),
    ),
    (
        commands.watch_topic_list_success(1, 2, ["t"], "h"),
        api.CommandWatchTopicListSuccess(request_id=1, watcher_id=2, topic=["t"], topics_hash="h"),
    ),
    (
        commands.watch_topic_update(2, ["n"], ["d"], "h"),
        api.CommandWatchTopicUpdate(
            watcher_id=2, new_topics=["n"], deleted_topics=["d"], topics_hash="h"
        ),
    ),
    (
        commands.partitioned_metadata_response(1, 0),
        api.CommandPartitionedTopicMetadataResponse(
            request_id=1,
            partitions=0,
            response=api.CommandPartitionedTopicMetadataResponse.Success,
        ),
    ),
    (
        commands.partitioned_metadata_failed(1, ServerError.TopicNotFound, ""),
        api.CommandPartitionedTopicMetadataResponse(
            request_id=1,
            response=api.CommandPartitionedTopicMetadataResponse.Failed,
            error=ServerError.TopicNotFound,
            message="",
        ),
    ),
    (
        commands.lookup_response(
            1,
            broker_service_url="u",
            broker_service_url_tls=None,
            is_redirect=False,
            is_authoritative=True,
            is_proxy_through_service_url=False,
        ),
        api.CommandLookupTopicResponse(
            request_id=1,
            brokerServiceUrl="u",
            response=api.CommandLookupTopicResponse.Connect,
            authoritative=True,
            proxy_through_service_url=False,
        ),
    ),
    (
        commands.lookup_failed(1, ServerError.InvalidTopicName, "m"),
        api.CommandLookupTopicResponse(
            request_id=1,
            response=api.CommandLookupTopicResponse.Failed,
            error=ServerError.InvalidTopicName,
            message="m",
        ),
    ),
    (
        commands.get_schema_response(1, SCHEMA, b"v"),
        api.CommandGetSchemaResponse(request_id=1, schema=SCHEMA, schema_version=b"v"),
    ),
    (
        commands.get_schema_failed(1, ServerError.TopicNotFound, "m"),
        api.CommandGetSchemaResponse(
            request_id=1, error_code=ServerError.TopicNotFound, error_message="m"
        ),
    ),
    (
        commands.get_or_create_schema_response(1, b"v"),
        api.CommandGetOrCreateSchemaResponse(request_id=1, schema_version=b"v"),
    ),
    (
        commands.get_or_create_schema_failed(1, ServerError.IncompatibleSchema, "m"),
        api.CommandGetOrCreateSchemaResponse(
            request_id=1, error_code=ServerError.IncompatibleSchema, error_message="m"
        ),
    ),
    (
        commands.tc_client_connect_response(1),
        api.CommandTcClientConnectResponse(request_id=1),
    ),
    (
        commands.new_txn_response(1, (2, 3)),
        api.CommandNewTxnResponse(request_id=1, txnid_most_bits=2, txnid_least_bits=3),
    ),
    (
        commands.new_txn_response(1, None, code=ServerError.NotAllowedError, message="m"),
        api.CommandNewTxnResponse(request_id=1, error=ServerError.NotAllowedError, message="m"),
    ),
    (
        commands.add_partition_to_txn_response(1, (2, 3)),
        api.CommandAddPartitionToTxnResponse(request_id=1, txnid_most_bits=2, txnid_least_bits=3),
    ),
    (
        commands.add_subscription_to_txn_response(1, (2, 3)),
        api.CommandAddSubscriptionToTxnResponse(
            request_id=1, txnid_most_bits=2, txnid_least_bits=3
        ),
    ),
    (
        commands.end_txn_response(1, (2, 3)),
        api.CommandEndTxnResponse(request_id=1, txnid_most_bits=2, txnid_least_bits=3),
    ),
    (
        commands.end_txn_on_partition_response(1, (2, 3)),
        api.CommandEndTxnOnPartitionResponse(request_id=1, txnid_most_bits=2, txnid_least_bits=3),
    ),
    (
        commands.end_txn_on_subscription_response(1, (2, 3)),
        api.CommandEndTxnOnSubscriptionResponse(
            request_id=1, txnid_most_bits=2, txnid_least_bits=3
        ),
    ),
]


@pytest.mark.parametrize(
    ("frame", "message"), BROKER_ANSWERS, ids=lambda value: getattr(type(value), "__name__", "")
)
def test_what_a_broker_answers(frame: bytes, message: Message) -> None:
    assert frame == commands.encode(message)
    command = read(frame)
    assert getattr(command, commands.FIELD_NAMES[command.type]) == message
