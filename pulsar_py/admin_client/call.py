"""`Call`: one call of the REST API as a value, for blocking and asyncio clients alike (pure).

The modules `tenants`, `clusters`, `brokers`, `namespaces`, `topics`, `subscriptions`, `schemas`,
`transactions` and `policies` declare the calls: a function for each, whose arguments are the
parameters and whose `Call` has method, path, body and the type of the answer. `AdminClient.call`
and `AsyncAdminClient.call` send them; neither knows any of them.

    admin.call(topics.last_message_id("my-topic"))         # MessageIdData
    await admin.call(policies.RETENTION.get(namespace_place("public/default")))

Paths are encoded here: names of topics, subscriptions and roles may hold anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, NoReturn, Self, TypeVar, dataclass_transform
from urllib.parse import quote, urlencode

A = TypeVar("A")
R = TypeVar("R", bound="JsonRecord")

NO_BODY: Final = object()
"""The body of calls that send none; None is sent as JSON's `null`."""

Json = Any  # Any: JSON of many shapes
Query = bool | int | str | None


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful answer, as it came."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    json: Callable[[], Json]
    """Parses the body; None for an empty one. Raises RemoteProtocolError if it is no JSON."""


@dataclass(frozen=True, slots=True)
class Call(Generic[A]):
    """One call: the request, and the function that reads its answer."""

    method: str
    path: str
    """With its query, from `/admin` on."""
    answer: Callable[[Reply], A]
    body: object = NO_BODY
    """Sent as JSON; `bytes` as they are."""
    destroys: str = ""
    """What is lost by it, in words; empty if nothing is."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
class JsonRecord:
    """A value whose fields are those of one of Pulsar's JSON objects.

    A field's name is Pulsar's with underscores; where more differs, `NAMES` has Pulsar's. A field
    that is None is left out, and one that the answer lacks keeps its default.

    A subclass declares its fields like a frozen dataclass with keywords alone, and type checkers
    take it for one. It is none: the code that a dataclass makes for each class takes a millisecond
    of every command's start, and there are thirty.
    """

    NAMES: ClassVar[Mapping[str, str]] = {}
    FIELDS: ClassVar[tuple[str, ...]] = ()
    """The names of the fields, in the order of their declaration."""

    def __init_subclass__(cls) -> None:
        """Find the fields; annotations are texts in modules that postpone them, as ours do."""
        cls.FIELDS = tuple(
            name
            for name, kind in cls.__annotations__.items()
            if not str(kind).startswith("ClassVar")
        )

    def __init__(self, **values: Json) -> None:
        """Keep the values; a field that is not given has its default.

        Raises:
            TypeError: A field without a default is missing, or there is none of that name.
        """
        unknown = [name for name in values if name not in self.FIELDS]
        missing = [name for name in self.FIELDS if name not in values and not hasattr(self, name)]
        if unknown or missing:
            what = f"has no field {unknown[0]!r}" if unknown else f"needs {missing[0]!r}"
            raise TypeError(f"{type(self).__name__} {what}")
        vars(self).update(values)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse: the value stays as it is."""
        raise AttributeError(f"{type(self).__name__} can't be changed, so {name!r} can't be set")

    def __delattr__(self, name: str) -> NoReturn:
        """Refuse: the value stays as it is."""
        raise AttributeError(f"{type(self).__name__} can't be changed, so {name!r} stays")

    def __eq__(self, other: object) -> bool:
        """Whether the other is of the same class and has the same values."""
        if not isinstance(other, type(self)) or type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        """Of the values."""
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        """The class and all fields."""
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.FIELDS)
        return f"{type(self).__name__}({shown})"

    def _values(self) -> tuple[Json, ...]:
        return tuple(getattr(self, name) for name in self.FIELDS)

    @classmethod
    def of(cls, json: Mapping[str, Json]) -> Self:
        """The value of a JSON object; what it has more is left out."""
        names = {field: cls.json_name(field) for field in cls.FIELDS}
        return cls(**{field: json[name] for field, name in names.items() if name in json})

    def to_json(self) -> dict[str, Json]:
        """The JSON object."""
        values = {self.json_name(field): getattr(self, field) for field in self.FIELDS}
        return {
            name: value.to_json() if isinstance(value, JsonRecord) else value
            for name, value in values.items()
            if value is not None
        }

    @classmethod
    def json_name(cls, field: str) -> str:
        """Pulsar's name of a field."""
        first, *rest = field.split("_")
        return cls.NAMES.get(field) or first + "".join(part.capitalize() for part in rest)


def nothing(_: Reply) -> None:
    """Return None: the decoder of calls without an answer."""


def as_json(reply: Reply) -> Json:
    """The answer as it is; None if there is none."""
    return reply.json()


def as_text(reply: Reply) -> str:
    """An answer that is no JSON."""
    return reply.body.decode(errors="replace")


def as_names(reply: Reply) -> list[str]:
    """A list of names, in the broker's order."""
    return [str(each) for each in reply.json() or ()]


def as_record(kind: type[R]) -> Callable[[Reply], R]:
    """An object of which `kind` has the fields."""
    return lambda reply: kind.of(reply.json())


def as_records(kind: type[R]) -> Callable[[Reply], dict[str, R]]:
    """Objects by name."""
    return lambda reply: {name: kind.of(each) for name, each in (reply.json() or {}).items()}


def call(
    method: str,
    path: str,
    answer: Callable[[Reply], A],
    body: object = NO_BODY,
    *,
    query: Mapping[str, Query] | None = None,
    destroys: str = "",
) -> Call[A]:
    """A call whose path is given encoded, below `/admin/v2` unless it begins with `/`.

    Parameters of the query that are None are left out.
    """
    target = path if path.startswith("/") else f"/admin/v2/{path}"
    given = {name: _query_text(value) for name, value in (query or {}).items() if value is not None}
    if given:
        target += f"?{urlencode(given)}"
    if isinstance(body, JsonRecord):
        body = body.to_json()
    return Call(method, target, answer, body, destroys)


def get(path: str, answer: Callable[[Reply], A], **query: Query) -> Call[A]:
    """A call that only asks."""
    return call("GET", path, answer, query=query)


def put(path: str, body: object = NO_BODY, **query: Query) -> Call[None]:
    """A PUT without an answer."""
    return call("PUT", path, nothing, body, query=query)


def post(path: str, body: object = NO_BODY, **query: Query) -> Call[None]:
    """A POST without an answer."""
    return call("POST", path, nothing, body, query=query)


def delete(path: str, *, destroys: str = "", **query: Query) -> Call[None]:
    """A DELETE without an answer."""
    return call("DELETE", path, nothing, query=query, destroys=destroys)


def encoded(body: object) -> bytes:
    """The bytes of a call's body; none for `NO_BODY`."""
    if body is NO_BODY:
        return b""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def seg(name: str) -> str:
    """One segment of a path, encoded."""
    return quote(name, safe="")


def namespace_path(namespace: str) -> str:
    """`t/n`, encoded; a bundle or a broker may follow.

    Raises:
        InvalidNamespaceNameError: It is no name of a namespace.
    """
    from pulsar_py.common.names import NamespaceName  # noqa: PLC0415 - 60 ms, for `--help`

    name = NamespaceName.parse(namespace)
    return f"{seg(name.tenant)}/{seg(name.local_name)}"


def topic_path(topic: str) -> str:
    """`persistent/t/n/name`, encoded; a short form of a topic's name is completed.

    Raises:
        InvalidTopicNameError: It is no name of a topic.
    """
    from pulsar_py.common.names import TopicName  # noqa: PLC0415 - 60 ms, for `--help`

    name = TopicName.parse(topic)
    return f"{name.domain}/{namespace_path(str(name.namespace_name))}/{seg(name.local_name)}"


def full_topic(topic: str) -> str:
    """`persistent://t/n/name`."""
    from pulsar_py.common.names import TopicName  # noqa: PLC0415 - 60 ms, for `--help`

    return str(TopicName.parse(topic))


def _query_text(value: Query) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
