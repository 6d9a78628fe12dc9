"""Authentication of clients: the interface that authentication methods implement.

A connection asks `Authenticators` for the state of the method that its CONNECT names, passes it the
client's data, and gets another challenge for the client, or its role. Without a configured provider
every client is accepted without a role. This version has no providers; they will be modules of this
package.

Source: AuthenticationService, AuthenticationProvider, AuthenticationState in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.peer import Peer

REFRESH_CHALLENGE: Final = b"PulsarAuthRefresh"
"""The challenge with which a connected client is asked for refreshed credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """A client's unverified credentials, and the peer that sent them.

    The `original_…` fields are set where a proxy connects for a client: its principal, and the
    data and method by which it authenticated to the proxy.
    """

    method_name: str
    peer: Peer
    original_principal: str | None = None
    original_auth_data: bytes | None = None
    original_auth_method: str | None = None


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The client has proved its role; `expires_at_millis` None means never."""

    role: str
    expires_at_millis: int | None = None


@dataclass(frozen=True, slots=True)
class Challenge:
    """The result that the client has to answer a challenge first."""

    auth_data: bytes


class AuthenticationState(Protocol):
    """One client's progress in a method; lives as long as its connection."""

    async def authenticate(self, auth_data: bytes) -> Authenticated | Challenge:
        """Check the data that the client sent.

        Raises:
            AuthenticationError: The data is invalid.
        """


class AuthenticationProvider(Protocol):
    """One authentication method."""

    @property
    def method_name(self) -> str:
        """The method's name in CONNECT's `auth_method_name`."""

    def new_state(self, credentials: ClientCredentials) -> AuthenticationState:
        """The state for a new connection."""


@dataclass(frozen=True, slots=True)
class Authenticators:
    """The methods of a broker, by name. Without any, authentication is off."""

    providers: Mapping[str, AuthenticationProvider] = field(default_factory=dict)
    anonymous_role: str | None = None

    @property
    def is_enabled(self) -> bool:
        """Whether clients have to prove who they are."""
        return bool(self.providers)

    def state_for(self, credentials: ClientCredentials) -> AuthenticationState | None:
        """The state for a client's method; None: accept the client with the anonymous role.

        Raises:
            AuthenticationError: There is no provider of the method, and no anonymous role.
        """
        provider = self.providers.get(credentials.method_name)
        if provider is not None:
            return provider.new_state(credentials)
        if self.anonymous_role is not None:
            return None
        raise AuthenticationError(f"unsupported authentication method {credentials.method_name!r}")
