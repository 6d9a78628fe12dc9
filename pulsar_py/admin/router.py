"""Finds the route of a method and a raw path (pure).

The raw path is split at `/` first and each segment decoded afterwards, so that `%2F` in a topic's
name stays inside its segment; a literal `+` is a space. A template is a path whose segments are
literals, `{name}` for a parameter, or `{name:a|b}` for one of a few words; a last `{name...}` is
any number of segments, of which the handler learns nothing:

    /admin/v2/{domain:persistent|non-persistent}/{tenant}/{namespace}/{topic}/stats

If several templates match, the one whose literals come first wins; if it lacks the method, the
next one that has it (`DELETE .../encryptionRequired` means a bundle of that name, as in Pulsar).
One trailing slash is accepted, an empty segment elsewhere is not.

Routes are made only in the `routes` of resources. Each names its action, so that rights can be
checked in one place.

Source: the matching of JAX-RS, as Apache Pulsar's server behaves.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from itertools import product
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_plus

from msgspec import Struct, field

from pulsar_py.admin.declared import Body, Parameter, RawBody
from pulsar_py.admin.http_messages import JSON, Request, Response
from pulsar_py.server.security.actions import Need, checked_need

Handler = Callable[[Request], Awaitable[Response]]
Taken: TypeAlias = Parameter | Body[Any] | RawBody
"""What a handler reads beside names in the path."""

_BAD_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})|%00")
_REST = re.compile(r"\{\w+\.\.\.\}")
_PARAMETER = re.compile(r"\{(\w+)(?::([^}]+))?\}")


class BadPathError(Exception):
    """A path can't be decoded: a `%` is not followed by two hexadecimal digits, or says NUL.

    Source: Jetty's HttpURI, which refuses NUL.
    """


class Route(Struct, frozen=True):
    """One method of one template.

    `needs` is its action, or a text with the reason why it needs no right. `takes` are the
    parameters and the body that its handler reads, see `declared`; a route without a body ignores
    what is sent. `produces` is the content type of its answers, compared with `Accept`.

    `answer` is the type of a successful answer's JSON; a text names one in `api.answers`, which is
    imported for the OpenAPI document alone. Without a type the answer has no body, or one that is
    no JSON. `status` is that of success; with `may_be_empty` the body is left out where there is no
    value (200 or 204). `errors` are further statuses than those that are common to its method.

    Raises:
        ValueError: The reason is empty.
    """

    method: str
    template: str
    handler: Handler
    needs: Need
    takes: tuple[Taken, ...] = ()
    answer: Any = None  # Any: a type, or its name
    status: int = HTTPStatus.OK
    may_be_empty: bool = False
    errors: tuple[int, ...] = ()
    produces: str = JSON

    def __post_init__(self) -> None:
        checked_need(self.needs, f"{self.method} {self.template}")
        assert len(self._bodies) <= 1, f"{self.method} {self.template}: two bodies"

    @property
    def _bodies(self) -> list[Body[Any] | RawBody]:
        return [each for each in self.takes if isinstance(each, Body | RawBody)]

    @property
    def body(self) -> Body[Any] | RawBody | None:
        """The body that its handler reads."""
        return next(iter(self._bodies), None)

    @property
    def parameters(self) -> list[Parameter]:
        """The parameters that its handler reads, of query and path."""
        return [each for each in self.takes if isinstance(each, Parameter)]

    @property
    def consumes(self) -> tuple[str, ...]:
        """The content types of bodies that it reads."""
        return () if self.body is None else self.body.content_types


def get(
    template: str,
    handler: Handler,
    needs: Need,
    *takes: Taken,
    answer: Any = None,  # Any: a type, or its name
    status: int = HTTPStatus.OK,
    may_be_empty: bool = False,
    errors: tuple[int, ...] = (),
    produces: str = JSON,
) -> Route:
    """A route for GET (and so HEAD); `answer` is the type of its JSON."""
    return Route(
        "GET",
        template,
        handler,
        needs,
        takes,
        answer,
        status,
        may_be_empty=may_be_empty,
        errors=errors,
        produces=produces,
    )


class _Changing(Struct, frozen=True):
    """Makes routes of one method, which change something."""

    method: str

    def __call__(
        self,
        template: str,
        handler: Handler,
        needs: Need,
        *takes: Taken,
        answer: Any = None,  # Any: a type, or its name
        status: int | None = None,
        errors: tuple[int, ...] = (),
    ) -> Route:
        """A route that reads `takes`; without an answer its status is 204."""
        status = status or (HTTPStatus.NO_CONTENT if answer is None else HTTPStatus.OK)
        return Route(self.method, template, handler, needs, takes, answer, status, errors=errors)


put: Final = _Changing("PUT")
post: Final = _Changing("POST")
delete: Final = _Changing("DELETE")


class _Leaf(Struct):
    """The end of a path: routes by method, each with the names of its parameters."""

    routes: dict[str, tuple[Route, tuple[tuple[str, int], ...]]] = field(default_factory=dict)


class _Node(Struct):
    literals: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    leaf: _Leaf | None = None
    rest: _Leaf | None = None


class Match(Struct, frozen=True):
    """The route found and its parameters."""

    route: Route
    parameters: Mapping[str, str]


class MethodNotAllowed(Struct, frozen=True):
    """The path exists, but not with this method; `allowed` has its methods (for OPTIONS, too)."""

    allowed: tuple[str, ...]


NOT_FOUND: Final = None


class Router:
    """All routes of a server; immutable once made."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Build the tree.

        Raises:
            ValueError: Two routes have the same method and path.
        """
        self._root = _Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        segments = route.template.strip("/").split("/")
        names = tuple(
            (match[1], index)
            for index, segment in enumerate(segments)
            if (match := _PARAMETER.fullmatch(segment))
        )
        has_rest = bool(_REST.fullmatch(segments[-1]))
        if has_rest:
            del segments[-1]
        for choice in product(*map(_alternatives, segments)):
            node = self._root
            for segment in choice:
                node = _child(node, segment)
            leaf = node.rest if has_rest else node.leaf
            if leaf is None:
                leaf = _Leaf()
                if has_rest:
                    node.rest = leaf
                else:
                    node.leaf = leaf
            if route.method in leaf.routes:
                raise ValueError(f"two routes for {route.method} {route.template}")
            leaf.routes[route.method] = (route, names)

    def find(self, method: str, raw_path: str) -> Match | MethodNotAllowed | None:
        """The route of a method and an undecoded path without query; None for an unknown path.

        Raises:
            BadPathError: A `%` is not followed by two hexadecimal digits, or says NUL.
        """
        segments = _segments(raw_path)
        leaves = list(_leaves(self._root, segments, 0))
        for leaf in leaves:
            found = leaf.routes.get("GET" if method == "HEAD" else method)
            if found is not None:
                route, names = found
                return Match(route, {name: segments[index] for name, index in names})
        if not leaves:
            return NOT_FOUND
        return MethodNotAllowed(tuple(sorted({*leaves[0].routes, "OPTIONS"})))


def _alternatives(segment: str) -> list[str | None]:
    """The literals that a segment of a template matches; None stands for any text."""
    match = _PARAMETER.fullmatch(segment)
    if match is None:
        return [segment]
    return [*match[2].split("|")] if match[2] else [None]


def _child(node: _Node, segment: str | None) -> _Node:
    if segment is not None:
        return node.literals.setdefault(segment, _Node())
    if node.parameter is None:
        node.parameter = _Node()
    return node.parameter


def first_segment(raw_path: str) -> str:
    """The first segment of a path as routes are matched with it: decoded, whatever its writing.

    Raises:
        BadPathError: A `%` in it is not followed by two hexadecimal digits, or says NUL.
    """
    return _segments(raw_path.removeprefix("/").partition("/")[0])[0]


def _segments(raw_path: str) -> list[str]:
    if _BAD_PERCENT.search(raw_path):
        raise BadPathError(raw_path)
    parts = raw_path.removeprefix("/").removesuffix("/").split("/")
    return [unquote_plus(part, errors="replace") for part in parts]


def _leaves(node: _Node, segments: list[str], index: int) -> Iterator[_Leaf]:
    """All matching leaves, those with literals first."""
    if index == len(segments):
        if node.leaf is not None:
            yield node.leaf
        return
    segment = segments[index]
    if (literal := node.literals.get(segment)) is not None:
        yield from _leaves(literal, segments, index + 1)
    if node.parameter is not None and segment:
        yield from _leaves(node.parameter, segments, index + 1)
    if node.rest is not None:
        yield node.rest
