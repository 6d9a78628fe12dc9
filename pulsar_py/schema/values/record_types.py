"""Types of unions and records; see `value_types` (pure).

A value of a union goes to the first branch whose own values are like it, else to the first that
accepts it. fastavro gets it with that branch's name, so that it need not try them all; it returns a
pair of name and value for named types, else just the value. JSON does not name branches: the first
one that may have written a value reads it, else the first that can.

Subclasses of `RecordType` take records apart into values, and put them together. A field that JSON
lacks gets its default, or None if it may be None.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulsar_py.schema.values.named_types import NamedType
from pulsar_py.schema.values.value_types import (
    AvroJson,
    MisfitError,
    Names,
    NullType,
    ValueType,
    takes,
)

__all__ = ["NO_DEFAULT", "MappingType", "ObjectType", "RecordField", "RecordType", "UnionType"]


_NUMBERS: Final = frozenset({"float", "double"})


class UnionType(ValueType):
    """One of several types."""

    branch = "union"

    def __init__(self, branches: Sequence[ValueType]) -> None:
        self.branches = tuple(branches)
        others = [each for each in branches if not isinstance(each, NullType)]
        self.takes_none = len(others) < len(branches)
        # The only branch besides null; None if there are several.
        self._only = others[0] if self.takes_none and len(others) == 1 else None
        # Text is a number that is not finite only where it can't be anything else.
        self._readers_of_text = sorted(self.branches, key=lambda each: each.branch in _NUMBERS)

    def definition(self, names: Names) -> AvroJson:
        """See `ValueType`."""
        return [each.definition(names) for each in self.branches]

    @property
    def children(self) -> Iterable[ValueType]:
        """See `ValueType`."""
        return self.branches

    def _branch_of(self, value: Any) -> ValueType:
        for branch in self.branches:
            if branch.is_own(value):
                return branch
        for branch in self.branches:
            if branch.accepts(value):
                return branch
        raise takes(" or ".join(each.branch for each in self.branches), value)

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        if value is None and self.takes_none:
            return None
        branch = self._only or self._branch_of(value)
        return (branch.branch, branch.to_avro(value))

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`."""
        if plain is None:
            return None
        if type(plain) is tuple:
            name, plain = plain
            for branch in self.branches:
                if branch.branch == name:
                    return branch.from_avro(plain)
        if self._only is not None:
            return self._only.from_avro(plain)
        if isinstance(plain, dict):
            return self._of_dict(plain)
        for branch in self.branches:
            if branch.branch == "array" if isinstance(plain, list) else branch.is_own(plain):
                return branch.from_avro(plain)
        return plain

    def _of_dict(self, plain: dict[str, Any]) -> Any:
        """The value of a map, or of a record's default, which comes without a name."""
        for branch in self.branches:
            if branch.branch == "map" and branch.is_own(value := branch.from_avro(plain)):
                return value
        records = [each for each in self.branches if isinstance(each, RecordType)]
        return records[0].from_avro(plain) if records else plain

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        if value is None and self.takes_none:
            return None
        if self._only is not None:
            return self._only.to_json(value)
        branch = self._branch_of(value)
        plain = branch.to_json(value)
        if isinstance(value, float) and isinstance(plain, str):
            self._check_not_finite(branch, plain)
        return plain

    def _check_not_finite(self, branch: ValueType, plain: str) -> None:
        """Refuse a number that JSON writes as text where another branch has that text, too."""
        if any(each.wrote_json(plain) for each in self.branches if each is not branch):
            raise MisfitError(
                f"{plain} is text in JSON, and can't be told from other texts of this union: "
                "use AvroSchema, or send None instead"
            )

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`."""
        if plain is None and self.takes_none:
            return None
        if self._only is not None:
            return self._only.from_json(plain)
        for branch in self._readers_of_text if isinstance(plain, str) else self.branches:
            if branch.wrote_json(plain):
                return branch.from_json(plain)
        for branch in self.branches:
            try:
                return branch.from_json(plain)
            except MisfitError:
                continue
        raise takes(" or ".join(each.branch for each in self.branches), plain)

    def to_default(self, value: Any) -> AvroJson:
        """See `ValueType`; in Avro a default has to be of the first branch."""
        return None if value is None else self._branch_of(value).to_default(value)

    def accepts(self, value: Any) -> bool:
        """See `ValueType`."""
        return any(branch.accepts(value) for branch in self.branches)

    def is_own(self, value: Any) -> bool:
        """See `ValueType`."""
        return any(branch.is_own(value) for branch in self.branches)

    def wrote_json(self, plain: Any) -> bool:
        """See `ValueType`."""
        return any(branch.wrote_json(plain) for branch in self.branches)


class _NoDefault:
    """The type of `NO_DEFAULT`."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()
"""Marks a missing default; None may be a default."""


@dataclass(frozen=True, slots=True)
class RecordField:
    """One field of a record."""

    name: str
    type: ValueType
    default: Any = NO_DEFAULT
    """The default as definitions write it."""
    may_be_absent: bool = False
    """Whether a record can be made without it: its class has a default."""
    default_stands_first: bool = False
    """Whether the default comes before the type in the text, as the official Python client does.
    """

    def definition(self, names: Names) -> dict[str, AvroJson]:
        """The field's part of the record's definition."""
        text: dict[str, AvroJson] = {"name": self.name}
        if self.default is not NO_DEFAULT and self.default_stands_first:
            text["default"] = self.default
        text["type"] = self.type.definition(names)
        if self.default is not NO_DEFAULT:
            text["default"] = self.default
        return text


class RecordType(NamedType):
    """Values with named fields."""

    kind = "record"

    def __init__(self, name: str, namespace: str | None, identity: object) -> None:
        super().__init__(name, namespace, identity)
        # Set after the record was registered, because a field may be of this very type.
        self.fields: tuple[RecordField, ...] = ()

    @abstractmethod
    def take_apart(self, value: Any) -> Sequence[Any]:
        """The values of all fields, in order; raises MisfitError."""

    @abstractmethod
    def put_together(self, values: dict[str, Any]) -> Any:
        """The record of these values, without some that `may_be_absent`; raises MisfitError."""

    def details(self, names: Names) -> dict[str, AvroJson]:
        """See `NamedType`."""
        return {"fields": [each.definition(names) for each in self.fields]}

    @property
    def children(self) -> Iterable[ValueType]:
        """See `ValueType`."""
        return (each.type for each in self.fields)

    def to_avro(self, value: Any) -> Any:
        """See `ValueType`."""
        plain = {}
        for field, item in zip(self.fields, self.take_apart(value), strict=True):
            try:
                plain[field.name] = field.type.to_avro(item)
            except MisfitError as error:
                raise error.inside(field.name) from None
        return plain

    def from_avro(self, plain: Any) -> Any:
        """See `ValueType`; a default may lack fields that have defaults of their own."""
        if not isinstance(plain, dict):
            raise takes("objects", plain)
        values = {}
        for field in self.fields:
            try:
                if field.name in plain:
                    values[field.name] = field.type.from_avro(plain[field.name])
                else:
                    values[field.name] = _absent(field)
            except MisfitError as error:
                raise error.inside(field.name) from None
        return self.put_together(values)

    def to_json(self, value: Any) -> Any:
        """See `ValueType`."""
        plain = {}
        for field, item in zip(self.fields, self.take_apart(value), strict=True):
            try:
                plain[field.name] = field.type.to_json(item)
            except MisfitError as error:
                raise error.inside(field.name) from None
        return plain

    def from_json(self, plain: Any) -> Any:
        """See `ValueType`; unknown fields are ignored."""
        if not isinstance(plain, dict):
            raise takes("objects", plain)
        values = {}
        for field in self.fields:
            try:
                if field.name in plain:
                    values[field.name] = field.type.from_json(plain[field.name])
                elif not field.may_be_absent:
                    values[field.name] = _absent(field)
            except MisfitError as error:
                raise error.inside(field.name) from None
        return self.put_together(values)

    def wrote_json(self, plain: Any) -> bool:
        """See `ValueType`; all fields are written, whatever their values."""
        return (
            isinstance(plain, dict)
            and len(plain) == len(self.fields)
            and all(
                each.name in plain and each.type.wrote_json(plain[each.name])
                for each in self.fields
            )
        )

    def to_default(self, value: Any) -> AvroJson:
        """See `ValueType`."""
        items = zip(self.fields, self.take_apart(value), strict=True)
        return {field.name: field.type.to_default(item) for field, item in items}


def _absent(field: RecordField) -> Any:
    if field.default is not NO_DEFAULT:
        return field.type.from_avro(field.default)
    if isinstance(field.type, UnionType) and field.type.takes_none:
        return None
    raise MisfitError("is missing, and there is no default")


class ObjectType(RecordType):
    """Objects of a class, whose constructor takes the fields as keywords."""

    def __init__(self, name: str, namespace: str | None, owner: type) -> None:
        super().__init__(name, namespace, owner)
        self._owner = owner

    def take_apart(self, value: Any) -> Sequence[Any]:
        """See `RecordType`; of a subclass it would lose the fields, so that is refused."""
        if type(value) is not self._owner:
            misfit = takes(self._owner.__name__, value)
            if isinstance(value, self._owner):
                name = type(value).__name__
                misfit.text += f": a {name} comes back only where the field's type names {name}"
            raise misfit
        return [getattr(value, each.name) for each in self.fields]

    def put_together(self, values: dict[str, Any]) -> Any:
        """See `RecordType`."""
        try:
            return self._owner(**values)
        except (TypeError, ValueError) as error:
            raise MisfitError(f"{self._owner.__name__} refuses: {error}") from error

    def accepts(self, value: Any) -> bool:
        """See `ValueType`."""
        return type(value) is self._owner


class MappingType(RecordType):
    """Dicts, or another mapping made of them."""

    def __init__(
        self, name: str, namespace: str | None, make: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        super().__init__(name, namespace, object())
        self._make = make

    def take_apart(self, value: Any) -> Sequence[Any]:
        """See `RecordType`."""
        if not isinstance(value, Mapping):
            raise takes("mappings", value)
        known = {field.name for field in self.fields}
        for name in value:
            if name not in known:
                raise MisfitError(f"{self.name} has no field {name!r}")
        return [_item(value, field) for field in self.fields]

    def put_together(self, values: dict[str, Any]) -> Any:
        """See `RecordType`."""
        return values if self._make is None else self._make(values)


def _item(value: Mapping[str, Any], field: RecordField) -> Any:
    if field.name in value:
        return value[field.name]
    try:
        return _absent(field)
    except MisfitError as error:
        raise error.inside(field.name) from None
