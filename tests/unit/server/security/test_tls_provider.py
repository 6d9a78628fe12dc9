"""tls_provider: the role in a certificate."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.authentication import (
    Authenticated,
    ClientCredentials,
    ExpiredCredentialsError,
    HttpCredentials,
)
from pulsar_py.server.security.peer import Peer, PeerCertificate
from pulsar_py.server.security.tls_provider import TlsProvider
from pulsar_py.testing.clock import VirtualClock

NAMED = Peer("/h:1", PeerCertificate(b"der", ((("commonName", "me"),),)))
UNVERIFIED = Peer("/h:1", PeerCertificate(b"der"))


async def test_the_common_name_is_the_role() -> None:
    state = TlsProvider(VirtualClock()).new_state(ClientCredentials(method_name="tls", peer=NAMED))
    assert await state.authenticate(b"whatever") == Authenticated("me")
    assert await TlsProvider(VirtualClock()).authenticate_http(
        HttpCredentials({}, NAMED)
    ) == Authenticated("me")


async def test_a_certificate_proves_nothing_once_it_has_ended() -> None:
    clock = VirtualClock()
    ends_at = clock.wall_time_millis() + 1000
    assert NAMED.certificate is not None
    peer = Peer("/h:1", PeerCertificate(b"der", NAMED.certificate.subject, ends_at))
    provider = TlsProvider(clock)
    state = provider.new_state(ClientCredentials(method_name="tls", peer=peer))
    assert await state.authenticate(b"") == Authenticated("me", ends_at)
    clock.jump(1)
    with pytest.raises(ExpiredCredentialsError):
        await state.authenticate(b"")
    with pytest.raises(ExpiredCredentialsError):
        await provider.authenticate_http(HttpCredentials({}, peer))


@pytest.mark.parametrize("peer", [Peer(), UNVERIFIED])
async def test_without_a_verified_name_there_is_no_role(peer: Peer) -> None:
    state = TlsProvider(VirtualClock()).new_state(ClientCredentials(method_name="tls", peer=peer))
    with pytest.raises(AuthenticationError, match="no certificate"):
        await state.authenticate(b"")
    assert await TlsProvider(VirtualClock()).authenticate_http(HttpCredentials({}, peer)) is None
