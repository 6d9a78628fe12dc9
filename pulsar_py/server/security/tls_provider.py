"""Client certificates: the role is the common name in one that a trusted authority signed.

The handshake has verified the certificate; here its name is read. Without TLS, or without a
certificate, the method `tls` fails. A connection ends with its certificate, which no answer to a
challenge can replace; Apache Pulsar looks at it in the handshake alone.

Source: AuthenticationProviderTls in Pulsar's broker.
"""

from __future__ import annotations

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.security.authentication import (
    Authenticated,
    AuthenticationProvider,
    AuthenticationState,
    ClientCredentials,
    ExpiredCredentialsError,
    HttpCredentials,
)
from pulsar_py.server.security.peer import Peer

__all__ = ["TlsProvider"]


class TlsProvider(AuthenticationProvider):
    """The method `tls`; owned by `Authenticators`."""

    method_name = "tls"

    def __init__(self, clock: Clock) -> None:
        """`clock` tells which certificates have expired since their handshake."""
        self._clock = clock

    def new_state(self, credentials: ClientCredentials) -> AuthenticationState:
        """The connection's certificate."""
        return _CertificateState(credentials.peer, self._clock)

    async def authenticate_http(self, credentials: HttpCredentials) -> Authenticated | None:
        """The role of the connection's certificate.

        Raises:
            ExpiredCredentialsError: It was good at the handshake.
        """
        return _proved_by(credentials.peer, self._clock)


class _CertificateState:
    def __init__(self, peer: Peer, clock: Clock) -> None:
        self._peer = peer
        self._clock = clock

    async def authenticate(self, auth_data: bytes) -> Authenticated:
        """The common name, whatever the client sent beside it.

        Raises:
            AuthenticationError: There is no verified certificate, or no name in it, or it has
                expired since the handshake.
        """
        del auth_data
        proved = _proved_by(self._peer, self._clock)
        if proved is None:
            raise AuthenticationError("the client has no certificate with a common name")
        return proved


def _proved_by(peer: Peer, clock: Clock) -> Authenticated | None:
    certificate = peer.certificate
    role = None if certificate is None else certificate.common_name
    if certificate is None or not role:
        return None
    ends_at = certificate.expires_at_millis
    if ends_at is not None and ends_at <= clock.wall_time_millis():
        raise ExpiredCredentialsError("the client's certificate has expired")
    return Authenticated(role, ends_at)
