"""Client certificates: the role is the common name in one that a trusted authority signed.

The handshake has verified the certificate; here its name is read. Without TLS, or without a
certificate, the method `tls` fails.

Source: AuthenticationProviderTls in Pulsar's broker.
"""

from __future__ import annotations

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.authentication import (
    Authenticated,
    AuthenticationProvider,
    AuthenticationState,
    ClientCredentials,
    HttpCredentials,
)
from pulsar_py.server.security.peer import Peer

__all__ = ["TlsProvider"]


class TlsProvider(AuthenticationProvider):
    """The method `tls`; owned by `Authenticators`."""

    method_name = "tls"

    def new_state(self, credentials: ClientCredentials) -> AuthenticationState:
        """The connection's certificate."""
        return _CertificateState(credentials.peer)

    async def authenticate_http(self, credentials: HttpCredentials) -> Authenticated | None:
        """The role of the connection's certificate."""
        role = _role_of(credentials.peer)
        return None if role is None else Authenticated(role)


class _CertificateState:
    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def authenticate(self, auth_data: bytes) -> Authenticated:
        """The common name, whatever the client sent beside it.

        Raises:
            AuthenticationError: There is no verified certificate, or no name in it.
        """
        del auth_data
        role = _role_of(self._peer)
        if role is None:
            raise AuthenticationError("the client has no certificate with a common name")
        return Authenticated(role)


def _role_of(peer: Peer) -> str | None:
    return None if peer.certificate is None else peer.certificate.common_name or None
