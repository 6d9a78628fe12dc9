"""What is written in a transcript, as numbers, bytes and messages; and the names of ids."""

from __future__ import annotations

import re
import time
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_SYMBOL = re.compile(r"([LT]\d+)([+-]\d+)?")
_NOW = re.compile(r"now([+-]\d+)?")
_UNSIGNED_BITS = {
    FieldDescriptor.TYPE_UINT64: 64,
    FieldDescriptor.TYPE_FIXED64: 64,
    FieldDescriptor.TYPE_UINT32: 32,
    FieldDescriptor.TYPE_FIXED32: 32,
}


class Names:
    """The ids that L1, T1 and N1 stand for in one run of one scenario."""

    def __init__(self) -> None:
        self._ids: dict[str, int | str] = {}

    def value(self, name: str) -> int | str:
        """The id a name was given by what came back earlier."""
        return self._ids[name]

    def bind(self, name: str, value: int | str) -> bool:
        """Whether the name stands for this id; a new name takes it, if no other one of its kind has."""
        if name in self._ids:
            return self._ids[name] == value
        kind = name[0]
        if any(other[0] == kind and taken == value for other, taken in self._ids.items()):
            return False
        self._ids[name] = value
        return True


def is_repeated(field: FieldDescriptor) -> bool:
    """Whether a field holds a list."""
    return bool(field.is_repeated)


def to_bytes(text: str) -> bytes:
    """Bytes from `text:..`, `hex:..` or `repeat:x:n`."""
    kind, _, rest = text.partition(":")
    if kind == "text":
        return rest.encode()
    if kind == "hex":
        return bytes.fromhex(rest)
    if kind == "repeat":
        letter, _, count = rest.partition(":")
        return letter.encode() * int(count)
    raise ValueError(f"no bytes: {text}")


def now_millis() -> int:
    """The clock, as clients write it."""
    return time.time_ns() // 1_000_000


def to_number(value: int | str, names: Names) -> int:
    """A number from itself, `now+n`, or a name with arithmetic."""
    if isinstance(value, int):
        return value
    if match := _NOW.fullmatch(value):
        return now_millis() + int(match[1] or 0)
    match = _SYMBOL.fullmatch(value)
    if match is None:
        raise ValueError(f"no number: {value}")
    return int(names.value(match[1])) + int(match[2] or 0)


def fill(message: Message, fields: dict[str, Any], names: Names) -> None:
    """Set the fields written in a transcript in a message."""
    for key, value in fields.items():
        field = message.DESCRIPTOR.fields_by_name[key]
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            _fill_message(message, field, value, names)
        elif is_repeated(field):
            getattr(message, key).extend(_scalar(field, item, names) for item in value)
        else:
            setattr(message, key, _scalar(field, value, names))


def _fill_message(message: Message, field: FieldDescriptor, value: Any, names: Names) -> None:
    if not is_repeated(field):
        child = getattr(message, field.name)
        child.SetInParent()
        fill(child, value, names)
        return
    for item in value if isinstance(value, list) else [value]:
        fill(getattr(message, field.name).add(), item, names)


def _scalar(field: FieldDescriptor, value: Any, names: Names) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return to_bytes(value)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return field.enum_type.values_by_name[value].number if isinstance(value, str) else value
    if field.type == FieldDescriptor.TYPE_STRING:
        return str(names.value(value)) if re.fullmatch(r"N\d+", value) else value
    if field.type in (FieldDescriptor.TYPE_BOOL, FieldDescriptor.TYPE_DOUBLE):
        return value
    number = to_number(value, names)
    bits = _UNSIGNED_BITS.get(field.type)
    return number % (1 << bits) if bits else number


def as_signed(field: FieldDescriptor, value: int) -> int:
    """An unsigned 64-bit value the way transcripts write it: 2^64-1 is -1."""
    if field.type == FieldDescriptor.TYPE_UINT64 and value >= 1 << 63:
        return value - (1 << 64)
    return value
