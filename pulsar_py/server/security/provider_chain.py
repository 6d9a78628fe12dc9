"""`ProviderChain`: several providers of one method, tried in turn.

Tokens that the operator signs and those of an issuer of OpenID have the same method: the first
provider that takes the credentials decides. One that challenges the client goes on with it alone.

Source: AuthenticationProviderList in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.authentication import (
    Authenticated,
    AuthenticationProvider,
    AuthenticationState,
    Challenge,
    ClientCredentials,
    ExpiredCredentialsError,
    HttpCredentials,
    RevokedCredentialsError,
    close_provider,
)

__all__ = ["ProviderChain"]


class ProviderChain(AuthenticationProvider):
    """Providers of the same method; owned by `Authenticators`."""

    def __init__(self, providers: Sequence[AuthenticationProvider]) -> None:
        """`providers` are in the order in which they are tried; there is at least one."""
        self.providers = tuple(providers)

    @property
    def method_name(self) -> str:
        """The method's name, which all providers share."""
        return self.providers[0].method_name

    def new_state(self, credentials: ClientCredentials) -> AuthenticationState:
        """A state that has one of each provider."""
        return _ChainState([each.new_state(credentials) for each in self.providers])

    async def authenticate_http(self, credentials: HttpCredentials) -> Authenticated | None:
        """The role by the first provider that accepts the credentials.

        Raises:
            AuthenticationError: There are credentials, and each provider refuses them.
        """
        errors = []
        for each in self.providers:
            try:
                answer = await each.authenticate_http(credentials)
            except AuthenticationError as error:
                errors.append(error)
                continue
            if answer is not None:
                return answer
        if errors:
            raise _told(errors)
        return None

    async def close(self) -> None:
        """Close each provider."""
        for each in self.providers:
            await close_provider(each)


class _ChainState:
    """A connection's states, of which the first that took its data goes on."""

    def __init__(self, states: Sequence[AuthenticationState]) -> None:
        self._all = states
        self._challenging: AuthenticationState | None = None  # awaits an answer of the client

    async def authenticate(self, auth_data: bytes) -> Authenticated | Challenge:
        errors = []
        states = self._all if self._challenging is None else (self._challenging,)
        self._challenging = None
        for each in states:
            try:
                answer = await each.authenticate(auth_data)
            except AuthenticationError as error:
                errors.append(error)
                continue
            if isinstance(answer, Challenge):
                self._challenging = each
            return answer
        raise _told(errors)


def _told(errors: Sequence[AuthenticationError]) -> AuthenticationError:
    """The error that says most: that the credentials were good once, else the reasons of all."""
    for error in errors:
        if isinstance(error, ExpiredCredentialsError | RevokedCredentialsError):
            return error
    if len(errors) == 1:
        return errors[0]
    return AuthenticationError("; ".join(str(error) for error in errors))
