"""Types of enumerations and fixed-size bytes, which have names; see `value_types` (pure).

A definition contains a named type once, and refers to it by its name afterwards. Records, which are
named too, have a module of their own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from enum import Enum
from typing import Any

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.values.value_types import (
    AvroJson,
    BytesType,
    MisfitError,
    Names,
    ValueType,
    takes,
)

__all__ = ["EnumType", "FixedType", "NamedType", "full_name"]


def full_name(name: str, namespace: str | None) -> str:
    """A name with its namespace; a dotted name has one already."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


class NamedType(ValueType):
    """A type with a name, which a definition contains once and then refers to by name."""

    kind: str

    def __init__(self, name: str, namespace: str | None, identity: object) -> None:
        self.name = name
        # The namespace; None: that of the enclosing type.
        self.namespace = namespace
        # Equal for two nodes of the same type, by which a clash of names is found.
        self.identity = identity
        # The full name; it gets the enclosing namespace when the definition is written.
        self._full_name = full_name(name, namespace)

    @property
    def branch(self) -> str:  # type: ignore[override] # depends on where it is defined
        """Its full name."""
        return self._full_name

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        name = full_name(self.name, self.namespace or names.namespace)
        self._full_name = name
        if (known := names.defined.get(name)) is not None:
            if known.identity != self.identity:
                raise InvalidConfigurationError(
                    f"Avro name {name}: {known.identity} and {self.identity} would share it"
                )
            return names.reference(name)
        names.defined[name] = self
        outer = names.namespace
        names.namespace = name.rpartition(".")[0] or None
        try:
            text: dict[str, Any] = {"type": self.kind, "name": self.name}
            if self.namespace:
                text["namespace"] = self.namespace
            return text | self.details(names)
        finally:
            names.namespace = outer

    @abstractmethod
    def details(self, names: Names) -> dict[str, AvroJson]:
        """The parts of its definition beside kind and name."""


class FixedType(NamedType):
    """A fixed number of bytes."""

    kind = "fixed"

    def __init__(self, name: str, namespace: str | None, size: int) -> None:
        super().__init__(name, namespace, ("fixed", size))
        self.size = size
        self._bytes = BytesType()

    def details(self, names: Names) -> dict[str, AvroJson]:
        """See `NamedType`."""
        del names
        return {"size": self.size}

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        data = self._bytes.to_avro(value)
        if len(data) != self.size:
            raise MisfitError(f"expected {self.size} bytes, got {len(data)}")
        return data

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`."""
        return self._bytes.from_avro(plain)

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        return self._bytes.to_json(self.to_avro(value))

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`."""
        return self.to_avro(self._bytes.from_json(plain))

    def to_default(self, value: Any) -> AvroJson:
        """See `ValueType`."""
        return self._bytes.to_default(value)


class EnumType(NamedType):
    """A Python enumeration by its members' names, or symbols as text."""

    kind = "enum"

    def __init__(
        self,
        name: str,
        namespace: str | None,
        symbols: Iterable[str],
        members: type[Enum] | None = None,
        default: str | None = None,
    ) -> None:
        self.symbols = tuple(symbols)
        super().__init__(name, namespace, members or self.symbols)
        self._members = members
        self._default = default

    def details(self, names: Names) -> dict[str, AvroJson]:
        """See `NamedType`."""
        del names
        text: dict[str, AvroJson] = {"symbols": [*self.symbols]}
        return text if self._default is None else text | {"default": self._default}

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`; a symbol's text is accepted, too."""
        if isinstance(value, Enum) and (self._members is None or isinstance(value, self._members)):
            value = value.name
        if isinstance(value, str) and value in self.symbols:
            return value
        raise takes(f"one of {', '.join(self.symbols)}", value)

    def is_own(self, value: Any) -> bool:
        """See `ValueType`; symbols are taken, and come back as members."""
        return self.accepts(value) and (self._members is None or isinstance(value, self._members))

    def json_values(self) -> list[Any]:
        """See `ValueType`."""
        return [*self.symbols]

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`."""
        return plain if self._members is None else self._members[plain]

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`; the official Python client writes a member's value."""
        if isinstance(plain, str) and plain in self.symbols:
            return self.from_avro(plain)
        if self._members is None:
            # Without a class, a member's value can't be mapped to its symbol: it is returned.
            if isinstance(plain, str | int):
                return plain
        elif plain in [each.value for each in self._members]:
            return self._members(plain)
        raise takes(f"one of {', '.join(self.symbols)}", plain)
