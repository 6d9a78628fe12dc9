"""Whether what came back is what was recorded; every difference as a line of text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.integration.transcripts.frames import Received, field_of
from tests.integration.transcripts.recording import Recording
from tests.integration.transcripts.values import Names, as_signed, is_repeated, now_millis, to_bytes

_DAY_MILLIS = 86_400_000
_OLDEST_COMPLETE_VERSION = 19
_STREAM_KEYS = ("consumer_id", "producer_id", "request_id", "watcher_id")
_NOT_LISTED = {"payload_size"}
_ABSENT: Any = object()


class Matcher:
    """Compares the commands of one run of a scenario; keeps the names of ids."""

    def __init__(self, recording: Recording, names: Names) -> None:
        self._rules = recording.rules
        self._texts = recording.texts
        self._names = names

    def compare(
        self, expected: Sequence[dict[str, Any]], actual: Sequence[Received], *, any_order: bool
    ) -> list[str]:
        """Differences between recorded commands and those that came."""
        if not any_order:
            return self._compare_in_order(expected, actual)
        wanted: defaultdict[object, list[dict[str, Any]]] = defaultdict(list)
        came: defaultdict[object, list[Received]] = defaultdict(list)
        for item in expected:
            wanted[_stream_of_recorded(item)].append(item)
        for received in actual:
            came[_stream_of_received(received)].append(received)
        differences: list[str] = []
        for stream in list(wanted) + [stream for stream in came if stream not in wanted]:
            differences += self._compare_in_order(wanted[stream], came[stream])
        return differences

    def _compare_in_order(
        self, expected: Sequence[dict[str, Any]], actual: Sequence[Received]
    ) -> list[str]:
        differences: list[str] = []
        for index in range(max(len(expected), len(actual))):
            if index >= len(actual):
                differences.append(f"missing: {_brief(expected[index])}")
            elif index >= len(expected):
                differences.append(f"not expected: {describe(actual[index])}")
            else:
                differences += self._compare_command(expected[index], actual[index])
        return differences

    def _compare_command(self, expected: dict[str, Any], actual: Received) -> list[str]:
        if expected["type"] != actual.type:
            return [f"expected {_brief(expected)}, came {describe(actual)}"]
        message = getattr(actual.command, field_of(actual.type))
        differences = self._compare_message(expected["fields"], message, actual.type)
        if actual.type == "MESSAGE":
            differences += self._compare_extras(expected, actual.extras)
        elif actual.extras:
            differences.append(f"{actual.type}: bytes after the command")
        return differences

    def _compare_extras(self, expected: dict[str, Any], extras: dict[str, Any]) -> list[str]:
        differences: list[str] = []
        for key in ("checksum", "body", "batch", "metadata", "broker_entry_metadata"):
            wanted, came = expected.get(key), extras.get(key)
            where = f"MESSAGE.{key}"
            if wanted is None or came is None:
                if wanted is not None or came is not None:
                    differences.append(f"{where}: expected {wanted!r}, came {came!r}")
            elif key == "checksum":
                differences += [] if wanted == came else [f"{where}: {wanted} != {came}"]
            elif key == "body":
                same = to_bytes(wanted) == came
                differences += [] if same else [f"{where}: {wanted[:80]} != {came[:80]!r}"]
            elif key == "batch":
                differences += self._compare_batch(wanted, came)
            else:
                differences += self._compare_message(wanted, came, where)
        return differences

    def _compare_batch(
        self, expected: list[dict[str, Any]], actual: list[tuple[Message, bytes]]
    ) -> list[str]:
        if len(expected) != len(actual):
            return [f"MESSAGE.batch: expected {len(expected)} messages, came {len(actual)}"]
        differences: list[str] = []
        for index, (wanted, (single, body)) in enumerate(zip(expected, actual, strict=True)):
            where = f"MESSAGE.batch[{index}]"
            fields = {key: value for key, value in wanted.items() if key != "body"}
            differences += self._compare_message(fields, single, where)
            if to_bytes(wanted["body"]) != body:
                differences.append(f"{where}: {wanted['body']} != {body!r}")
        return differences

    def _compare_message(self, expected: dict[str, Any], actual: Message, where: str) -> list[str]:
        differences: list[str] = []
        for field in actual.DESCRIPTOR.fields:
            path = f"{where}.{field.name}"
            if path in self._texts or field.name in _NOT_LISTED:
                continue
            wanted = expected.get(field.name, _ABSENT)
            came = _value_of(actual, field)
            if path in self._rules:
                same = self._obeys(self._rules[path], field, wanted, came)
                differences += [] if same else [_difference(path, wanted, came)]
                continue
            differences += self._compare_field(field, wanted, came, path)
        return differences

    def _obeys(self, rule: str, field: FieldDescriptor, wanted: Any, came: Any) -> bool:
        if rule == "any-or-absent":
            return True
        if rule == "any":
            return (came is _ABSENT) == (wanted is _ABSENT)
        if rule == "version":
            return came == wanted or min(came, wanted) >= _OLDEST_COMPLETE_VERSION
        if rule == "unset":
            unset = (_ABSENT, 0, -1)
            came = came if came is _ABSENT else as_signed(field, came)
            return came == wanted or (came in unset and wanted in unset)
        if rule == "any-order":
            lists = ([] if items is _ABSENT else sorted(items) for items in (wanted, came))
            return next(lists) == next(lists)
        raise ValueError(f"no such rule: {rule}")

    def _compare_field(
        self, field: FieldDescriptor, wanted: Any, came: Any, path: str
    ) -> list[str]:
        if is_repeated(field):
            return self._compare_list(
                field, [] if wanted is _ABSENT else wanted, [] if came is _ABSENT else came, path
            )
        wanted, came = _defaulted(field, wanted), _defaulted(field, came)
        if wanted is _ABSENT or came is _ABSENT:
            same = wanted is came or _is_empty_schema_version(path, wanted, came)
            return [] if same else [_difference(path, wanted, came)]
        return self._compare_value(field, wanted, came, path)

    def _compare_list(
        self, field: FieldDescriptor, wanted: list[Any], came: Sequence[Any], path: str
    ) -> list[str]:
        if len(wanted) != len(came):
            return [_difference(path, wanted, list(came))]
        differences: list[str] = []
        for index, (one, other) in enumerate(zip(wanted, came, strict=True)):
            differences += self._compare_value(field, one, other, f"{path}[{index}]")
        return differences

    def _compare_value(
        self, field: FieldDescriptor, wanted: Any, came: Any, path: str
    ) -> list[str]:
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            return self._compare_message(wanted, came, path)
        return [] if self._is_same(field, wanted, came) else [_difference(path, wanted, came)]

    def _is_same(self, field: FieldDescriptor, wanted: Any, came: Any) -> bool:  # noqa: PLR0911
        if field.type == FieldDescriptor.TYPE_BYTES:
            return came == (wanted if isinstance(wanted, bytes) else to_bytes(wanted))
        if field.type == FieldDescriptor.TYPE_ENUM:
            number = (
                wanted if isinstance(wanted, int) else field.enum_type.values_by_name[wanted].number
            )
            return bool(came == number)
        if field.type == FieldDescriptor.TYPE_STRING:
            if re.fullmatch(r"N\d+", wanted):
                return re.fullmatch(r".+-\d+-\d+", came) is not None and self._names.bind(
                    wanted, came
                )
            return wanted.startswith("<") or wanted == came
        if isinstance(wanted, str):
            if wanted == "<now>":
                return abs(came - now_millis()) < _DAY_MILLIS
            return self._names.bind(wanted, as_signed(field, came))
        return bool(came == wanted or as_signed(field, came) == wanted)


def _value_of(message: Message, field: FieldDescriptor) -> Any:
    if is_repeated(field):
        return getattr(message, field.name) or _ABSENT
    return getattr(message, field.name) if message.HasField(field.name) else _ABSENT


def _defaulted(field: FieldDescriptor, value: Any) -> Any:
    if value is _ABSENT and field.has_default_value:
        value = field.default_value
        return as_signed(field, value) if isinstance(value, int) else value
    return value


def _is_empty_schema_version(path: str, wanted: Any, came: Any) -> bool:
    empty = (_ABSENT, b"", "hex:")
    return path == "PRODUCER_SUCCESS.schema_version" and wanted in empty and came in empty


def _difference(path: str, wanted: Any, came: Any) -> str:
    wanted = "nothing" if wanted is _ABSENT else repr(wanted)
    came = "nothing" if came is _ABSENT else repr(came)
    return f"{path}: expected {wanted}, came {came}"


def _stream_of_recorded(item: dict[str, Any]) -> object:
    return _stream(item["type"], item["fields"].items())


def _stream_of_received(received: Received) -> object:
    message = getattr(received.command, field_of(received.type))
    return _stream(received.type, [(field.name, value) for field, value in message.ListFields()])


def _stream(type_name: str, fields: Iterable[tuple[str, Any]]) -> object:
    by_name = dict(fields)
    for key in _STREAM_KEYS:
        if key in by_name:
            value = by_name[key]
            return type_name, key, value - (1 << 64) if value >= 1 << 63 else value
    return type_name, None, None


def _brief(item: dict[str, Any]) -> str:
    return f"{item['type']} {item['fields']} {item.get('body', item.get('batch', ''))}"[:300]


def describe(received: Received) -> str:
    """One line for people."""
    message = getattr(received.command, field_of(received.type))
    text = " ".join(str(message).split())
    body = received.extras.get("body", "")
    return f"{received.type} {{{text}}} {body!r}"[:400]
