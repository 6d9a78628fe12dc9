"""The JSON of frames: what producers send, receipts, messages, and commands of consumers (pure).

Numbers are taken as texts and texts as numbers, as Apache Pulsar's parser does. Payloads are
standard base64, whose padding may be missing.

Source: ProducerMessage, ProducerAck, ConsumerMessage, ConsumerCommand in Pulsar.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import CompressionType
from pulsar_py.common.errors import AuthenticationError, AuthorizationError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.message_id import MessageId

__all__ = [
    "BAD_JSON",
    "BAD_PAYLOAD",
    "COMPRESSIONS",
    "UNKNOWN",
    "BadIdError",
    "ConsumerCommand",
    "FrameError",
    "NullPropertyError",
    "OutgoingFrame",
    "command_of",
    "end_of_topic_text",
    "error_text",
    "id_of",
    "id_text",
    "message_text",
    "number_of",
    "outgoing_frame",
    "receipt_text",
]

BAD_JSON: Final = 3
"""FailedToDeserializeFromJSON."""
UNAUTHENTICATED: Final = 5
"""AuthenticationError."""
UNAUTHORIZED: Final = 6
"""NotAuthorizedError: the right was withdrawn while the producer was there."""
BAD_PAYLOAD: Final = 7
"""PayloadEncodingError."""
UNKNOWN: Final = 8
"""UnknownError: whatever the broker refuses."""

COMPRESSIONS: Final = {
    "NONE": CompressionType.NONE,
    "LZ4": CompressionType.LZ4,
    "ZLIB": CompressionType.ZLib,
    "ZSTD": CompressionType.ZSTD,
    "SNAPPY": CompressionType.SNAPPY,
}
"""By the names that clients of WebSocket give them."""

_MAX_LONG: Final = 2**63 - 1
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = re.compile(r"[+-]?\d{1,19}")


class FrameError(Exception):
    """A producer's frame can't be sent; `number` says why, `context` is the frame's own."""

    def __init__(self, number: int, reason: str, context: str | None = None) -> None:
        super().__init__(reason)
        self.number = number
        self.context = context


class NullPropertyError(Exception):
    """A property is null, which ends the connection."""


class BadIdError(Exception):
    """A message id is missing, or is not one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingFrame:
    """A message to publish. Times are milliseconds; 0 where there is none."""

    payload: bytes
    properties: Mapping[str, str]
    context: str | None
    key: str | None
    replication_clusters: list[str] | None
    disable_replication: bool
    event_time_millis: int
    deliver_at_millis: int
    deliver_after_millis: int
    encryption_param: str | None
    """Base64 of the IV, of a client that encrypts; as it came."""
    compression_type: str | None
    """How that client has compressed the payload; None: not."""
    uncompressed_bytes: int | None


def outgoing_frame(text: str) -> OutgoingFrame:
    """The message of a producer's frame.

    Raises:
        FrameError: It is no JSON object, or a field is of the wrong type; it has no payload, or one
            that is not base64; or its event time is no time.
        NullPropertyError: A property is null.
    """
    try:
        fields = parse_json(text, is_java=True)
    except ValueError as error:
        raise FrameError(BAD_JSON, str(error)) from None
    if fields is None and text.strip():
        raise FrameError(BAD_PAYLOAD, "expected an object with a payload, got null")
    if not isinstance(fields, dict):
        raise FrameError(BAD_JSON, "expected an object with a payload")
    payload, context = _text(fields, "payload"), _text(fields, "context")
    properties = _properties(fields)
    event_time = _text(fields, "eventTime")
    read = _Fields(
        key=_text(fields, "key"),
        clusters=_texts(fields, "replicationClusters"),
        is_local=_flag(fields, "disableReplication"),
        deliver_at=_integer(fields, "deliverAt"),
        deliver_after=_integer(fields, "deliverAfterMs"),
        encryption_param=_text(fields, "encryptionParam"),
        compression=_compression(fields),
        uncompressed=_size(fields),
    )
    for name in ("sequenceId", "schemaVersion"):
        _integer(fields, name)  # checked only: they have no effect
    if payload is None:
        raise FrameError(BAD_PAYLOAD, "the frame has no payload", context)
    try:
        data = _decoded(payload)
        event_millis = 0 if event_time is None else _millis(event_time)
    except ValueError as error:
        raise FrameError(BAD_PAYLOAD, str(error), context) from None
    for name, value in properties.items():
        if value is None:
            raise NullPropertyError(f"property {name!r} is null: expected a text")
    return OutgoingFrame(
        payload=data,
        properties={name: value for name, value in properties.items() if value is not None},
        context=context,
        key=read.key,
        replication_clusters=read.clusters or None,
        disable_replication=read.is_local,
        event_time_millis=event_millis,
        deliver_at_millis=read.deliver_at,
        deliver_after_millis=read.deliver_after,
        encryption_param=read.encryption_param,
        compression_type=read.compression,
        uncompressed_bytes=read.uncompressed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    key: str | None
    clusters: list[str]
    is_local: bool
    deliver_at: int
    deliver_after: int
    encryption_param: str | None
    compression: str | None
    uncompressed: int | None


def _wrong(name: str, expected: str) -> FrameError:
    return FrameError(BAD_JSON, f"{name}: expected {expected}")


def _text_of(value: Any, name: str) -> str | None:  # Any: JSON
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return json.dumps(value)
    raise _wrong(name, "a text")


def _text(fields: Mapping[str, Any], name: str) -> str | None:  # Any: JSON
    return _text_of(fields.get(name), name)


def _texts(fields: Mapping[str, Any], name: str) -> list[str]:  # Any: JSON
    values = fields.get(name)
    if values is None:
        return []
    if not isinstance(values, list):
        raise _wrong(name, "a list of texts")
    return [text for each in values if (text := _text_of(each, name)) is not None]


def _properties(fields: Mapping[str, Any]) -> dict[str, str | None]:  # Any: JSON
    values = fields.get("properties")
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise _wrong("properties", "an object of texts")
    return {name: _text_of(value, f"property {name!r}") for name, value in values.items()}


def _flag(fields: Mapping[str, Any], name: str) -> bool:  # Any: JSON
    value = fields.get(name)
    if isinstance(value, str) and value.strip() in {"", "true", "false", "True", "False"}:
        return value.strip().lower() == "true"
    if isinstance(value, int) or value is None:
        return bool(value)
    raise _wrong(name, "true or false")


def _integer(fields: Mapping[str, Any], name: str) -> int:  # Any: JSON
    value = fields.get(name)
    if value is None or value == "":
        return 0
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and abs(value) <= _MAX_LONG:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MAX_LONG:
        raise _wrong(name, "a whole number")
    return value


def _compression(fields: Mapping[str, Any]) -> str | None:  # Any: JSON
    """The name of a compression; None for others, too, as Apache Pulsar takes them."""
    name = _text(fields, "compressionType")
    return name if name in COMPRESSIONS else None


def _size(fields: Mapping[str, Any]) -> int | None:  # Any: JSON
    name = "uncompressedMessageSize"
    size = None if fields.get(name) is None else _integer(fields, name)
    if size is not None and not 0 <= size < 1 << 31:
        raise _wrong(name, "a whole number of bytes")
    return size


def base64_bytes(text: str) -> bytes:
    """The bytes of base64, whose padding may be missing.

    Raises:
        ValueError: It is not base64.
    """
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _decoded(text: str) -> bytes:
    try:
        return base64_bytes(text)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"the payload is not base64: {error}") from None


def _millis(text: str) -> int:
    expected = "expected ISO 8601 with a zone, as 2026-01-02T03:04:05.678Z"
    if not _TIME.fullmatch(text):
        raise ValueError(f"eventTime={text[:60]!r}: {expected}")
    try:
        return max((datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1), 0)
    except ValueError:
        raise ValueError(f"eventTime={text!r}: {expected}") from None


def time_text(millis: int) -> str:
    """Milliseconds since 1970 in ISO 8601, UTC; the number itself where no calendar has it."""
    try:
        time = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return str(millis)
    precision = "milliseconds" if millis % 1000 else "seconds"
    return time.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def id_text(message_id: MessageId) -> str:
    """A message id as frames have it."""
    return base64.b64encode(message_id.serialize()).decode()


def id_of(text: str | None) -> MessageId | None:
    """The message id that a frame has; None for an empty text, which means nothing.

    Raises:
        BadIdError: There is none, or it is not one.
    """
    if text is None:
        raise BadIdError("the command has no messageId: expected that of a message")
    if not text:
        return None
    try:
        return MessageId.parse(base64_bytes(text))
    except (binascii.Error, ValueError) as error:
        raise BadIdError(f"messageId={text[:60]!r}: {error}") from None


def receipt_text(message_id: MessageId, context: str | None) -> str:
    """The answer for a message that is stored. Its id has no batch size."""
    plain = MessageId(
        message_id.ledger_id,
        message_id.entry_id,
        partition_index=message_id.partition_index,
        batch_index=message_id.batch_index,
    )
    return _answer({"result": "ok", "messageId": id_text(plain)}, context)


def number_of(error: Exception) -> int:
    """The number with which a message that the broker refused is answered."""
    if isinstance(error, AuthenticationError):
        return UNAUTHENTICATED
    return UNAUTHORIZED if isinstance(error, AuthorizationError) else UNKNOWN


def error_text(number: int, reason: str, context: str | None) -> str:
    """The answer for a message that is not."""
    return _answer({"result": f"send-error:{number}", "errorMsg": reason or "failed"}, context)


def _answer(fields: dict[str, object], context: str | None) -> str:
    fields["errorCode"] = 0
    if context is not None:
        fields["context"] = context
    fields["schemaVersion"] = 0
    return _json(fields)


def message_text(message: Message[bytes]) -> str:
    """A message as consumers and readers get it."""
    fields: dict[str, object] = {
        "messageId": id_text(message.message_id()),
        "payload": base64.b64encode(message.data()).decode(),
        "properties": message.properties(),
        "publishTime": time_text(message.publish_timestamp()),
        "redeliveryCount": message.redelivery_count(),
    }
    if (event_time := message.event_timestamp()) > 0:
        fields["eventTime"] = time_text(event_time)
    if (key := message.key()) is not None:
        fields["key"] = key
    if (context := message.encryption_context()) is not None:
        fields["encryptionContext"] = {
            "keys": {
                each.key: {
                    "keyValue": base64.b64encode(each.value).decode(),
                    "metadata": dict(each.metadata),
                }
                for each in context.keys()  # noqa: SIM118 - no mapping
            },
            "param": base64.b64encode(context.param()).decode(),
            "algorithm": context.algorithm(),
            "compressionType": context.compression_type().name.upper(),
            "uncompressedMessageSize": context.uncompressed_message_size(),
            "batchSize": context.batch_size() if context.batch_size() >= 0 else None,
        }
    return _json(fields)


def end_of_topic_text(*, is_end: bool) -> str:
    """The answer to `isEndOfTopic`."""
    return _json({"endOfTopic": is_end})


def _json(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class ConsumerCommand:
    """A frame of a consumer or reader."""

    type: str | None
    message_id: str | None
    permits_count: int


def command_of(text: str) -> ConsumerCommand | None:
    """The command of a frame; None for what is no object of the right types, and ignored.

    Raises:
        BadIdError: It is null.
    """
    try:
        fields = parse_json(text, is_java=True)
        if isinstance(fields, dict):
            return ConsumerCommand(
                _text(fields, "type"),
                _text(fields, "messageId"),
                _integer(fields, "permitMessages"),
            )
    except (ValueError, FrameError):
        return None
    if fields is None:
        raise BadIdError("expected an object with a messageId, got null")
    return None
