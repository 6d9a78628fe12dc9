"""What a broker answers."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.proto import PulsarApi_pb2 as api
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, MessageIdData, ServerError
from pulsar_py.wire import commands
from pulsar_py.wire.framing import FrameDecoder


def read(frame: bytes) -> BaseCommand:
    (only,) = FrameDecoder(10_000_000).decode(frame)
    assert only.headers_and_payload is None
    return commands.read_command(only.command)


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
