"""Requests, their answers, and refusals."""

from __future__ import annotations

import pytest

from pulsar_py.client.brokers.responses import (
    ANSWER_OF,
    ANSWERS,
    answer_error,
    request_id_of,
    request_type,
)
from pulsar_py.common.errors import (
    ConsumerNotFoundError,
    ServiceNotReadyError,
    TopicNotFoundError,
    UnknownServiceError,
)
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandGetSchema,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    ServerError,
)
from pulsar_py.wire import commands
from pulsar_py.wire.commands import FIELD_NAMES
from pulsar_py.wire.framing import FrameDecoder


def parsed(frame: bytes) -> BaseCommand:
    (only,) = FrameDecoder(1 << 20).decode(frame)
    return commands.read_command(only.command)


@pytest.mark.parametrize("kind", ANSWER_OF, ids=BaseCommand.Type.Name)
def test_a_frame_tells_its_type_and_its_answer_has_a_request_id(kind: int) -> None:
    field = BaseCommand.DESCRIPTOR.fields_by_number[kind]
    answer = BaseCommand.DESCRIPTOR.fields_by_number[ANSWER_OF[kind]]

    assert "request_id" in field.message_type.fields_by_name
    assert "request_id" in answer.message_type.fields_by_name
    assert ANSWER_OF[kind] in ANSWERS


def test_a_frame_tells_its_type() -> None:
    frame = commands.encode(CommandGetSchema(request_id=1, topic="t"))

    assert request_type(frame) == BaseCommand.GET_SCHEMA


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (commands.success(7), None),
        (commands.error(7, ServerError.TopicNotFound, "x"), TopicNotFoundError),
        (commands.lookup_failed(7, ServerError.ServiceNotReady, "x"), ServiceNotReadyError),
        (commands.partitioned_metadata_response(7, 0), None),
        (
            commands.partitioned_metadata_failed(7, ServerError.TopicNotFound, "x"),
            TopicNotFoundError,
        ),
        (commands.get_schema_failed(7, ServerError.TopicNotFound, "x"), TopicNotFoundError),
        (commands.get_or_create_schema_response(7, b"1"), None),
        (commands.ack_response(3, 7), None),
        (
            commands.ack_response(3, 7, code=ServerError.ConsumerNotFound, message="x"),
            ConsumerNotFoundError,
        ),
        (commands.encode(CommandLookupTopicResponse(request_id=7)), UnknownServiceError),
        (
            commands.encode(CommandPartitionedTopicMetadataResponse(request_id=7)),
            UnknownServiceError,
        ),
    ],
)
def test_refusals_are_found_in_all_their_shapes(frame: bytes, error: type | None) -> None:
    answer = parsed(frame)
    refusal = answer_error(answer)

    assert request_id_of(answer) == 7
    assert type(refusal) is (error or type(None))


def test_a_lookup_that_says_where_is_no_refusal() -> None:
    answer = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
    answer.lookupTopicResponse.request_id = 1
    answer.lookupTopicResponse.response = CommandLookupTopicResponse.Connect

    assert answer_error(answer) is None
    assert FIELD_NAMES[answer.type] == "lookupTopicResponse"
