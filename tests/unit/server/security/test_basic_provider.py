"""basic_provider: files of users, and passwords that are right for some seconds."""

from __future__ import annotations

import base64

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.server.security.authentication import Authenticated, HttpCredentials
from pulsar_py.server.security.basic_provider import BasicProvider, parse_users
from pulsar_py.server.security.peer import Peer

APR1 = "$apr1$Wm1x2y3z$zRgAqw8M6CP9jSyFh65sz/"
SOURCE = "data:;base64," + base64.b64encode(f"me:{APR1}".encode()).decode()


def test_users_and_their_hashes() -> None:
    text = f"# people\nme:{APR1}\n\nyou:abNANd1rDfiNc\nbc:$2y$04$x\n"
    assert parse_users(text.encode()) == {"me": APR1, "you": "abNANd1rDfiNc", "bc": "$2y$04$x"}


@pytest.mark.parametrize("line", ["me", "me:", ":abNANd1rDfiNc", "me:secret", "me:{SHA}x"])
def test_a_line_without_a_hash_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"^line 1: "):
        parse_users(line.encode())


async def test_users_prove_themselves() -> None:
    provider = BasicProvider(SOURCE, SystemClock())
    assert await provider.authenticate(b"me:secret") == Authenticated("me")
    assert await provider.authenticate(b"me:secret") == Authenticated("me")
    for wrong in (b"me:wrong", b"you:secret", b"me", b"me:" + bytes(2000), b"me:\0"):
        with pytest.raises(AuthenticationError):
            await provider.authenticate(wrong)


async def test_headers_that_are_none_of_ours() -> None:
    provider = BasicProvider(SOURCE, SystemClock())
    assert await provider.authenticate_http(HttpCredentials({}, Peer())) is None
    bearer = HttpCredentials({"authorization": "Bearer x"}, Peer())
    assert await provider.authenticate_http(bearer) is None
    with pytest.raises(AuthenticationError, match="not base64"):
        await provider.authenticate_http(HttpCredentials({"authorization": "Basic %"}, Peer()))
