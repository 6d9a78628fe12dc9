"""Makes the errors for annotations without an Avro type; each names a replacement (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Flag
from typing import Any, Final, get_args, get_origin

from pulsar_py.common.errors import InvalidConfigurationError

__all__ = ["avro_name", "no_record", "no_type"]

_CLASSES: Final = (
    "a dataclass, a pydantic model, a TypedDict, a NamedTuple or a class derived from Record"
)
_NO_DATA: Final = "a function is no data: use str, for its name"
_INSTEAD: Final[Mapping[object, str]] = {
    timedelta: "use int, with the unit in its name, such as timeout_seconds",
    complex: "use a dataclass of two floats",
    object: "name the types that there may be, such as int | str",
    Any: "name the types that there may be, such as int | str; for JSON of any form use str",
    Callable: _NO_DATA,
    list: "say of what: list[str]",
    set: "say of what: set[str]",
    frozenset: "say of what: frozenset[str]",
    tuple: "say of what: tuple[str, ...], or use a NamedTuple",
    dict: "say of what: dict[str, int], or use a TypedDict",
}
_BY_ORIGIN: Final[Mapping[object, str]] = {
    Callable: _NO_DATA,
    tuple: "items of different types have names in Avro: use a NamedTuple or a dataclass",
    dict: "keys are texts in Avro: use dict[str, X], or a list of a dataclass of key and value",
}
_BY_NAME: Final[Mapping[str, str]] = {
    "Path": "use str",
    "PosixPath": "use str",
    "IPv4Address": "use str",
    "IPv6Address": "use str",
    "deque": "use list[X]",
    "SecretStr": "it would be written in plain: use str, or encrypt the message",
    "SecretBytes": "it would be written in plain: use bytes, or encrypt the message",
    "ByteSize": "use int",
}
_SCHEMAS: Final[Mapping[object, str]] = {
    str: "StringSchema",
    bytes: "BytesSchema",
    bool: "BooleanSchema",
    int: "Int64Schema",
    float: "DoubleSchema",
}
"""For values that are no records."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def no_type(annotation: Any) -> InvalidConfigurationError:  # Any: annotations may be anything
    """The error for an annotation that has no type."""
    return InvalidConfigurationError(
        f"{_text_of(annotation)} has no type in Avro: {_instead(annotation)}"
    )


def _instead(annotation: Any) -> str:
    if isinstance(annotation, str):
        return "its text names no class: it has to be one at the module's top level"
    try:
        found = _INSTEAD.get(annotation) or _BY_ORIGIN.get(get_origin(annotation))
    except TypeError:  # not hashable, so no class
        found = None
    if found is None and isinstance(origin := get_origin(annotation), type):
        name = origin.__name__
        found = f"derive a class that is not generic: class Some{name}({_text_of(annotation)})"
    if found is None and isinstance(annotation, type):
        found = _instead_of_class(annotation)
    return found or f"use {_CLASSES}"


def _instead_of_class(owner: type) -> str | None:
    if issubclass(owner, Flag):
        return "its values are sums of members: use int, or list[X] of an Enum"
    if owner.__name__.endswith(("Url", "Dsn")):
        return "use str, with a validator"
    return _BY_NAME.get(owner.__name__)


def no_record(owner: Any) -> InvalidConfigurationError:  # Any: whatever somebody gave
    """The error for what was given as the class of records."""
    instead = f"give {_CLASSES}, or an Avro definition as schema_definition"
    try:
        if (schema := _SCHEMAS.get(owner)) is not None:
            instead = f"use {schema} from pulsar_py.schema"
    except TypeError:  # not hashable
        pass
    if get_origin(owner) is not None:
        instead = f"give a class with a field of it: {_CLASSES}"
    elif (
        not isinstance(owner, type)
        and hasattr(type(owner), "__dict__")
        and (hasattr(owner, "__dataclass_fields__") or hasattr(owner, "model_fields_set"))
    ):
        instead = f"that is an object: give its class, {type(owner).__name__}"
    return InvalidConfigurationError(f"{_text_of(owner)} has no fields: {instead}")


def avro_name(name: str, what: str) -> str:
    """The name, if it is one in Avro.

    Raises:
        InvalidConfigurationError: It is not.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidConfigurationError(
            f"{what} {name!r}: names in Avro have letters from A to Z, digits and underscores only"
        )
    return name


def _text_of(annotation: Any) -> str:
    return (
        annotation.__qualname__
        if isinstance(annotation, type) and not get_args(annotation)
        else repr(annotation)[:200]
    )
