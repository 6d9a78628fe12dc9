"""The JSON of frames: leniency of Apache Pulsar's parser, and which error is which number."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Any

import pytest

from pulsar_py.client.messages.message import Message
from pulsar_py.common.errors import (
    AuthenticationError,
    AuthorizationError,
    TopicTerminatedError,
)
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import EncryptionKeys, KeyValue, MessageMetadata
from pulsar_py.websocket.frames import (
    BadIdError,
    ConsumerCommand,
    FrameError,
    NullPropertyError,
    command_of,
    error_text,
    id_of,
    id_text,
    message_text,
    number_of,
    outgoing_frame,
    receipt_text,
    time_text,
)

MILLIS = 1767323045678


def frame(**fields: Any) -> str:  # Any: JSON
    return json.dumps({"payload": "YQ==", **fields})


def test_a_frame_has_everything_that_a_message_can_have() -> None:
    made = outgoing_frame(
        frame(
            properties={"a": 1, "b": True},
            context="c",
            key="k",
            eventTime="2026-01-02T04:04:05.678+01:00",
            replicationClusters=["x"],
            disableReplication=True,
            deliverAt="12",
            deliverAfterMs=3,
            colour="red",
        )
    )
    assert (made.payload, made.properties, made.context) == (b"a", {"a": "1", "b": "true"}, "c")
    assert (made.key, made.event_time_millis) == ("k", MILLIS)
    assert (made.replication_clusters, made.disable_replication) == (["x"], True)
    assert (made.deliver_at_millis, made.deliver_after_millis) == (12, 3)


@pytest.mark.parametrize("payload", ["aGVsbG8=", "aGVsbG8"])
def test_padding_may_be_missing(payload: str) -> None:
    assert outgoing_frame(frame(payload=payload)).payload == b"hello"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 3),
        ("[]", 3),
        ("5", 3),
        ('{"payload": "aGVs', 3),
        (frame(sequenceId="x"), 3),
        (frame(schemaVersion="one"), 3),
        (frame(properties=[]), 3),
        (frame(key={}), 3),
        (frame(replicationClusters="x"), 3),
        (frame(disableReplication="maybe"), 3),
        (frame(deliverAt=10**20), 3),
        ("null", 7),
        ("{}", 7),
        (frame(payload=None), 7),
        (frame(payload="_-_-"), 7),
        (frame(payload="aGVs\nbG8="), 7),
        (frame(eventTime=5), 7),
        (frame(eventTime="2026-01-02T03:04:05"), 7),
        (frame(eventTime="2026-02-30T03:04:05Z"), 7),
    ],
)
def test_what_can_not_be_sent_has_a_number(text: str, number: int) -> None:
    with pytest.raises(FrameError) as caught:
        outgoing_frame(text)
    assert caught.value.number == number
    assert str(caught.value)


def test_only_errors_behind_the_parser_know_the_context() -> None:
    for text, context in (
        (frame(payload="_", context="c"), "c"),
        (frame(key=[], context="c"), None),
    ):
        with pytest.raises(FrameError) as caught:
            outgoing_frame(text)
        assert caught.value.context == context


def test_a_property_that_is_null_ends_the_connection() -> None:
    with pytest.raises(NullPropertyError, match="x"):
        outgoing_frame(frame(properties={"x": None}))


def test_receipts_and_errors_have_an_error_code_of_0() -> None:
    message_id = MessageId(5, 6, partition_index=2, batch_index=1, batch_size=9)
    receipt = json.loads(receipt_text(message_id, "c"))
    found = MessageId.parse(base64.b64decode(receipt.pop("messageId")))
    assert (found, found.batch_size) == (message_id, 0)
    assert receipt == {"result": "ok", "context": "c", "errorCode": 0, "schemaVersion": 0}
    assert json.loads(error_text(7, "why", None)) == {
        "result": "send-error:7",
        "errorMsg": "why",
        "errorCode": 0,
        "schemaVersion": 0,
    }


def test_a_message_has_what_its_producer_gave() -> None:
    metadata = MessageMetadata(
        producer_name="p",
        sequence_id=1,
        publish_time=MILLIS,
        event_time=1767323045000,
        partition_key="k",
        properties=[KeyValue(key="ü", value="€")],
    )
    fields = json.loads(message_text(Message.of(b"\xff", key=(3, 4), metadata=metadata)))
    assert MessageId.parse(base64.b64decode(fields.pop("messageId"))) == MessageId(3, 4)
    assert fields == {
        "payload": "/w==",
        "properties": {"ü": "€"},
        "publishTime": "2026-01-02T03:04:05.678Z",
        "redeliveryCount": 0,
        "eventTime": "2026-01-02T03:04:05Z",
        "key": "k",
    }


@pytest.mark.parametrize("millis", [0, 1, 999, MILLIS, 2**62])
def test_times_are_iso_8601_as_long_as_there_is_a_calendar(millis: int) -> None:
    text = time_text(millis)
    if millis == 2**62:
        assert text == str(millis)
    else:
        assert datetime.fromisoformat(text).timestamp() == pytest.approx(millis / 1000)


def test_ids_come_back() -> None:
    assert id_of(id_text(MessageId(3, 4, batch_index=5))) == MessageId(3, 4, batch_index=5)
    assert id_of("") is None
    for text in (None, "***", "AAAA"):
        with pytest.raises(BadIdError):
            id_of(text)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ('{"messageId": "x"}', ConsumerCommand(None, "x", 0)),
        ('{"type": "permit", "permitMessages": "2"}', ConsumerCommand("permit", None, 2)),
        ("not json", None),
        ("", None),
        ("[]", None),
        ('{"type": "permit", "permitMessages": "x"}', None),
    ],
)
def test_commands_of_consumers(text: str, command: ConsumerCommand | None) -> None:
    assert command_of(text) == command


def test_null_is_no_command() -> None:
    with pytest.raises(BadIdError):
        command_of("null")


def test_encryption_is_told_with_all_that_decrypting_needs() -> None:
    metadata = MessageMetadata(
        producer_name="p",
        sequence_id=1,
        publish_time=1,
        encryption_keys=[
            EncryptionKeys(key="k", value=b"wrapped", metadata=[KeyValue(key="v", value="1")])
        ],
        encryption_param=b"iv",
        uncompressed_size=9,
    )
    context = json.loads(message_text(encrypted(metadata)))["encryptionContext"]
    assert context == {
        "keys": {"k": {"keyValue": "d3JhcHBlZA==", "metadata": {"v": "1"}}},
        "param": "aXY=",
        "algorithm": "",
        "compressionType": "NONE",
        "uncompressedMessageSize": 9,
        "batchSize": None,
    }


def encrypted(metadata: MessageMetadata) -> Message[bytes]:
    from pulsar_py.client.security.message_crypto import EncryptionContext  # noqa: PLC0415 - late

    message = Message.of(b"x", metadata=metadata)
    message.entry.encryption_context = EncryptionContext.of(metadata, is_decryption_failed=True)
    return message


def test_a_refusal_has_the_number_of_its_kind() -> None:
    assert number_of(AuthenticationError("the token has expired")) == 5
    assert number_of(AuthorizationError("may not produce")) == 6
    assert number_of(TopicTerminatedError("ended")) == 8
