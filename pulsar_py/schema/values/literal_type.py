"""`LiteralType`: some values of one type, as `typing.Literal` lists them; see `value_types` (pure).

The definition is the type's own, without the values: one more can be added without a new version of
the topic's schema. Others are refused both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pulsar_py.schema.values.value_types import AvroJson, Names, ValueType, takes

__all__ = ["LiteralType"]


class LiteralType(ValueType):
    """One of some values; True is not 1."""

    def __init__(self, base: ValueType, values: Sequence[Any]) -> None:
        """`values` are at least one, all of the type `base`."""
        self.base = base
        self.values = tuple(values)

    @property
    def branch(self) -> str:  # type: ignore[override] # that of its type, which may get a namespace
        """The branch of its type."""
        return self.base.branch

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        return self.base.definition(names)

    @property
    def children(self) -> Iterable[ValueType]:
        """See `ValueType`."""
        return (self.base,)

    def _checked(self, value: Any) -> Any:
        for each in self.values:
            if type(each) is type(value) and each == value:
                return each
        raise takes(f"one of {', '.join(map(repr, self.values))}", value)

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        return self.base.to_avro(self._checked(value))

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`."""
        return self._checked(self.base.from_avro(plain))

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        return self.base.to_json(self._checked(value))

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`."""
        return self._checked(self.base.from_json(plain))

    def to_default(self, value: Any) -> AvroJson:
        """See `ValueType`."""
        return self.base.to_default(self._checked(value))

    def json_values(self) -> list[Any]:
        """See `ValueType`."""
        return [self.base.to_json(each) for each in self.values]
