"""Matches responses with requests, and reads errors out of responses (pure).

The first bytes of a frame have its command's type, so a caller that sends a request need not name
the response. Errors come in four shapes: ERROR, a `response` that failed, and a code in the
answer itself under one of two names.

Source: ClientCnx in Pulsar's client; Command…Response in PulsarApi.proto.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.common.errors import ServiceError, service_error
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
)
from pulsar_py.wire.commands import FIELD_NAMES
from pulsar_py.wire.framing import SIZES_SIZE

__all__ = ["ANSWERS", "ANSWER_OF", "answer_error", "request_id_of", "request_type"]

_C = BaseCommand

ANSWER_OF: Final[dict[int, int]] = {
    _C.PRODUCER: _C.PRODUCER_SUCCESS,
    _C.SUBSCRIBE: _C.SUCCESS,
    _C.UNSUBSCRIBE: _C.SUCCESS,
    _C.CLOSE_PRODUCER: _C.SUCCESS,
    _C.CLOSE_CONSUMER: _C.SUCCESS,
    _C.SEEK: _C.SUCCESS,
    _C.WATCH_TOPIC_LIST_CLOSE: _C.SUCCESS,
    _C.ACK: _C.ACK_RESPONSE,
    _C.LOOKUP: _C.LOOKUP_RESPONSE,
    _C.PARTITIONED_METADATA: _C.PARTITIONED_METADATA_RESPONSE,
    _C.CONSUMER_STATS: _C.CONSUMER_STATS_RESPONSE,
    _C.GET_LAST_MESSAGE_ID: _C.GET_LAST_MESSAGE_ID_RESPONSE,
    _C.GET_TOPICS_OF_NAMESPACE: _C.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    _C.GET_SCHEMA: _C.GET_SCHEMA_RESPONSE,
    _C.GET_OR_CREATE_SCHEMA: _C.GET_OR_CREATE_SCHEMA_RESPONSE,
    _C.WATCH_TOPIC_LIST: _C.WATCH_TOPIC_LIST_SUCCESS,
}
"""Request type -> type of the answer that is no ERROR. The client sends no transaction commands."""

ANSWERS: Final = frozenset(ANSWER_OF.values()) | {_C.ERROR}
"""Types that answer a request of ours."""


def request_type(frame: bytes) -> int:
    """The type of a command that we framed ourselves; `encode` puts it first."""
    return frame[SIZES_SIZE + 1]


def request_id_of(answer: BaseCommand) -> int:
    """The id of the request that is answered."""
    request_id: int = getattr(answer, FIELD_NAMES[answer.type]).request_id
    return request_id


def answer_error(answer: BaseCommand) -> ServiceError | None:
    """The error that an answer carries, or None if it is not an error."""
    kind = answer.type
    if kind == _C.ERROR:
        return service_error(answer.error.error, answer.error.message)
    if kind == _C.LOOKUP_RESPONSE:
        lookup = answer.lookupTopicResponse
        failed = CommandLookupTopicResponse.Failed
        if lookup.HasField("response") and lookup.response != failed:
            return None
        return service_error(lookup.error, lookup.message)
    if kind == _C.PARTITIONED_METADATA_RESPONSE:
        metadata = answer.partitionMetadataResponse
        if metadata.response != CommandPartitionedTopicMetadataResponse.Failed and (
            metadata.HasField("partitions")
        ):
            return None
        return service_error(metadata.error, metadata.message)
    return _inner_error(answer)


_ERROR_CODE_TYPES: Final = frozenset(
    {_C.CONSUMER_STATS_RESPONSE, _C.GET_SCHEMA_RESPONSE, _C.GET_OR_CREATE_SCHEMA_RESPONSE}
)


def _inner_error(answer: BaseCommand) -> ServiceError | None:
    """The error of answers that have fields of their own for it, beside what was asked for."""
    part = getattr(answer, FIELD_NAMES[answer.type])
    if answer.type in _ERROR_CODE_TYPES:
        if part.HasField("error_code"):
            return service_error(part.error_code, part.error_message)
        return None
    if answer.type == _C.ACK_RESPONSE and part.HasField("error"):
        return service_error(part.error, part.message)
    return None
