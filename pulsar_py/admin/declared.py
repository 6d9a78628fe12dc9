"""Declares the parameters and bodies of REST calls; handlers read requests with them.

A route lists its parameters and its body; the handler asks the same objects for their values:

    FORCE = Flag("force")

    delete(TENANT, self.delete, Action.DELETE_TENANT, query=(FORCE,))

    async def delete(self, request: Request) -> Response:
        is_forced = FORCE.of(request)

`of` asserts that the request's route lists the object, so a handler can't read what is not
declared, and the OpenAPI document, which `api.openapi` makes of the same lists, says all there is.

Bodies are read leniently, as `json_values` has it: first as JSON, then by their type, which is a
scalar, a list, a dictionary, a `Literal`, a struct, or one of these or None. A field of a struct
that is missing or null has its default; each has one. Unknown fields are ignored, unless the struct
forbids them.

Source: the resources' annotations in Pulsar's broker; ObjectMapperFactory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import msgspec
from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo, fields

from pulsar_py.admin.http_messages import JSON, PathValueError, Request, UnreadableBodyError
from pulsar_py.admin.json_values import (
    INT_BITS,
    LONG_BITS,
    read_bool,
    read_float,
    read_int,
    read_object,
    read_text,
    read_texts,
)

T = TypeVar("T")
Value = Callable[[Any, str], Any]  # Any: JSON, and what it is read as
Json = dict[str, Any]  # Any: JSON

Int: TypeAlias = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
"""Java's int."""
Long: TypeAlias = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""Java's long."""


class Parameter(Struct, frozen=True):
    """A parameter by its name, of the query unless a subclass says that it is of the path."""

    name: str

    place: ClassVar[str] = "query"
    schema: ClassVar[Mapping[str, object]] = {"type": "string"}

    def text(self, request: Request) -> str | None:
        """The parameter's first value as it was sent; None if it was not."""
        self._check(request)
        return request.query.get(self.name)

    def json_schema(self) -> Json:
        """The parameter's type for the OpenAPI document."""
        return dict(self.schema)

    def _check(self, request: Request) -> None:
        declared = request.declared
        assert declared is None or self in declared, f"{request.raw_path}: {self} is not declared"


class Flag(Parameter, frozen=True):
    """A boolean; anything but `true` in any case is False, as in Java."""

    default: bool = False

    def of(self, request: Request) -> bool:
        """The parameter's value, the default if it was not sent."""
        value = self.text(request)
        return self.default if value is None else value.lower() == "true"

    def json_schema(self) -> Json:
        """The parameter's type for the OpenAPI document."""
        return {"type": "boolean", "default": self.default}


class Text(Parameter, frozen=True):
    """A text; one of `choices` if there are any."""

    choices: tuple[str, ...] = ()
    default: str | None = None

    def of(self, request: Request) -> str | None:
        """The parameter's value, the default if it was not sent.

        Raises:
            PathValueError: It is none of the choices.
        """
        value = self.text(request)
        if value is None:
            return self.default
        if self.choices and value not in self.choices:
            raise PathValueError
        return value

    def json_schema(self) -> Json:
        """The parameter's type for the OpenAPI document."""
        chosen = {"enum": list(self.choices)} if self.choices else {}
        default = {} if self.default is None else {"default": self.default}
        return {"type": "string", **chosen, **default}


class Texts(Parameter, frozen=True):
    """A text that may be given several times."""

    def of(self, request: Request) -> list[str]:
        """All values that were sent."""
        self._check(request)
        return request.all_values(self.name)

    def json_schema(self) -> Json:
        """The parameter's type for the OpenAPI document."""
        return {"type": "array", "items": {"type": "string"}}


class Number(Parameter, frozen=True):
    """A signed whole number of at most `bits` bits."""

    bits: int = INT_BITS

    def of(self, request: Request) -> int | None:
        """The parameter's value, None if it was not sent.

        Raises:
            PathValueError: It is not such a number.
        """
        return _number(self.text(request), self.name, self.bits)

    def json_schema(self) -> Json:
        """The parameter's type for the OpenAPI document."""
        return _number_schema(self.bits)


class PathNumber(Parameter, frozen=True):
    """A part of the path that is a signed whole number of at most `bits` bits."""

    bits: int = INT_BITS

    place: ClassVar[str] = "path"

    def of(self, request: Request) -> int:
        """Its value.

        Raises:
            PathValueError: It is not such a number.
        """
        self._check(request)
        number = _number(request.path[self.name], self.name, self.bits)
        assert number is not None, "a part of the path is there"
        return number

    def json_schema(self) -> Json:
        """The parameter's type for the OpenAPI document."""
        return _number_schema(self.bits)


def _number(text: str | None, name: str, bits: int) -> int | None:
    try:
        return read_int(text, name, bits=bits)
    except UnreadableBodyError:
        raise PathValueError from None


def _number_schema(bits: int) -> Json:
    limit = 1 << bits - 1
    return {"type": "integer", "format": f"int{bits}", "minimum": -limit, "maximum": limit - 1}


class Body(Generic[T]):
    """A body of JSON that is read as `kind`; what it is about stands in messages as `what`.

    Of a union the scalars come first, then what is an object.
    """

    __slots__ = ("content_types", "kind", "what")

    def __init__(
        self, kind: type[T], what: str = "value", *, content_types: tuple[str, ...] = (JSON,)
    ) -> None:
        self.kind = kind
        self.what = what
        self.content_types = content_types

    def of(self, request: Request) -> T | None:
        """The body's value; None for an empty body, and for `null`.

        Raises:
            UnreadableBodyError: It is no JSON, or not of the type.
        """
        declared = request.declared
        assert declared is None or self in declared, f"{request.raw_path}: the body is not declared"
        value = request.json()
        return (
            None
            if value is None
            else cast("T", _value_of(cast("Any", self.kind))(value, self.what))
        )

    def is_null(self, request: Request) -> bool:
        """Whether the body is `null`, which is not the same as an empty one."""
        return self.of(request) is None and bool(request.body.strip())

    def required(self, request: Request, reason: str = "") -> T:
        """Its value.

        Raises:
            UnreadableBodyError: It is missing, with that reason; or not of the type.
        """
        value = self.of(request)
        if value is None:
            raise UnreadableBodyError(reason or f"a body with the {self.what} is required")
        return value


class RawBody:
    """A body of any bytes, which is read as text."""

    __slots__ = ("content_types",)

    def __init__(self, content_types: tuple[str, ...]) -> None:
        self.content_types = content_types

    def of(self, request: Request) -> str:
        """The body's text; bytes that are not UTF-8 are replaced."""
        declared = request.declared
        assert declared is None or self in declared, f"{request.raw_path}: the body is not declared"
        return request.body.decode("utf-8", "replace")


NUMBER: Final = Body(Int, "whole number")
LONG: Final = Body(Long, "whole number")
BOOLEAN: Final = Body(bool, "true or false")
TEXT: Final = Body(str, "text")
TEXTS: Final = Body(list[str], "list of texts")
PROPERTIES: Final = Body(dict[str, str], "properties")


def json_of(value: Struct) -> Json:
    """A body's struct as JSON, None included, in the order of its fields."""
    return cast("Json", msgspec.to_builtins(value))


@cache
def _value_of(kind: Any) -> Value:  # Any: a type or a form of one
    """The function that reads JSON other than null as a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _SIMPLE:
        reader = _SIMPLE[kind]
    elif origin is Annotated:
        reader = partial(read_int, bits=LONG_BITS if kind == Long else INT_BITS)
    elif origin is Literal:
        reader = _one_of(arguments)
    elif origin in {Union, UnionType}:
        reader = _any_of([_value_of(each) for each in arguments if each is not NoneType])
    elif origin is list:
        reader = _list_of(_value_of(arguments[0]))
    elif origin is dict:
        reader = _dict_of(_value_of(arguments[1]), "" if arguments[1] is str else None)
    elif issubclass(kind, Enum):
        reader = _one_of(tuple(member.value for member in kind))
    else:
        assert issubclass(kind, Struct), f"no body is read as {kind}"
        reader = _struct_of(kind)
    return reader


_SIMPLE: Final[Mapping[Any, Value]] = {
    int: read_int,
    float: read_float,
    bool: read_bool,
    str: read_text,
    list[str]: read_texts,
    Any: lambda value, _: value,
}


def _one_of(choices: tuple[str, ...]) -> Value:
    def read(value: Any, what: str) -> str | None:  # Any: JSON
        text = read_text(value, what)
        if text not in choices:
            raise UnreadableBodyError(f"{what}: {text!r:.100} is not one of {', '.join(choices)}")
        return text

    return read


def _any_of(readers: list[Value]) -> Value:
    if len(readers) == 1:
        return readers[0]

    def read(value: Any, what: str) -> Any:  # Any: JSON
        wrong: list[UnreadableBodyError] = []
        for reader in readers:
            try:
                return reader(value, what)
            except UnreadableBodyError as error:
                wrong.append(error)
        raise wrong[-1 if isinstance(value, dict) else 0]

    return read


def _list_of(item: Value) -> Value:
    def read(value: Any, what: str) -> list[Any]:  # Any: JSON
        if not isinstance(value, list):
            raise UnreadableBodyError(f"{what}: expected a list")
        return [None if each is None else item(each, what) for each in value]

    return read


def _dict_of(item: Value, empty: str | None) -> Value:
    def read(value: Any, what: str) -> Json:  # Any: JSON
        found = read_object(value, what) or {}
        return {
            name: empty if each is None else item(each, f"{what}.{name}")
            for name, each in found.items()
        }

    return read


def _struct_of(kind: type[Struct]) -> Value:
    readers = [(each, _value_of(each.type)) for each in fields(kind)]
    names = kind.__struct_encode_fields__
    is_strict = kind.__struct_config__.forbid_unknown_fields

    def read(value: Any, what: str) -> Struct:  # Any: JSON
        found = read_object(value, what) or {}
        if is_strict and (unknown := sorted(found.keys() - set(names))):
            raise UnreadableBodyError(f"{what}: {unknown[0]!r:.100} is not one of {names}")
        return kind(
            **{
                each.name: _default_of(each)
                if (item := found.get(each.encode_name)) is None
                else reader(item, each.encode_name)
                for each, reader in readers
            }
        )

    return read


def _default_of(field: FieldInfo) -> Any:  # Any: of any type
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    assert field.default is not NODEFAULT, f"{field.name}: a field of a body has a default"
    return field.default
