"""Finds string fields that are not UTF-8 in parsed messages (pure).

protobuf's upb returns bytes for a proto2 string that is not UTF-8, where all readers expect `str`.
So each command from the network is checked once, here. The string fields of a message type are
looked up on its first use.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message


@cache
def _holders_of_texts(descriptor: Descriptor) -> tuple[str, ...]:
    """Names of the fields that are texts, or messages with texts anywhere below."""
    return tuple(
        field.name
        for field in descriptor.fields
        if field.type == FieldDescriptor.TYPE_STRING
        or (field.message_type is not None and has_texts(field.message_type))
    )


def has_texts(descriptor: Descriptor) -> bool:
    """Whether messages of a type have a text, or one in a message below them."""
    return _has_texts(descriptor, set())


def _has_texts(descriptor: Descriptor, seen: set[str]) -> bool:
    if descriptor.full_name in seen:
        return False
    seen.add(descriptor.full_name)
    return any(
        field.type == FieldDescriptor.TYPE_STRING
        or (field.message_type is not None and _has_texts(field.message_type, seen))
        for field in descriptor.fields
    )


def has_broken_text(message: Message) -> bool:
    """Whether a text in the message, or in one below it, is not UTF-8."""
    return any(_is_broken(getattr(message, name)) for name in _holders_of_texts(message.DESCRIPTOR))


def _is_broken(value: Any) -> bool:  # Any: a field's value, whatever its type
    if isinstance(value, str):
        return False
    if isinstance(value, bytes):
        return True
    if isinstance(value, Message):
        return has_broken_text(value)
    return any(map(_is_broken, value))
