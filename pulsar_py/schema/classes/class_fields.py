"""The fields of a class whose values become records: names, annotations, defaults (pure).

Knows dataclasses (those of pydantic, too), `NamedTuple`s and `TypedDict`s; pydantic's models have a
module of their own. A key of a `TypedDict` that is not required is a field that may be null: an
absent key is written as null, and null is read as an absent key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, Required, get_args, get_origin, get_type_hints, is_typeddict

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.classes.pydantic_models import ModelType, model_fields, model_name
from pulsar_py.schema.values.record_types import ObjectType, RecordType
from pulsar_py.schema.values.value_types import MisfitError, takes

__all__ = ["ClassField", "Description", "TypedDictType", "describe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassField:
    """One field, as its class declares it."""

    name: str
    annotation: Any  # Any: annotations may be anything
    has_default: bool = False
    default: Any = None  # Any: of the field's type
    factory: Callable[[], Any] | None = None
    """Makes the default, instead of `default`."""


@dataclass(frozen=True, slots=True)
class Description:
    """A class of records: its name, fields and documentation."""

    name: str
    fields: Callable[[], Iterator[ClassField]]
    """Called once the record is known, which its fields may contain."""
    node: Callable[[str, str | None], RecordType]
    """Makes the record's type of a name and a namespace."""


def describe(owner: Any) -> Description | None:  # Any: whatever somebody gave
    """The description of a class by its fields; None if it is not a class that has fields."""
    if not isinstance(owner, type):
        return None
    if is_typeddict(owner):
        optional = _optional_keys(owner)
        return Description(
            owner.__name__,
            lambda: _fields_of_typed_dict(owner, optional),
            lambda name, namespace: TypedDictType(name, namespace, owner, optional),
        )
    if (fields := model_fields(owner)) is not None:
        return Description(
            model_name(owner),
            lambda: (ClassField(**each) for each in fields()),
            lambda name, namespace: ModelType(name, namespace, owner),
        )
    if dataclasses.is_dataclass(owner):
        return _objects_of(owner, _fields_of_dataclass)
    if issubclass(owner, tuple) and hasattr(owner, "_field_defaults"):
        return _objects_of(owner, _fields_of_named_tuple)
    return None


def _objects_of(owner: type, fields: Callable[[Any], Iterator[ClassField]]) -> Description:
    return Description(
        owner.__name__,
        lambda: fields(owner),
        lambda name, namespace: ObjectType(name, namespace, owner),
    )


def _hints(owner: type) -> dict[str, Any]:
    try:
        return get_type_hints(owner, localns={owner.__name__: owner}, include_extras=True)
    except NameError as error:
        raise InvalidConfigurationError(
            f"{owner.__name__}: {error}; classes of fields have to be at a module's top level"
        ) from None


def _fields_of_dataclass(owner: Any) -> Iterator[ClassField]:  # Any: a dataclass
    hints = _hints(owner)
    for each in dataclasses.fields(owner):
        if not each.init:
            continue
        # A dataclass of pydantic has what `Field` returned as the default.
        default: Any = each.default  # Any: of the field's type
        factory: Any = each.default_factory  # Any: makes the same
        if type(default).__name__ == "FieldInfo":
            field, default = default, dataclasses.MISSING
            factory = field.default_factory or dataclasses.MISSING
            if field.default_factory is None and not field.is_required():
                default = field.default
        yield ClassField(
            name=each.name,
            annotation=hints[each.name],
            has_default=(default, factory) != (dataclasses.MISSING, dataclasses.MISSING),
            default=default,
            factory=None if factory is dataclasses.MISSING else factory,
        )


def _fields_of_named_tuple(owner: Any) -> Iterator[ClassField]:  # Any: a NamedTuple
    hints = _hints(owner)
    for name in owner._fields:
        if name not in hints:
            raise InvalidConfigurationError(
                f"{owner.__name__}.{name} has no type: derive from typing.NamedTuple, whose "
                "fields have types, instead of calling namedtuple"
            )
        yield ClassField(
            name=name,
            annotation=hints[name],
            has_default=name in owner._field_defaults,
            default=owner._field_defaults.get(name),
        )


def _optional_keys(owner: Any) -> frozenset[str]:  # Any: a TypedDict
    """Keys that may be absent; Python 3.11 takes a postponed `NotRequired` for required."""
    required = set(owner.__required_keys__)
    for name, hint in _hints(owner).items():
        if get_origin(hint) is NotRequired:
            required.discard(name)
        elif get_origin(hint) is Required:
            required.add(name)
    return frozenset(_hints(owner)) - required


def _fields_of_typed_dict(owner: Any, optional: frozenset[str]) -> Iterator[ClassField]:
    for name, hint in _hints(owner).items():
        inner = get_args(hint)[0] if get_origin(hint) in {NotRequired, Required} else hint
        if name not in optional:
            yield ClassField(name=name, annotation=inner)
            continue
        if type(None) in get_args(inner) or inner is None:
            raise InvalidConfigurationError(
                f"{owner.__name__}.{name} may be absent, or None: records have null for both, so "
                "use one of them, NotRequired or None"
            )
        yield ClassField(name=name, annotation=inner | None, has_default=True)


class TypedDictType(RecordType):
    """Dicts with the keys of a `TypedDict`."""

    def __init__(
        self, name: str, namespace: str | None, owner: type, optional: frozenset[str]
    ) -> None:
        """`optional` are the keys that may be absent."""
        super().__init__(name, namespace, owner)
        self._optional = optional

    def take_apart(self, value: Any) -> Sequence[Any]:
        """See `RecordType`."""
        if not isinstance(value, Mapping):
            raise takes("dicts", value)
        known = {each.name for each in self.fields}
        for name in value:
            if name not in known:
                raise MisfitError(f"{self.name} has no key {name!r}")
        return [self._item(value, each.name) for each in self.fields]

    def _item(self, value: Mapping[str, Any], name: str) -> Any:
        if name in value:
            item = value[name]
            if item is None and name in self._optional:
                raise MisfitError("is None: leave the key out").inside(name)
            return item
        if name in self._optional:
            return None
        raise MisfitError("is missing").inside(name)

    def put_together(self, values: dict[str, Any]) -> Any:
        """See `RecordType`."""
        return {
            name: item
            for name, item in values.items()
            if item is not None or name not in self._optional
        }

    def is_own(self, value: Any) -> bool:
        """See `ValueType`."""
        return isinstance(value, dict) and self.accepts(value)
