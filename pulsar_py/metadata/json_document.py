"""`JsonDocument`: a JSON object as a typed, immutable value that keeps unknown keys (pure).

A class lists the keys it understands, each with the codec of its value:

    class TenantInfo(JsonDocument):
        admin_roles = key("adminRoles", TEXTS)

An attribute is None while its key is missing or null. `replace` gives a changed copy; keys that the
class does not know stay as they were, so that what another version or another part of the broker
wrote is never lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, overload

from pulsar_py.common.errors import MetadataError
from pulsar_py.common.foreign_json import parse_json

T = TypeVar("T")

Json = Any  # a value of the json module: its types are what the keys below check


class Codec(NamedTuple, Generic[T]):
    """Reads one kind of value from JSON, and writes it."""

    decode: Callable[[Json], T]
    encode: Callable[[T], Json]


class Key(Generic[T]):
    """One key of a document, as an attribute of its class; the class attribute is the `Key`."""

    __slots__ = ("codec", "json_name", "name")

    def __init__(self, json_name: str, codec: Codec[T]) -> None:
        self.json_name = json_name
        self.codec = codec
        self.name = ""

    def __set_name__(self, owner: type[JsonDocument], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, document: None, owner: type[JsonDocument]) -> Key[T]: ...
    @overload
    def __get__(self, document: JsonDocument, owner: type[JsonDocument]) -> T | None: ...
    def __get__(
        self, document: JsonDocument | None, owner: type[JsonDocument]
    ) -> Key[T] | T | None:
        if document is None:
            return self
        value = document.json.get(self.json_name)
        if value is None:
            return None
        try:
            return self.codec.decode(value)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise MetadataError(
                f"{self.json_name}: can't read the stored value {value!r}: {error!r}"
            ) from error


def key(json_name: str, codec: Codec[T]) -> Key[T]:
    """Declare a key of a document."""
    return Key(json_name, codec)


class JsonDocument:
    """One JSON object."""

    __slots__ = ("json",)

    _keys: ClassVar[Mapping[str, Key[Any]]] = {}  # Any: keys of all types

    json: Mapping[str, Json]
    """The object as the json module has it; not to be changed."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._keys = {
            name: value
            for base in reversed(cls.__mro__)
            for name, value in base.__dict__.items()
            if isinstance(value, Key)
        }

    def __init__(self, document: Mapping[str, Json] | None = None, /, **attributes: Any) -> None:
        """Take an object of the json module, and attributes that override its keys."""
        object.__setattr__(self, "json", {**(document or {}), **self._encode(attributes)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a stored object.

        Raises:
            MetadataError: The bytes are not a JSON object.
        """
        try:
            document = parse_json(data) if data else {}
        except ValueError as error:
            raise MetadataError(f"the stored document is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise MetadataError(
                f"the stored document is not a JSON object, as expected, but {document!r:.60}"
            )
        return cls(document)

    @classmethod
    def names(cls) -> Iterable[str]:
        """The attributes that this class understands."""
        return cls._keys.keys()

    def to_bytes(self) -> bytes:
        """The object as it is stored, without blanks."""
        return json.dumps(self.json, separators=(",", ":"), ensure_ascii=False).encode()

    def replace(self, **attributes: Any) -> Self:  # Any: each has its key's type
        """The same object with some attributes changed; None removes the key."""
        changes = self._encode(attributes)
        merged = {**self.json, **changes}
        kept = {name: value for name, value in merged.items() if value is not None}
        return type(self)(kept)

    def _encode(self, attributes: Mapping[str, Any]) -> dict[str, Json]:
        encoded = {}
        for name, value in attributes.items():
            declared = self._keys.get(name)
            if declared is None:
                raise TypeError(f"{type(self).__name__} has no attribute {name}")
            json_value = None if value is None else declared.codec.encode(value)
            encoded[declared.json_name] = json_value
        return encoded

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: use replace({name}=…)")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.json == other.json)

    __hash__ = None  # type: ignore[assignment] # holds dicts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.json)!r})"
