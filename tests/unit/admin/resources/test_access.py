"""access: what of a path needs authentication, and what a call is about."""

from __future__ import annotations

import pytest

from pulsar_py.admin.http_messages import Request
from pulsar_py.admin.resources.access import Access, target_of
from pulsar_py.common.errors import AuthenticationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.server.security.authorization import Unrestricted
from pulsar_py.server.security.peer import Peer
from pulsar_py.server.security.tls_provider import TlsProvider


def access(*, guards_metrics: bool = False) -> Access:
    store = MemoryMetadataStore(SystemClock())
    return Access(
        Authenticators({"tls": TlsProvider()}),
        Unrestricted(),
        Resources(store, store),
        guards_metrics=guards_metrics,
    )


@pytest.mark.parametrize("path", ["/admin/v2/nowhere", "/lookup/v2/topic/x", "/topics/x"])
async def test_whoever_is_nobody_learns_nothing(path: str) -> None:
    with pytest.raises(AuthenticationError):
        await access().caller_of(path, {}, Peer())


async def test_figures_are_open_unless_they_are_guarded() -> None:
    assert await access().caller_of("/metrics", {}, Peer()) is None
    with pytest.raises(AuthenticationError):
        await access(guards_metrics=True).caller_of("/metrics", {}, Peer())


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
    ],
)
def test_what_a_call_is_about(path: dict[str, str], text: str) -> None:
    assert str(target_of(Request(method="GET", raw_path="/", path=path))) == text
