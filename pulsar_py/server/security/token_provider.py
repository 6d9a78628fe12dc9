"""Tokens: JSON Web Tokens signed with a secret or private key (RFC 7519).

The role is a claim, by default `sub`. A token without it, or with an empty one, proves no role: its
holder connects, and may do nothing that needs a right. What is wrong with a token is logged and
never told to whoever sent it.

Which algorithms are taken follows from the key, never from the token: a secret key takes HMAC of at
most its length, a public key those of its kind. `alg: none` is never taken. Connections end when
the key file has another key than the one that their token was checked with.

Source: AuthenticationProviderToken in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

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
from pulsar_py.server.security.key_source import KeySource, key_bytes
from pulsar_py.server.security.revoked_tokens import RevokedTokens
from pulsar_py.server.security.token_claims import bearer_token, proved_by

__all__ = ["TokenProvider", "TokenSettings", "VerificationKey", "public_key", "secret_key"]

_HMAC: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The least bytes of a key, by algorithm (RFC 7518, 3.2)."""
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


class TokenSettings(Struct, frozen=True, kw_only=True):
    """The settings of broker.conf whose names begin with `token`, by their names without it."""

    secret_key: str = ""
    public_key: str = ""
    public_alg: str = ""
    auth_claim: str = ""
    audience_claim: str = ""
    audience: str = ""
    allowed_clock_skew_seconds: int = 0
    revocation_file: str = ""


class VerificationKey(Struct, frozen=True):
    """A key and the algorithms that go with it."""

    key: Any  # bytes, or a public key of `cryptography`
    algorithms: tuple[str, ...]


def secret_key(data: bytes) -> VerificationKey:
    """A file's contents as secret key: also if they are text of base64, as Apache Pulsar.

    Raises:
        ValueError: It is too short for any algorithm.
    """
    algorithms = tuple(name for name, least in _HMAC.items() if len(data) >= least)
    if not algorithms:
        raise ValueError(f"a secret key of {len(data)} bytes, expected at least 32")
    return VerificationKey(data, algorithms)


def public_key(data: bytes, algorithm: str = "") -> VerificationKey:
    """The public key in a file's contents: DER or PEM of SubjectPublicKeyInfo.

    Raises:
        ValueError: It is none, or not one of `algorithm`.
    """
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - tokens alone
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - at first use
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415 - at first use

    try:
        if data.startswith(b"-----"):
            key = serialization.load_pem_public_key(data)
        else:
            key = serialization.load_der_public_key(key_bytes(data))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"no public key in DER: {error}") from error
    if isinstance(key, rsa.RSAPublicKey):
        algorithms: tuple[str, ...] = _RSA
    elif isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        algorithms = (_CURVES[key.curve.name],)
    else:
        raise ValueError("expected a public key of RSA, or of the curves P-256, P-384, P-521")
    if algorithm and algorithm not in algorithms:
        raise ValueError(f"the key is for {', '.join(algorithms)}, not for {algorithm}")
    return VerificationKey(key, algorithms)


class TokenProvider(AuthenticationProvider):
    """The method `token`; owned by `Authenticators`."""

    method_name = "token"

    def __init__(self, settings: TokenSettings, clock: Clock) -> None:
        """Read the key, and what is revoked.

        Raises:
            ConfigurationError: There is none, a file can't be read, or an audience is missing.
        """
        import jwt  # noqa: PLC0415 - takes 90 ms, which brokers without tokens save

        self._decode = jwt.decode
        self._jwt_error = jwt.PyJWTError
        self._expired_error = jwt.ExpiredSignatureError
        self._settings = settings
        self._clock = clock
        self._revoked: RevokedTokens | None = None  # None where nothing can be
        if settings.revocation_file:
            self._revoked = RevokedTokens(settings.revocation_file, clock)
        self._claim = settings.auth_claim or "sub"
        if settings.audience_claim and not settings.audience:
            raise ConfigurationError(
                f"tokenAudienceClaim={settings.audience_claim} needs tokenAudience"
            )
        if settings.secret_key:
            self._key = KeySource("tokenSecretKey", settings.secret_key, secret_key, is_secret=True)
        elif settings.public_key:
            algorithm = settings.public_alg
            self._key = KeySource(
                "tokenPublicKey",
                settings.public_key,
                lambda data: public_key(data, algorithm),
                is_secret=False,
            )
        else:
            raise ConfigurationError(
                "authentication by token needs tokenSecretKey or tokenPublicKey, a key or "
                "its file; `pulsar-py tokens` makes keys"
            )

    def new_state(self, credentials: ClientCredentials) -> AuthenticationState:
        """Tokens have no state beside the provider's."""
        del credentials
        return self

    async def authenticate(self, auth_data: bytes) -> Authenticated:
        """The role of a token.

        Raises:
            AuthenticationError: It is no valid token.
        """
        try:
            return self.verify(auth_data.decode("ascii").strip())
        except UnicodeDecodeError:
            raise AuthenticationError("the token is not ASCII") from None

    async def authenticate_http(self, credentials: HttpCredentials) -> Authenticated | None:
        """The role of the token in `Authorization: Bearer`."""
        token = bearer_token(credentials.headers)
        return None if token is None else await self.authenticate(token)

    def verify(self, token: str) -> Authenticated:
        """The role of a token, and when it ends.

        Raises:
            AuthenticationError: It is no valid token; the text says why, for the log.
        """
        key = self._key.current()
        try:
            claims: Mapping[str, Any] = self._decode(  # Any: JSON
                token,
                key.key,
                algorithms=list(key.algorithms),
                leeway=self._settings.allowed_clock_skew_seconds,
                options={"verify_aud": False, "verify_iat": False},
            )
        except self._expired_error as error:
            raise ExpiredCredentialsError(f"token refused: {error}") from error
        except self._jwt_error as error:
            raise AuthenticationError(f"token refused: {error}") from error
        self._check_audience(claims)
        return proved_by(
            claims,
            role_claim=self._claim,
            skew_seconds=self._settings.allowed_clock_skew_seconds,
            revoked=self._revoked,
            is_unsigned=(lambda: self._key_now() is not key) if self._key.can_change else None,
        )

    def _key_now(self) -> VerificationKey:
        return self._key.recent(self._clock.monotonic_seconds())

    def _check_audience(self, claims: Mapping[str, Any]) -> None:  # Any: JSON
        name = self._settings.audience_claim
        if not name:
            return
        found = claims.get(name)
        audiences = found if isinstance(found, list) else [found]
        if self._settings.audience not in audiences:
            raise AuthenticationError(f"token refused: it is for {found!r}")
