"""Types of arrays and maps in records; see `value_types` (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pulsar_py.schema.values.value_types import AvroJson, MisfitError, Names, ValueType, takes

__all__ = ["ArrayType", "MapType"]


class ArrayType(ValueType):
    """Several values of one type."""

    branch = "array"

    def __init__(self, items: ValueType, make: Callable[[list[Any]], Any] | None = None) -> None:
        """`make` converts the list to another sequence or a set; None leaves the list."""
        self._items = items
        self._make = make

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        return {"type": "array", "items": self._items.definition(names)}

    @property
    def children(self) -> Iterable[ValueType]:
        """See `ValueType`."""
        return (self._items,)

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise takes("lists", value)
        return _each(value, self._items.to_avro)

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`."""
        convert = self._items.from_avro
        return self._made([convert(each) for each in plain])

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise takes("lists", value)
        return _each(value, self._items.to_json)

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`."""
        if not isinstance(plain, list):
            raise takes("arrays", plain)
        return self._made(_each(plain, self._items.from_json))

    def to_default(self, value: Any) -> AvroJson:
        """See `ValueType`."""
        return _each(value, self._items.to_default)

    def is_own(self, value: Any) -> bool:
        """See `ValueType`; any iterable is taken, and comes back as what was declared."""
        made: Any = self._make or list  # Any: the class of a sequence or set
        return isinstance(value, made) and all(self._items.is_own(each) for each in value)

    def wrote_json(self, plain: Any) -> bool:
        """See `ValueType`."""
        return isinstance(plain, list) and all(self._items.wrote_json(each) for each in plain)

    def _made(self, values: list[Any]) -> Any:
        return values if self._make is None else self._make(values)


def _each(values: Iterable[Any], convert: Callable[[Any], Any]) -> list[Any]:
    converted: list[Any] = []
    try:
        for value in values:
            converted.append(convert(value))  # noqa: PERF401 - its length is read on errors
    except MisfitError as error:
        raise error.inside(f"[{len(converted)}]") from None
    return converted


class MapType(ValueType):
    """A dict from text to values of one type."""

    branch = "map"

    def __init__(self, values: ValueType) -> None:
        self._values = values

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        return {"type": "map", "values": self._values.definition(names)}

    @property
    def children(self) -> Iterable[ValueType]:
        """See `ValueType`."""
        return (self._values,)

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        return self._convert(value, self._values.to_avro)

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`."""
        convert = self._values.from_avro
        return {key: convert(value) for key, value in plain.items()}

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        return self._convert(value, self._values.to_json)

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`."""
        return self._convert(plain, self._values.from_json)

    def to_default(self, value: Any) -> AvroJson:
        """See `ValueType`."""
        return self._convert(value, self._values.to_default)

    def is_own(self, value: Any) -> bool:
        """See `ValueType`."""
        return isinstance(value, dict) and self.accepts(value)

    def wrote_json(self, plain: Any) -> bool:
        """See `ValueType`."""
        return isinstance(plain, dict) and all(map(self._values.wrote_json, plain.values()))

    @staticmethod
    def _convert(value: Any, convert: Callable[[Any], Any]) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise takes("mappings", value)
        converted = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise takes("text as keys", key)
            try:
                converted[key] = convert(item)
            except MisfitError as error:
                raise error.inside(f"[{key!r}]") from None
        return converted
