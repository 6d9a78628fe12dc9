"""access: what of a path needs authentication, and what a call is about."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from pulsar_py.admin.http_messages import HttpError, Request, Response
from pulsar_py.admin.resources.access import Access, target_of
from pulsar_py.admin.router import get
from pulsar_py.common.errors import AuthenticationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.audit import Audit
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.server.security.authorization import Unrestricted
from pulsar_py.server.security.peer import Peer
from pulsar_py.server.security.tls_provider import TlsProvider


def access(*, guards_metrics: bool = False) -> Access:
    store = MemoryMetadataStore(SystemClock())
    return Access(
        Authenticators({"tls": TlsProvider(SystemClock())}),
        Unrestricted(),
        Resources(store, store),
        Audit(SystemClock()),
        guards_metrics=guards_metrics,
    )


@pytest.mark.parametrize(
    "path",
    [
        "/admin/v2/nowhere",
        "/lookup/v2/topic/x",
        "/topics/x",
        "/%61dmin/v2/tenants",
        "/admi%6e/v2/tenants",
        "/%6Cookup/v2/topic/x",
        "admin/v2/tenants",
        "/%zzadmin",
    ],
)
async def test_whoever_is_nobody_learns_nothing(path: str) -> None:
    with pytest.raises(AuthenticationError):
        await access().caller_of(path, {}, Peer())


async def test_figures_are_open_unless_they_are_guarded() -> None:
    assert await access().caller_of("/metrics", {}, Peer()) is None
    for path in ("/metrics", "/%6detrics"):
        with pytest.raises(AuthenticationError):
            await access(guards_metrics=True).caller_of(path, {}, Peer())


async def test_a_route_with_an_action_is_for_nobody_who_did_not_prove_a_role() -> None:
    async def handler(_: Request) -> Response:
        raise AssertionError("not called")

    route = get("/anywhere", handler, Action.LIST_TENANTS)
    with pytest.raises(HttpError, match="Need to authenticate") as raised:
        await access().check(route, Request(method="GET", raw_path="/anywhere", path={}), None)
    assert raised.value.status == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ({}, "the cluster"),
        ({"tenant": "t"}, "t"),
        ({"tenant": "t", "namespace": "n"}, "t/n"),
        (
            {
                "domain": "persistent",
                "tenant": "t",
                "namespace": "n",
                "topic": "a",
                "subscription": "s",
            },
            "persistent://t/n/a subscription s",
        ),
        ({"tenant": "t", "namespace": "n", "topic": "a"}, "persistent://t/n/a"),
    ],
)
def test_what_a_call_is_about(path: dict[str, str], text: str) -> None:
    assert str(target_of(Request(method="GET", raw_path="/", path=path))) == text
