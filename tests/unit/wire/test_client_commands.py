"""What a client sends."""

from __future__ import annotations

import pytest

from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandGetTopicsOfNamespace,
    CommandProducer,
    CommandSubscribe,
    Schema,
)
from pulsar_py.wire import client_commands
from pulsar_py.wire.commands import FIELD_NAMES, read_command
from pulsar_py.wire.connection_state import FROM_CLIENT
from pulsar_py.wire.framing import FrameDecoder

ID = MessageId(3, 4).to_data()
MODE = CommandGetTopicsOfNamespace.ALL
SCHEMA = Schema(name="s", schema_data=b"{}", type=Schema.Json)


def fields_of(frame: bytes) -> tuple[str, dict[str, object]]:
    """A command's type, and its fields that are set."""
    (only,) = FrameDecoder(1 << 20).decode(frame)
    command = read_command(only.command)
    part = getattr(command, FIELD_NAMES[command.type])
    values = {
        field.name: getattr(part, field.name)
        for field, _ in part.ListFields()
        if field.message_type is None
    }
    return BaseCommand.Type.Name(command.type), values


@pytest.mark.parametrize(
    ("frame", "name", "fields"),
    [
        (
            client_commands.lookup("t", 1, is_authoritative=True, listener_name="l"),
            "LOOKUP",
            {
                "topic": "t",
                "request_id": 1,
                "authoritative": True,
                "advertised_listener_name": "l",
            },
        ),
        (
            client_commands.lookup("t", 1, listener_name=""),
            "LOOKUP",
            {"topic": "t", "request_id": 1, "authoritative": False},
        ),
        (
            client_commands.partitioned_metadata("t", 1, may_create=False),
            "PARTITIONED_METADATA",
            {"topic": "t", "request_id": 1, "metadata_auto_creation_enabled": False},
        ),
        (
            client_commands.get_topics_of_namespace("a/b", 1, mode=MODE, topics_pattern="x.*"),
            "GET_TOPICS_OF_NAMESPACE",
            {"namespace": "a/b", "request_id": 1, "mode": MODE, "topics_pattern": "x.*"},
        ),
        (
            client_commands.watch_topic_list("a/b", 1, 2, "x.*", topics_hash="h"),
            "WATCH_TOPIC_LIST",
            {
                "namespace": "a/b",
                "request_id": 1,
                "watcher_id": 2,
                "topics_pattern": "x.*",
                "topics_hash": "h",
            },
        ),
        (
            client_commands.watch_topic_list_close(1, 2),
            "WATCH_TOPIC_LIST_CLOSE",
            {"request_id": 1, "watcher_id": 2},
        ),
        (
            client_commands.get_schema("t", 1, b"v"),
            "GET_SCHEMA",
            {"topic": "t", "request_id": 1, "schema_version": b"v"},
        ),
        (
            client_commands.get_or_create_schema("t", 1, SCHEMA),
            "GET_OR_CREATE_SCHEMA",
            {"topic": "t", "request_id": 1},
        ),
        (
            client_commands.unsubscribe(2, 1, is_forced=True),
            "UNSUBSCRIBE",
            {"consumer_id": 2, "request_id": 1, "force": True},
        ),
        (client_commands.flow(2, 500), "FLOW", {"consumer_id": 2, "messagePermits": 500}),
        (
            client_commands.redeliver_unacknowledged(2, [ID], consumer_epoch=4),
            "REDELIVER_UNACKNOWLEDGED_MESSAGES",
            {"consumer_id": 2, "consumer_epoch": 4},
        ),
        (client_commands.seek_to_id(2, 1, ID), "SEEK", {"consumer_id": 2, "request_id": 1}),
        (
            client_commands.seek_to_time(2, 1, 99),
            "SEEK",
            {"consumer_id": 2, "request_id": 1, "message_publish_time": 99},
        ),
        (
            client_commands.get_last_message_id(2, 1),
            "GET_LAST_MESSAGE_ID",
            {"consumer_id": 2, "request_id": 1},
        ),
        (
            client_commands.consumer_stats(2, 1),
            "CONSUMER_STATS",
            {"consumer_id": 2, "request_id": 1},
        ),
        (
            client_commands.producer(CommandProducer(topic="t", producer_id=1, request_id=2)),
            "PRODUCER",
            {"topic": "t", "producer_id": 1, "request_id": 2},
        ),
        (
            client_commands.subscribe(
                CommandSubscribe(
                    topic="t", subscription="s", subType=0, consumer_id=1, request_id=2
                )
            ),
            "SUBSCRIBE",
            {"topic": "t", "subscription": "s", "subType": 0, "consumer_id": 1, "request_id": 2},
        ),
        (
            client_commands.ack(CommandAck(consumer_id=1, ack_type=0, message_id=[ID])),
            "ACK",
            {"consumer_id": 1, "ack_type": 0},
        ),
    ],
)
def test_a_command_has_what_was_asked_for_and_nothing_else(
    frame: bytes, name: str, fields: dict[str, object]
) -> None:
    assert fields_of(frame) == (name, fields)
    assert BaseCommand.Type.Value(name) in FROM_CLIENT


def test_connect_says_what_we_cope_with() -> None:
    name, fields = fields_of(
        client_commands.connect("me", auth_method_name="token", auth_data=b"x")
    )

    assert name == "CONNECT"
    assert fields == {
        "client_version": "me",
        "auth_method_name": "token",
        "auth_data": b"x",
        "protocol_version": 21,
    }


def test_a_challenge_is_answered_with_the_method() -> None:
    name, fields = fields_of(
        client_commands.auth_response("me", auth_method_name="token", auth_data=b"x")
    )

    assert (name, fields["client_version"]) == ("AUTH_RESPONSE", "me")


def test_permits_are_above_zero() -> None:
    with pytest.raises(AssertionError, match="0 permits"):
        client_commands.flow(1, 0)


def test_a_send_frames_what_follows_and_forgets_what_was_special() -> None:
    encoder = client_commands.SendEncoder(7)
    plain = encoder.encode(1, 5) + b"entry"
    special = encoder.encode(
        2, 5, highest_sequence_id=9, messages_count=8, is_chunk=True, txn_id=(3, 4)
    )
    again = encoder.encode(1, 5) + b"entry"
    frames = FrameDecoder(1 << 20).decode(plain + special + b"entry")

    assert again == plain
    assert [frame.headers_and_payload for frame in frames] == [b"entry", b"entry"]
    first, second = (read_command(frame.command).send for frame in frames)
    assert (first.producer_id, first.sequence_id, first.num_messages) == (7, 1, 1)
    assert not first.HasField("highest_sequence_id")
    assert (second.highest_sequence_id, second.num_messages, second.is_chunk) == (9, 8, True)
    assert (second.txnid_most_bits, second.txnid_least_bits) == (3, 4)
