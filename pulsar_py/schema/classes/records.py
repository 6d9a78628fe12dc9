"""`Record` and its fields, as programs of the official Python client declare them (pure).

    class Example(Record):
        name = String()
        count = Integer(default=1, required=True)
        tags = Array(String())
        inner = Inner()

The definition is that of the official client, text for text, so that both write one version of a
topic's schema: a field is a union with null unless `required`; its default is part of the
definition only with `required_default`, though new records have it anyway; fields stand in the
order of their declaration, or by name with `_sorted_fields = True`; `_avro_namespace` sets the
namespace.

Different on purpose: fields of a base class are inherited (the official client forgets them), an
array of `CustomEnum` is defined (there it is broken), and a record within a record is its own
(there all share one).

Values are checked when they are set, and raise TypeError, as in the official client. Methods that
fields call on each other begin with an underscore, because all other names may be users' fields.

Source: `pulsar.schema` of the official Python client, by what its classes do.
"""
# ruff: noqa: SLF001 - see above: fields and records know each other

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Self

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.values.collection_types import ArrayType, MapType
from pulsar_py.schema.values.named_types import EnumType
from pulsar_py.schema.values.record_types import (
    NO_DEFAULT,
    RecordField,
    RecordType,
    UnionType,
)
from pulsar_py.schema.values.value_types import (
    BooleanType,
    BytesType,
    FloatingType,
    IntegerType,
    MisfitError,
    Names,
    NullType,
    StringType,
    ValueType,
    takes,
)

__all__ = [
    "Array",
    "Boolean",
    "Bytes",
    "CustomEnum",
    "Double",
    "Field",
    "Float",
    "Integer",
    "Long",
    "Map",
    "Null",
    "Record",
    "String",
    "record_type",
]


class Field:
    """The field of one attribute of a record."""

    def __init__(
        self,
        default: Any = None,
        required: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        required_default: bool = False,  # noqa: FBT001, FBT002 - as above
    ) -> None:
        """Declare a field, with the arguments of the official client.

        Args:
            default: The value in a new record if none is given.
            required: Whether None is refused: the Avro type is not a union with null then.
            required_default: Whether the default, even None, is in the Avro definition.
        """
        self._default = default
        self._required = required
        self._required_default = required_default
        # The node that checks values; made when the first value is checked.
        self._node: ValueType | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(default={self._default!r}, required={self._required})"

    def default(self) -> Any:
        """The value in a new record."""
        return self._default

    def required(self) -> bool:
        """Whether it can't be None."""
        return self._required

    def required_default(self) -> bool:
        """Whether the definition has the default."""
        return self._required_default

    def _value_type(self) -> ValueType:
        """A new node of the type tree, for its values."""
        raise NotImplementedError

    def _checker(self) -> ValueType:
        """The node that values are checked by."""
        if self._node is None:
            self._node = self._value_type()
        return self._node

    def _checked(self, name: str, value: Any) -> Any:
        """The value as the record keeps it.

        Raises:
            TypeError: It is of another type.
        """
        if value is None:
            return None
        try:
            self._checker().to_avro(value)
        except MisfitError as error:
            raise TypeError(f"field {name!r}{error.where and '.'}{error}") from None
        return value


class Null(Field):
    """Nothing but None."""

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return NullType()


class Boolean(Field):
    """True or False; False by default."""

    def __init__(
        self,
        default: bool | None = False,  # noqa: FBT001, FBT002 - the official client's order
        required: bool = False,  # noqa: FBT001, FBT002 - as above
        required_default: bool = False,  # noqa: FBT001, FBT002 - as above
    ) -> None:
        super().__init__(default, required, required_default)

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return BooleanType()


class Integer(Field):
    """A whole number of 32 bits."""

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return IntegerType("int")


class Long(Field):
    """A whole number of 64 bits."""

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return IntegerType("long")


class Float(Field):
    """A floating-point number of 32 bits."""

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return FloatingType("float")


class Double(Field):
    """A floating-point number of 64 bits."""

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return FloatingType("double")


class Bytes(Field):
    """Bytes."""

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return BytesType()


class String(Field):
    """Text."""

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return StringType()


class CustomEnum(Field):
    """A member of an enumeration; a member's name or value may be given for it."""

    def __init__(
        self,
        enum_type: type[Enum],
        default: Any = None,
        required: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        required_default: bool = False,  # noqa: FBT001, FBT002 - as above
    ) -> None:
        super().__init__(default, required, required_default)
        if not isinstance(enum_type, type) or not issubclass(enum_type, Enum):
            raise TypeError(f"{enum_type!r} is not a subclass of Enum")
        self.enum_type = enum_type

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return EnumType(self.enum_type.__name__, None, self.enum_type.__members__, self.enum_type)

    def _checked(self, name: str, value: Any) -> Any:
        """See `Field`."""
        if value is None or isinstance(value, self.enum_type):
            return value
        try:
            return self._checker().from_json(value)
        except MisfitError as error:
            raise TypeError(f"field {name!r}: {error}") from None


class Array(Field):
    """A list of one type of values."""

    def __init__(
        self,
        array_type: Field,
        default: Any = None,
        required: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        required_default: bool = False,  # noqa: FBT001, FBT002 - as above
    ) -> None:
        super().__init__(default, required, required_default)
        self.array_type = _checked_field(array_type)

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return ArrayType(self.array_type._value_type())

    def _checked(self, name: str, value: Any) -> Any:
        """See `Field`."""
        if value is None:
            return None
        if not isinstance(value, list):
            raise TypeError(f"field {name!r}: {takes('lists', value)}")
        return [self.array_type._checked(name, each) for each in value]


class Map(Field):
    """A dict from text to values of one type."""

    def __init__(
        self,
        value_type: Field,
        default: Any = None,
        required: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        required_default: bool = False,  # noqa: FBT001, FBT002 - as above
    ) -> None:
        super().__init__(default, required, required_default)
        self.map_value_type = _checked_field(value_type)

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return MapType(self.map_value_type._value_type())

    def _checked(self, name: str, value: Any) -> Any:
        """See `Field`."""
        if value is None:
            return None
        if not isinstance(value, dict):
            raise TypeError(f"field {name!r}: {takes('dicts', value)}")
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"field {name!r}: takes text as keys")
        check = self.map_value_type._checked
        return {key: check(name, item) for key, item in value.items()}


def _checked_field(field: Any) -> Field:
    if not isinstance(field, Field):
        raise TypeError(f"{field!r} is not a field: expected String(), Integer(), a Record() ...")
    return field


class Record(Field):
    """Base of record classes; an instance is a value, and also a field of another record."""

    _fields: ClassVar[Mapping[str, Field]] = {}
    _avro_namespace: ClassVar[str | None] = None
    _sorted_fields: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Collect the fields."""
        super().__init_subclass__(**options)
        own = {name: field for name, field in vars(cls).items() if isinstance(field, Field)}
        cls._fields = {**cls._fields, **own}

    def __init__(
        self,
        default: Any = None,
        required_default: bool = False,  # noqa: FBT001, FBT002 - the official client's order
        required: bool = False,  # noqa: FBT001, FBT002 - as above
        **values: Any,
    ) -> None:
        """A record of these values; names without a field are ignored, as in the official client.

        Args:
            default: For a field of another record: its default.
            required_default: For a field: whether the definition has the default.
            required: For a field: whether None is refused.
            values: Values of fields; the others get their defaults.

        Raises:
            TypeError: A value is of another type than its field.
        """
        super().__init__(default, required, required_default)
        for name, field in self._fields.items():
            setattr(self, name, values[name] if name in values else _initial(field))

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field, if its type is right."""
        field = self._fields.get(name)
        object.__setattr__(self, name, value if field is None else field._checked(name, value))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._fields)

    __hash__ = None  # type: ignore[assignment] # it can be changed

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({values})"

    @classmethod
    def schema(cls) -> dict[str, Any]:  # Any: what JSON can hold
        """The Avro definition."""
        definition: dict[str, Any] = record_type(cls).definition(Names())
        return definition

    def _value_type(self) -> ValueType:
        """See `Field`."""
        return record_type(type(self))

    def _checked(self, name: str, value: Any) -> Any:
        """See `Field`; a dict becomes a record."""
        if value is None or isinstance(value, type(self)):
            return value
        if isinstance(value, dict):
            return type(self)(**value)
        raise TypeError(f"field {name!r}: {takes(type(self).__name__, value)}")

    def _fresh(self) -> Self:
        """The default of a field of this type in another record."""
        return type(self)(**self._default if isinstance(self._default, dict) else {})


def _initial(field: Field) -> Any:
    if isinstance(field, Record):
        default = field._default
        return default if isinstance(default, Record) else field._fresh()
    default = field._default
    # Copied: lists and dicts would be shared by all records.
    return default.copy() if isinstance(default, list | dict) else default


_BARE = {"_default": None, "_required": False, "_required_default": False, "_node": None}
"""The attributes that `Field.__init__` sets, for a record that is only a value."""


class _RecordClassType(RecordType):
    """The node of a `Record` class."""

    def __init__(self, owner: type[Record]) -> None:
        super().__init__(owner.__name__, owner._avro_namespace, owner)
        self._owner = owner

    def take_apart(self, value: Any) -> Sequence[Any]:
        """See `RecordType`."""
        if not isinstance(value, self._owner):
            raise takes(self._owner.__name__, value)
        return [getattr(value, each.name) for each in self.fields]

    def put_together(self, values: dict[str, Any]) -> Any:
        """See `RecordType`; skips the constructor, since the values were checked already."""
        owner = self._owner
        if owner.__init__ is not Record.__init__:
            try:
                return owner(**values)
            except TypeError as error:
                raise MisfitError(str(error)) from None
        record = owner.__new__(owner)
        attributes = record.__dict__
        attributes.update(_BARE)
        for name, field in owner._fields.items():
            attributes[name] = values[name] if name in values else _initial(field)
        return record

    def accepts(self, value: Any) -> bool:
        """See `ValueType`."""
        return isinstance(value, self._owner)


def record_type(owner: type[Record]) -> RecordType:
    """The value type of a `Record` class.

    Raises:
        InvalidConfigurationError: A field has a default of another type; the message names it.
    """
    node = _RecordClassType(owner)
    names = owner._fields
    order = sorted(names) if owner._sorted_fields else names
    node.fields = tuple(_record_field(owner, name, names[name]) for name in order)
    return node


def _record_field(owner: type[Record], name: str, field: Field) -> RecordField:
    node = field._value_type()
    default: Any = NO_DEFAULT
    if field._required_default:
        default = field._default
        if default is not None:
            try:
                default = node.to_default(field._checked(name, default))
            except (MisfitError, TypeError) as error:
                raise InvalidConfigurationError(f"{owner.__name__}.{name}: {error}") from None
    if not field._required:
        node = UnionType([NullType(), node])
    return RecordField(name, node, default, may_be_absent=True, default_stands_first=True)
