"""`Reader`: reads a policy's value out of a request, and declares the body or parameters.

    @reading(RETENTION)
    def retention(request: Request) -> Any:
        given = RETENTION.of(request)

The tables of policies name readers, and the routes of a policy are declared with what its reader
takes: the body, or parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from pulsar_py.admin.declared import Body, Parameter, json_of
from pulsar_py.admin.http_messages import Request


class Reader(Struct, frozen=True):
    """Reads the JSON to store; None unsets the policy.

    `kind` is the type of that JSON, which is that of the body unless there is none.
    """

    read: Callable[[Request], Any]  # Any: JSON of many shapes
    takes: tuple[Body[Any] | Parameter, ...]
    kind: Any  # Any: a type

    def __call__(self, request: Request) -> Any:  # Any: JSON of many shapes
        """The value in the request."""
        return self.read(request)


def reading(
    body: Body[Any] | None,
    *parameters: Parameter,
    gives: Any = None,  # Any: a type
) -> Callable[[Callable[[Request], Any]], Reader]:
    """Make a function a `Reader` that takes a body or parameters; `gives` is its type without."""
    takes: tuple[Body[Any] | Parameter, ...] = parameters if body is None else (body, *parameters)
    kind = gives if body is None else body.kind
    return lambda read: Reader(read, takes, kind)


def body_json(request: Request, body: Body[Any]) -> Any:  # Any: JSON
    """The body, which is a struct, as the JSON to store; None without one."""
    value = body.of(request)
    return None if value is None else json_of(value)
