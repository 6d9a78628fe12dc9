"""`plain_value`: a decoded value in the terms of JSON, for people and tools to read (pure).

    value                              becomes
    record, mapping, protobuf message  object; keys become text
    list, tuple, set                   array
    KeyValue                           {"key": …, "value": …}
    bytes                              text if they are printable UTF-8, else {"base64": …}
    date, time, datetime               ISO 8601; a datetime without a zone is left so
    Decimal, UUID, timedelta           text
    NaN and the infinities             "NaN", "Infinity", "-Infinity"
    symbol of an enumeration           its name
    anything else                      its `repr`, at most 200 characters

It is for display: what was text and what was bytes can't be told apart again.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from pulsar_py.schema.key_value_schema import KeyValue

__all__ = ["plain_bytes", "plain_value"]

_BLANKS: Final = frozenset("\t\n\r")
_MAX_REPR: Final = 200


def plain_bytes(data: bytes) -> str | dict[str, str]:
    """Bytes as text if they are printable UTF-8 (tabs and ends of lines count), else as Base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}
    if text.isprintable() or all(each.isprintable() or each in _BLANKS for each in text):
        return text
    return {"base64": b64encode(data).decode()}


def plain_value(value: Any) -> Any:  # Any: whatever a schema decodes; JSON
    """A decoded value in the terms of JSON; see the table above."""
    if isinstance(value, Mapping):
        return {_key(name): plain_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_value(each) for each in value]
    if isinstance(value, KeyValue):
        return {"key": plain_value(value.key), "value": plain_value(value.value)}
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:  # Any: as above
    plain: Any
    match value:
        case Enum():
            plain = value.name
        case None | bool() | int() | str():
            plain = value
        case float():
            plain = value if math.isfinite(value) else _name_of(value)
        case bytes() | bytearray() | memoryview():
            plain = plain_bytes(bytes(value))
        case date() | time():
            plain = value.isoformat()
        case Decimal() | UUID() | timedelta():
            plain = str(value)
        case _:
            is_message = hasattr(value, "DESCRIPTOR")
            plain = _message(value) if is_message else repr(value)[:_MAX_REPR]
    return plain


def _name_of(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _key(name: Any) -> str:  # Any: a mapping's key
    return name if isinstance(name, str) else str(plain_value(name))


def _message(value: Any) -> Any:  # Any: a protobuf message of any class
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 - at first use

    return MessageToDict(value, preserving_proto_field_name=True)
