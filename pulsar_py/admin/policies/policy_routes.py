"""The routes of one policy, of a namespace or of a topic: read, set, remove (pure)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

from msgspec import Struct

from pulsar_py.admin.http_messages import JSON, Request, Response
from pulsar_py.admin.policies import policy_values as values
from pulsar_py.admin.router import Route, delete, get, post, put
from pulsar_py.server.security.actions import Action

Handler = Callable[[Request], Awaitable[Response]]


class RoutedPolicy(Protocol):
    """The part of a policy's entry in its table that its routes depend on."""

    @property
    def set_method(self) -> str:
        """`POST` or `PUT`."""

    @property
    def read(self) -> Callable[[Request], Any]:
        """Reads its value out of a request; Any: JSON of many shapes."""

    @property
    def can_be_deleted(self) -> bool:
        """Whether DELETE removes it."""


class Handlers(Struct, frozen=True):
    """What serves the three calls."""

    show: Handler
    store: Handler
    remove: Handler


class Rights(Struct, frozen=True):
    """What the three calls need a right for."""

    show: Action
    store: Action
    remove: Action


def policy_routes(
    template: str, policy: RoutedPolicy, handlers: Handlers, rights: Rights
) -> Iterator[Route]:
    """The routes; one whose call is its value takes any body."""
    yield get(template, handlers.show, rights.show)
    verb = put if policy.set_method == "PUT" else post
    consumes = () if policy.read is values.true else (JSON,)
    yield verb(template, handlers.store, rights.store, consumes=consumes)
    if policy.can_be_deleted:
        yield delete(template, handlers.remove, rights.remove)
