"""Authentication of clients: the interface that authentication methods implement.

A connection asks `Authenticators` for the state of the method that its CONNECT names, passes it the
client's data, and gets another challenge for the client, or its role. HTTP asks them for the role
of a request. Without a configured provider every client is accepted without a role. Apache Pulsar's
own methods are the `…_provider` modules of this package, and `providers` makes them of settings.

Over HTTP, credentials that were sent and refused are refused: Apache Pulsar would take their sender
for anonymous where `anonymousUserRole` is set and no header names the method.

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


METHOD_HEADER: Final = "x-pulsar-auth-method-name"
"""The header by which an HTTP client names its method."""

PRINCIPAL_HEADER: Final = "x-original-principal"
"""The header by which a proxy names the client that it acts for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """The method that a client names for its credentials, and the peer that sent them."""

    method_name: str
    peer: Peer


@dataclass(frozen=True, slots=True)
class HttpCredentials:
    """A request's headers, with names in lower case, and the peer that sent them."""

    headers: Mapping[str, str]
    peer: Peer


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The client has proved its role, or None: that it may connect, and has no rights.

    `expires_at_millis` None means never.
    """

    role: str | None
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

    async def authenticate_http(self, credentials: HttpCredentials) -> Authenticated | None:
        """The role of a request; None if it has no credentials of this method.

        Raises:
            AuthenticationError: It has, and they are invalid.
        """


@dataclass(frozen=True, slots=True)
class Authenticators:
    """The methods of a broker, by name. Without any, authentication is off."""

    providers: Mapping[str, AuthenticationProvider] = field(default_factory=dict)
    anonymous_role: str | None = None
    is_original_authenticated: bool = False
    """Whether a proxy has to send its client's credentials, too; else its word counts."""

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

    async def authenticate_http(self, headers: Mapping[str, str], peer: Peer) -> str | None:
        """The role of a request, None if its credentials prove none.

        The first provider that finds credentials of its kind decides, unless a header names one.

        Raises:
            AuthenticationError: Credentials are invalid, or missing without an anonymous role.
        """
        credentials = HttpCredentials(headers, peer)
        method_name = headers.get(METHOD_HEADER)
        if method_name is not None:
            provider = self.providers.get(method_name)
            if provider is None:
                raise AuthenticationError(f"Unsupported authentication method: [{method_name}].")
            answer = await provider.authenticate_http(credentials)
            if answer is None:
                raise AuthenticationError(f"no credentials of the method {method_name}")
            return answer.role
        for provider in self.providers.values():
            answer = await provider.authenticate_http(credentials)
            if answer is not None:
                return answer.role
        if "authorization" in headers:
            raise AuthenticationError("credentials of no method that is served")
        if self.anonymous_role is not None:
            return self.anonymous_role
        raise AuthenticationError("Authentication required")
