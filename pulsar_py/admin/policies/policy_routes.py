"""Makes the routes that read, set and remove one policy of namespaces or topics (pure)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

from msgspec import Struct

from pulsar_py.admin.http_messages import Request, Response
from pulsar_py.admin.policies.policy_readers import Reader
from pulsar_py.admin.router import Route, Taken, delete, get, post, put
from pulsar_py.server.security.actions import Action

Handler = Callable[[Request], Awaitable[Response]]


class RoutedPolicy(Protocol):
    """The part of a policy's entry in its table that its routes depend on."""

    @property
    def set_method(self) -> str:
        """`POST` or `PUT`."""

    @property
    def read(self) -> Reader:
        """Reads its value out of a request."""

    @property
    def can_be_deleted(self) -> bool:
        """Whether DELETE removes it."""


class Handlers(Struct, frozen=True):
    """The functions that serve the three calls."""

    show: Handler
    store: Handler
    remove: Handler


class Rights(Struct, frozen=True):
    """The actions of the three calls, for which rights are checked."""

    show: Action
    store: Action
    remove: Action


def policy_routes(
    template: str,
    policy: RoutedPolicy,
    handlers: Handlers,
    rights: Rights,
    *,
    shown: tuple[Taken, ...] = (),
    changed: tuple[Taken, ...] = (),
) -> Iterator[Route]:
    """The routes; `shown` are parameters of GET, `changed` those of the others."""
    answer = policy.read.kind
    yield get(template, handlers.show, rights.show, *shown, answer=answer, may_be_empty=True)
    verb = put if policy.set_method == "PUT" else post
    yield verb(template, handlers.store, rights.store, *policy.read.takes, *changed)
    if policy.can_be_deleted:
        yield delete(template, handlers.remove, rights.remove, *changed)
