"""Messages as a command shows them: one JSON object, or one line of text (pure).

Both are safe for a terminal and for a line: control characters, which a payload or a key may have,
are written as escapes.

    2026-02-01T10:00:00.120Z 7:0:-1:3 key=c-17 {country=SE} {"customer":"c-17","amount":12.5}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pulsar_py.client.messages.message import Message
from pulsar_py.common.errors import PulsarError
from pulsar_py.schema.plain_values import plain_bytes, plain_value

__all__ = ["ShownMessage", "shown"]

Json = dict[str, Any]  # Any: JSON

_LAST_MILLIS: Final = 253_402_300_800_000  # the year 10000


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message, decoded as far as it can be."""

    fields: Json
    value: Any  # Any: JSON; None if it could not be decoded
    error: str | None  # why it could not be decoded

    def as_json(self) -> str:
        """One object on one line, in ASCII."""
        fields = dict(self.fields)
        if self.error is None:
            fields["value"] = self.value
        return json.dumps(fields, separators=(",", ":"))

    def as_line(self, *, with_topic: bool) -> str:
        """The line for people."""
        fields = self.fields
        parts = [fields["publishTime"], fields["messageId"]]
        if with_topic:
            parts.append(fields["topic"])
        if "key" in fields:
            parts.append(f"key={fields['key']}")
        if fields["properties"]:
            pairs = " ".join(f"{name}={value}" for name, value in fields["properties"].items())
            parts.append("{" + pairs + "}")
        if self.error is not None:
            parts.append(f"[{self.error}]")
        body = fields.get("payload", self.value) if self.error is not None else self.value
        parts.append(body if isinstance(body, str) else _compact(body))
        return _escaped(" ".join(parts))


def shown(message: Message[Any]) -> ShownMessage:  # Any: of whatever schema
    """A message that was received with an auto-consume schema."""
    value, error = None, None
    context = message.encryption_context()
    if context is not None and context.is_decryption_failed():
        names = ", ".join(each.key for each in context.keys())  # noqa: SIM118 - no mapping
        error = f"encrypted with the keys {names}"
    else:
        try:
            value = plain_value(message.value())
        except (PulsarError, ValueError, RecursionError) as problem:
            error = f"can't be decoded: {problem}"
    fields = _fields(message)
    if error is not None:
        fields |= {"error": error, "payload": plain_bytes(message.data())}
    return ShownMessage(fields, value, error)


def _fields(message: Message[Any]) -> Json:
    found: Json = {
        "messageId": str(message.message_id()),
        "topic": message.topic_name(),
        "publishTime": iso_millis(message.publish_timestamp()),
        "producerName": message.producer_name(),
        "sequenceId": message.sequence_id(),
        "properties": message.properties(),
        "sizeBytes": message.size(),
    }
    if message.event_timestamp():
        found["eventTime"] = iso_millis(message.event_timestamp())
    if message.has_key():
        found["key"] = message.partition_key()
    if message.int_schema_version() is not None:
        found["schemaVersion"] = message.int_schema_version()
    if message.has_null_value():
        found["isNull"] = True
    return found


def iso_millis(millis: int) -> str:
    """Milliseconds since 1970 in ISO 8601, UTC; the number itself beyond the year 9999."""
    if not 0 <= millis < _LAST_MILLIS:
        return str(millis)
    moment = datetime.fromtimestamp(millis // 1000, UTC).replace(microsecond=millis % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _compact(value: Any) -> str:  # Any: JSON
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
