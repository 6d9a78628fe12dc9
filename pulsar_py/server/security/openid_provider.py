"""OpenID Connect: tokens of issuers that publish their keys.

A token is taken if its issuer (`iss`) is one of the list, its signature is by the issuer's key of
its `kid`, it is for one of the audiences, and its times hold; `exp` and `iat` have to be there. The
role is a claim, by default `sub`. Nothing that the token says about its algorithm counts but a name
that the key takes.

The keys may come from a file in place of discovery (`openIDKeySetFile`), which Apache Pulsar does
not have: for issuers that the broker can't reach.

Connections end when the keys were read or fetched again, and that of their token is not among them.

Source: AuthenticationProviderOpenID in Pulsar's pulsar-broker-auth-oidc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from pulsar_py.common.errors import AuthenticationError, ConfigurationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.security.authentication import (
    Authenticated,
    AuthenticationProvider,
    AuthenticationState,
    ClientCredentials,
    ExpiredCredentialsError,
    HttpCredentials,
)
from pulsar_py.server.security.issuer_keys import IssuerKey, parse_key_set
from pulsar_py.server.security.issuers import (
    FetchKeys,
    IssuerFetcher,
    Issuers,
    IssuerTimes,
    KeysByIssuer,
)
from pulsar_py.server.security.key_source import KeySource
from pulsar_py.server.security.revoked_tokens import RevokedTokens
from pulsar_py.server.security.token_claims import bearer_token, proved_by

__all__ = ["OpenIdProvider", "OpenIdSettings"]

_MAX_TOKEN_BYTES: Final = 64 * 1024


class OpenIdSettings(Struct, frozen=True, kw_only=True):
    """The settings of broker.conf whose names begin with `openID`."""

    allowed_issuers: tuple[str, ...] = ()
    allowed_audiences: tuple[str, ...] = ()
    role_claim: str = "sub"
    trust_path: str = ""
    leeway_seconds: int = 0
    times: IssuerTimes = field(default_factory=IssuerTimes)
    connect_seconds: float = 10.0
    read_seconds: float = 10.0
    needs_https: bool = True
    key_set_file: str = ""
    revocation_file: str = ""

    def check(self) -> None:
        """Refuse what could not let anybody in, or the wrong ones.

        Raises:
            ConfigurationError: A setting is missing, or asks for what is not offered.
        """
        if not any(self.allowed_audiences):
            raise ConfigurationError(
                "authentication by OpenID needs openIDAllowedAudiences, the audiences that tokens "
                "have to name"
            )
        if not self.allowed_issuers:
            raise ConfigurationError(
                "authentication by OpenID needs openIDAllowedTokenIssuers, the issuers' URLs"
            )
        schemes = ("https://",) if self.needs_https else ("https://", "http://")
        for issuer in self.allowed_issuers:
            if not issuer.startswith(schemes):
                raise ConfigurationError(
                    f"openIDAllowedTokenIssuers: {issuer}: expected {' or '.join(schemes)}…"
                    + ("; openIDRequireIssuersUseHttps=false allows http" * self.needs_https)
                )


class OpenIdProvider(AuthenticationProvider):
    """The method `token` for tokens of OpenID Connect; owned by `Authenticators`."""

    method_name = "token"

    def __init__(
        self, settings: OpenIdSettings, clock: Clock, *, fetch: FetchKeys | None = None
    ) -> None:
        """Nothing is fetched yet. `fetch` takes the place of HTTP.

        Raises:
            ConfigurationError: A setting is missing or wrong, or a file can't be read.
        """
        import jwt  # noqa: PLC0415 - takes 90 ms, which brokers without tokens save

        settings.check()
        self._jwt = jwt
        self._settings = settings
        self._revoked: RevokedTokens | None = None  # None where nothing can be
        if settings.revocation_file:
            self._revoked = RevokedTokens(settings.revocation_file, clock)
        if settings.key_set_file:
            self._keys: KeysByIssuer = _KeysOfFile(settings.key_set_file, clock)
        else:
            by_http = IssuerFetcher(
                trust_path=settings.trust_path,
                needs_https=settings.needs_https,
                connect_seconds=settings.connect_seconds,
                read_seconds=settings.read_seconds,
            )
            self._keys = Issuers(fetch or by_http, settings.times, clock)

    def new_state(self, credentials: ClientCredentials) -> AuthenticationState:
        """Tokens have no state beside the provider's."""
        del credentials
        return self

    async def authenticate(self, auth_data: bytes) -> Authenticated:
        """The role of a token.

        Raises:
            AuthenticationError: It is no valid token, or its keys can't be fetched.
        """
        if len(auth_data) > _MAX_TOKEN_BYTES:
            raise AuthenticationError("the token is too long")
        try:
            return await self._verify(auth_data.decode("ascii").strip())
        except UnicodeDecodeError:
            raise AuthenticationError("the token is not ASCII") from None

    async def authenticate_http(self, credentials: HttpCredentials) -> Authenticated | None:
        """The role of the token in `Authorization: Bearer`."""
        token = bearer_token(credentials.headers)
        return None if token is None else await self.authenticate(token)

    async def close(self) -> None:
        """End what is under way."""
        await self._keys.close()

    async def _verify(self, token: str) -> Authenticated:
        issuer, key_id = self._origin_of(token)
        key = await self._keys.key(issuer, key_id)
        try:
            claims: Mapping[str, Any] = self._jwt.decode(  # Any: JSON
                token,
                key.key,
                algorithms=list(key.algorithms),
                leeway=self._settings.leeway_seconds,
                audience=self._settings.allowed_audiences,
                issuer=issuer,
                options={"require": ["iss", "aud", "exp", "iat"], "verify_sub": False},
            )
        except self._jwt.ExpiredSignatureError as error:
            raise ExpiredCredentialsError(f"token refused: {error}") from error
        except self._jwt.PyJWTError as error:
            raise AuthenticationError(f"token refused: {error}") from error
        return proved_by(
            claims,
            role_claim=self._settings.role_claim,
            skew_seconds=self._settings.leeway_seconds,
            revoked=self._revoked,
            is_unsigned=lambda: self._keys.has_dropped(issuer, key_id, key),
        )

    def _origin_of(self, token: str) -> tuple[str, str]:
        """The issuer that a token names, if it is allowed, and the id of its key."""
        try:
            parts = self._jwt.decode_complete(token, options={"verify_signature": False})
        except self._jwt.PyJWTError as error:
            raise AuthenticationError(f"token refused: {error}") from error
        issuer, key_id = parts["payload"].get("iss"), parts["header"].get("kid")
        if not isinstance(issuer, str) or issuer not in self._settings.allowed_issuers:
            raise AuthenticationError(f"token refused: its issuer is {issuer!r}")
        if not isinstance(key_id, str) or not key_id:
            raise AuthenticationError("token refused: it names no key")
        return issuer, key_id


class _KeysOfFile(KeysByIssuer):
    """The keys in a file, read again when it changes; the same for each issuer."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._clock = clock
        self._keys = KeySource("openIDKeySetFile", path, parse_key_set, is_secret=False)

    async def key(self, issuer: str, key_id: str) -> IssuerKey:
        key = self._keys.current().get(key_id)
        if key is None:
            raise AuthenticationError(f"{issuer} has no key {key_id!r} in openIDKeySetFile")
        return key

    def has_dropped(self, issuer: str, key_id: str, key: IssuerKey) -> bool:
        del issuer
        return self._keys.recent(self._clock.monotonic_seconds()).get(key_id) != key

    async def close(self) -> None:
        """Do nothing: no fetch is ever under way."""
