"""tls_provider: the role in a certificate."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.authentication import (
    Authenticated,
    ClientCredentials,
    HttpCredentials,
)
from pulsar_py.server.security.peer import Peer, PeerCertificate
from pulsar_py.server.security.tls_provider import TlsProvider

NAMED = Peer("/h:1", PeerCertificate(b"der", ((("commonName", "me"),),)))
UNVERIFIED = Peer("/h:1", PeerCertificate(b"der"))


async def test_the_common_name_is_the_role() -> None:
    state = TlsProvider().new_state(ClientCredentials(method_name="tls", peer=NAMED))
    assert await state.authenticate(b"whatever") == Authenticated("me")
    assert await TlsProvider().authenticate_http(HttpCredentials({}, NAMED)) == Authenticated("me")


@pytest.mark.parametrize("peer", [Peer(), UNVERIFIED])
async def test_without_a_verified_name_there_is_no_role(peer: Peer) -> None:
    state = TlsProvider().new_state(ClientCredentials(method_name="tls", peer=peer))
    with pytest.raises(AuthenticationError, match="no certificate"):
        await state.authenticate(b"")
    assert await TlsProvider().authenticate_http(HttpCredentials({}, peer)) is None
