"""vouched_connections: whose connection ends when authorities change."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_py.common.network.tls import TlsOptions, client_ssl_context
from pulsar_py.server.security.tls import TlsSettings, server_context
from pulsar_py.server.security.vouched_connections import (
    Authorities,
    VouchedConnections,
    authorities_in,
)
from tests.certificates import Authority


@pytest.fixture
def place(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def authorities(*of: Authority) -> Authorities:
    """What a store with these has."""
    return authorities_in(
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        b"".join(Path(each.path).read_bytes() for each in of),
    )


def shaken(
    ours: Authority, pair: tuple[str, str] | None, session: ssl.SSLSession | None = None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends after a handshake, the server's first."""
    certificate, key = ours.issue("broker")
    server = server_context(
        TlsSettings(certificate_path=certificate, key_path=key, trust_path=ours.path)
    )
    client = client_ssl_context(TlsOptions(tls_trust_certs_file_path=ours.path), pair)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = client.wrap_bio(down, up, server_hostname="localhost", session=session)
    mine = server.wrap_bio(up, down, server_side=True)
    for side in (theirs, mine, theirs):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    mine.do_handshake()
    return mine, theirs


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    far.setblocking(False)
    with near, far:
        yield near, far


def is_ended(far: socket.socket) -> bool:
    try:
        return far.recv(1) == b""
    except BlockingIOError:
        return False


def test_who_is_vouched_for_stays(
    place: Authority, tmp_path: Path, sockets: tuple[socket.socket, socket.socket]
) -> None:
    near, far = sockets
    other = Authority(tmp_path, "other")
    vouched = VouchedConnections(authorities(place, other))
    vouched.add(near, shaken(place, place.issue("me"))[0], is_current=True)
    vouched.trust(authorities(place))
    assert not is_ended(far)
    vouched.trust(authorities(other))
    assert is_ended(far)


def test_an_authority_issued_anew_is_the_same(
    place: Authority, sockets: tuple[socket.socket, socket.socket]
) -> None:
    near, far = sockets
    vouched = VouchedConnections(authorities(place))
    vouched.add(near, shaken(place, place.issue("me"))[0], is_current=True)
    before = Path(place.path).read_bytes()
    place.issue_itself()
    assert Path(place.path).read_bytes() != before
    vouched.trust(authorities(place))
    assert not is_ended(far)
    vouched.trust(frozenset())
    assert is_ended(far)


def test_who_shows_no_certificate_stays(
    place: Authority, sockets: tuple[socket.socket, socket.socket]
) -> None:
    near, far = sockets
    vouched = VouchedConnections(authorities(place))
    vouched.add(near, shaken(place, None)[0], is_current=True)
    vouched.trust(frozenset())
    assert not is_ended(far)


def test_a_handshake_by_the_former_trust_is_looked_at_at_once(
    place: Authority, tmp_path: Path, sockets: tuple[socket.socket, socket.socket]
) -> None:
    near, far = sockets
    other = Authority(tmp_path, "other")
    tls = shaken(place, place.issue("me"))[0]
    VouchedConnections(authorities(place)).add(near, tls, is_current=False)
    assert not is_ended(far)
    VouchedConnections(authorities(other)).add(near, tls, is_current=False)
    assert is_ended(far)


def test_who_is_not_known_to_be_vouched_for_ends_when_an_authority_leaves(
    place: Authority,
    tmp_path: Path,
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    class Resumed:
        """OpenSSL knows the certificate of a resumed session, not its chain."""

        def getpeercert(self, *, binary_form: bool) -> bytes:
            assert binary_form
            return b"der"

        def get_verified_chain(self) -> list[bytes]:
            return []

    near, far = sockets
    other = Authority(tmp_path, "other")
    vouched = VouchedConnections(authorities(place))
    vouched.add(near, Resumed(), is_current=True)  # type: ignore[arg-type] # the part that is used
    vouched.trust(authorities(place, other))
    assert not is_ended(far)
    vouched.trust(authorities(place))
    assert is_ended(far)


def test_a_certificate_that_signs_no_others_may_vouch_for_itself() -> None:
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert authorities_in(nobody, b"nothing") == frozenset()
    strange = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert authorities_in(nobody, strange) == {b"\0\0\0"}
