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

from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct, field

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.server.security.peer import Peer

REFRESH_CHALLENGE: Final = b"PulsarAuthRefresh"
"""The challenge with which a connected client is asked for refreshed credentials."""


METHOD_HEADER: Final = "x-pulsar-auth-method-name"
"""The header by which an HTTP client names its method."""

PRINCIPAL_HEADER: Final = "x-original-principal"
"""The header by which a proxy names the client that it acts for."""


class ClientCredentials(Struct, frozen=True, kw_only=True):
    """The method that a client names for its credentials, and the peer that sent them."""

    method_name: str
    peer: Peer


class HttpCredentials(Struct, frozen=True):
    """A request's headers, with names in lower case, and the peer that sent them."""

    headers: Mapping[str, str]
    peer: Peer


class Authenticated(Struct, frozen=True):
    """The client has proved its role, or None: that it may connect, and has no rights.

    `expires_at_millis` None means never.
    """

    role: str | None
    expires_at_millis: int | None = None
    is_revoked: Callable[[], bool] | None = None
    """Whether the credentials have lost their force since; asked twice a second while the client
    is connected, so it must not block. None: they can't."""

    @property
    def can_end(self) -> bool:
        """Whether they expire, or may be revoked."""
        return self.is_revoked is not None or self.expires_at_millis is not None

    def reason_to_end(self, now_millis: int) -> str | None:
        """Why a connection that was let in for it should end now; None while it should not."""
        if self.is_revoked is not None and self.is_revoked():
            return "the credentials were revoked"
        if self.expires_at_millis is not None and self.expires_at_millis <= now_millis:
            return "the credentials expired"
        return None


class Challenge(Struct, frozen=True):
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


async def close_provider(provider: AuthenticationProvider) -> None:
    """End what a provider has under way; one of users' own may have no `close`."""
    close: Callable[[], Awaitable[None]] | None = getattr(provider, "close", None)
    if close is not None:
        await close()


class ExpiredCredentialsError(AuthenticationError):
    """The credentials were good once."""


class RevokedCredentialsError(AuthenticationError):
    """The credentials were good once, and have not expired."""


class MissingCredentialsError(AuthenticationError):
    """A client sent no credentials."""


class UnknownMethodError(AuthenticationError):
    """The credentials are of no method that is served."""


def reason_of(error: Exception) -> str:
    """Why credentials are refused, in a word: one of a few, for figures."""
    if isinstance(error, ExpiredCredentialsError):
        return "expired"
    if isinstance(error, RevokedCredentialsError):
        return "revoked"
    if isinstance(error, MissingCredentialsError):
        return "missing"
    return "unknown method" if isinstance(error, UnknownMethodError) else "invalid"


NO_METHOD: Final = "none"
"""The method, in figures, of those that named none that is served."""


_COUNTED_METHOD: Final = "token"
"""The method whose expiry is counted, as the name of its figures says."""

EXPIRING_MINUTES: Final = (5, 10, 60, 240)
"""Upper bounds of counts by the time that credentials last; one more count has none."""


class AuthenticationStatistics(Struct, frozen=True):
    """Counts of successful and failed authentications since the start."""

    successes_count: Mapping[str, int]
    """By method."""
    failures_count: Mapping[tuple[str, str], int]
    """By method and reason."""
    expiring_counts: tuple[int, ...]
    """Successes with tokens that expire, by the bounds of `EXPIRING_MINUTES`."""
    expiring_minutes_sum: float
    """The time that was left to all of these."""

    @property
    def expired_count(self) -> int:
        """Credentials that had expired, of all methods."""
        return sum(
            count for (_, reason), count in self.failures_count.items() if reason == "expired"
        )


class AuthenticationCounts:
    """Counts for `AuthenticationStatistics`; owned by `Authenticators`."""

    def __init__(self, clock: Clock | None = None) -> None:
        """`clock` tells how long credentials last; None: the real one."""
        self._clock = clock or SystemClock()
        self._successes: Counter[str] = Counter()  # by method
        self._failures: Counter[tuple[str, str]] = Counter()  # by method and reason
        self._expiring = [0] * (len(EXPIRING_MINUTES) + 1)  # by what was left to them
        self._expiring_minutes_sum = 0.0

    def succeeded(self, method_name: str, answer: Authenticated) -> None:
        """Credentials of a method that is served were good."""
        self._successes[method_name] += 1
        if answer.expires_at_millis is not None and method_name == _COUNTED_METHOD:
            minutes = max(0, answer.expires_at_millis - self._clock.wall_time_millis()) / 60_000
            self._expiring[bisect_left(EXPIRING_MINUTES, minutes)] += 1
            self._expiring_minutes_sum += minutes

    def failed(self, method_name: str, error: Exception) -> None:
        """Credentials were refused; `method_name` is one that is served, or `NO_METHOD`."""
        self._failures[method_name, reason_of(error)] += 1

    def statistics(self) -> AuthenticationStatistics:
        """The figures as they are now."""
        return AuthenticationStatistics(
            dict(self._successes),
            dict(self._failures),
            tuple(self._expiring),
            self._expiring_minutes_sum,
        )


class Authenticators(Struct, frozen=True):
    """The methods of a broker, by name. Without any, authentication is off."""

    providers: Mapping[str, AuthenticationProvider] = field(default_factory=dict)
    anonymous_role: str | None = None
    is_original_authenticated: bool = False
    """Whether a proxy has to send its client's credentials, too; else its word counts."""
    counts: AuthenticationCounts = field(default_factory=AuthenticationCounts)

    @property
    def is_enabled(self) -> bool:
        """Whether clients have to authenticate."""
        return bool(self.providers)

    async def close(self) -> None:
        """End what providers have under way."""
        for provider in self.providers.values():
            await close_provider(provider)

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
        raise self._counted(
            UnknownMethodError(f"unsupported authentication method {credentials.method_name!r}")
        )

    async def authenticate_http(self, headers: Mapping[str, str], peer: Peer) -> Authenticated:
        """What a request's credentials prove; without any, the anonymous role.

        The first provider that finds credentials of its kind decides, unless a header names one.

        Raises:
            AuthenticationError: Credentials are invalid, or missing without an anonymous role.
        """
        credentials = HttpCredentials(headers, peer)
        method_name = headers.get(METHOD_HEADER)
        if method_name is not None and method_name not in self.providers:
            raise self._counted(
                UnknownMethodError(f"unsupported authentication method {method_name!r}")
            )
        for name in self.providers if method_name is None else (method_name,):
            answer = await self._asked(name, credentials)
            if answer is not None:
                return answer
        if method_name is not None:
            raise self._counted(
                MissingCredentialsError(f"no credentials of the method {method_name}")
            )
        if "authorization" in headers:
            raise self._counted(UnknownMethodError("credentials of no method that is served"))
        if self.anonymous_role is not None:
            return Authenticated(self.anonymous_role)
        raise self._counted(MissingCredentialsError("authentication required"))

    async def _asked(self, name: str, credentials: HttpCredentials) -> Authenticated | None:
        """The answer of one provider; whatever fails in it must not let the caller in."""
        try:
            answer = await self.providers[name].authenticate_http(credentials)
        except Exception as error:  # Of users' own providers, too: none must end the request.
            self.counts.failed(name, error)
            if isinstance(error, AuthenticationError):
                raise
            raise AuthenticationError(f"the provider of {name} failed: {error!r}") from error
        if answer is not None:
            self.counts.succeeded(name, answer)
        return answer

    def _counted(self, error: AuthenticationError) -> AuthenticationError:
        self.counts.failed(NO_METHOD, error)
        return error
