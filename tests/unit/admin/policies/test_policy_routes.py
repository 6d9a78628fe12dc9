"""policy_routes: which calls a policy has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pulsar_py.admin.http_messages import JSON, NO_CONTENT, Request, Response
from pulsar_py.admin.policies import policy_values as values
from pulsar_py.admin.policies.policy_routes import Handlers, Rights, policy_routes
from pulsar_py.server.security.actions import Action

RIGHTS = Rights(Action.READ_POLICY, Action.WRITE_POLICY_OF_BROKERS, Action.WRITE_POLICY)


@dataclass(frozen=True)
class Some:
    set_method: str
    read: Callable[[Request], Any]
    can_be_deleted: bool


async def serve(request: Request) -> Response:
    del request
    return NO_CONTENT


def test_each_call_has_its_method_and_right() -> None:
    policy = Some("PUT", values.boolean, can_be_deleted=True)
    routes = list(policy_routes("/p", policy, Handlers(serve, serve, serve), RIGHTS))
    assert [each.method for each in routes] == ["GET", "PUT", "DELETE"]
    assert [each.needs for each in routes] == [RIGHTS.show, RIGHTS.store, RIGHTS.remove]
    assert routes[1].consumes == (JSON,)


def test_one_that_stays_and_needs_no_body() -> None:
    policy = Some("POST", values.true, can_be_deleted=False)
    routes = list(policy_routes("/p", policy, Handlers(serve, serve, serve), RIGHTS))
    assert [each.method for each in routes] == ["GET", "POST"]
    assert routes[1].consumes == ()
