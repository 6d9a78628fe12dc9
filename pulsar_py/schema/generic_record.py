"""`GenericRecord`: a record of a schema that the program doesn't know, as auto-consume returns it.

Source: GenericRecord in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["GenericRecord"]


class GenericRecord(Mapping[str, Any]):  # Any: the writer's schema decides
    """A record, decoded by its writer's schema: a mapping from field names to values.

    Values are plain: numbers, text, bytes, times, lists, dicts, symbols of enumerations as text,
    and records as GenericRecord again. Equal to a mapping of the same items.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def fields(self) -> tuple[str, ...]:
        """The names, in the schema's order."""
        return tuple(self._values)

    def field(self, name: str) -> Any:
        """The value of a field; None if there is no such field, as in Java."""
        return self._values.get(name)

    def to_dict(self) -> dict[str, Any]:
        """The record as dicts and lists."""
        return {name: _plain(value) for name, value in self._values.items()}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, GenericRecord):
            return self._values == other._values
        return dict(self._values) == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # its values may change

    def __repr__(self) -> str:
        return f"GenericRecord({dict(self._values)!r})"


def _plain(value: Any) -> Any:
    if isinstance(value, GenericRecord):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value
