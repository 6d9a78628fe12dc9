"""The work of `pulsar-py tokens`: makes keys and tokens, and reads them (edge).

A secret key is random bytes, a key pair PKCS#8 and SubjectPublicKeyInfo in DER, as Apache Pulsar's
tool writes them; PEM is read too. Files with secrets are the user's alone from the start.

Third-party packages it may import: PyJWT, cryptography, click.

Source: TokensCliUtils and AuthTokenUtils in Pulsar; RFC 7518, RFC 7519.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from pulsar_py.common.errors import AuthenticationError, ConfigurationError
from pulsar_py.server.security.key_source import KeySource, key_bytes
from pulsar_py.server.security.token_provider import (
    VerificationKey,
    public_key,
    secret_key,
)

__all__ = [
    "TokenRequest",
    "new_key_pair",
    "new_secret_key",
    "parse_expiry",
    "parse_headers",
    "read_token",
    "shown",
    "signed",
    "signing_key",
    "validated",
    "verification_key",
    "write_public",
    "write_secret",
]

Json = dict[str, Any]  # Any: claims of many types
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

_SECRET_BYTES: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
_RSA_BITS: Final = dict.fromkeys(("RS256", "PS256"), 2048) | {
    "RS384": 3072,
    "PS384": 3072,
    "RS512": 4096,
    "PS512": 4096,
}
_CURVES: Final[Mapping[str, ec.EllipticCurve]] = {
    "ES256": ec.SECP256R1(),
    "ES384": ec.SECP384R1(),
    "ES512": ec.SECP521R1(),
}
_SECONDS: Final = {
    "": 1,
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86_400,
    "w": 7 * 86_400,
    "y": 365 * 86_400,
}
_EXPIRY: Final = re.compile(r"([0-9]{1,12})([smhdwy]?)", re.IGNORECASE)
_OWN_HEADERS: Final = {"alg", "b64", "crit"}
"""Headers that change how a token is signed or read."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token to make.

    Attributes:
        subject: The role that it proves.
        expires_at_seconds: When it ends, in seconds since 1970; None is never.
        headers: Headers beside `alg` and `typ`.
    """

    subject: str
    expires_at_seconds: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def new_secret_key(algorithm: str, *, is_base64: bool) -> bytes:
    """Random bytes of the length that the algorithm asks for (RFC 7518, 3.2).

    Raises:
        ConfigurationError: The algorithm takes no secret key.
    """
    if algorithm not in _SECRET_BYTES:
        raise ConfigurationError(_wrong_algorithm(algorithm, _SECRET_BYTES))
    key = secrets.token_bytes(_SECRET_BYTES[algorithm])
    return base64.b64encode(key) if is_base64 else key


def new_key_pair(algorithm: str) -> tuple[bytes, bytes]:
    """A private key and its public key, in DER; RSA of 2048, 3072 or 4096 bits by algorithm.

    Raises:
        ConfigurationError: The algorithm takes no key pair.
    """
    key: PrivateKey
    if algorithm in _RSA_BITS:
        key = rsa.generate_private_key(public_exponent=65_537, key_size=_RSA_BITS[algorithm])
    elif algorithm in _CURVES:
        key = ec.generate_private_key(_CURVES[algorithm])
    else:
        raise ConfigurationError(_wrong_algorithm(algorithm, [*_RSA_BITS, *_CURVES]))
    private = key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private, _public_bytes(key)


def write_secret(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read; one that is there is replaced.

    Raises:
        ConfigurationError: It can't be written.
    """
    try:
        if not path.exists() or path.is_file():  # not a terminal or a pipe
            path.touch(mode=0o600)
            path.chmod(0o600)  # first: a file that was there may be open to others
        path.write_bytes(data)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None


def write_public(path: Path, data: bytes) -> None:
    """Write a file that others may read.

    Raises:
        ConfigurationError: It can't be written.
    """
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None


def parse_expiry(text: str) -> int:
    """The seconds of `1h`, `3d`, `2y` (of 365 days); a number alone is seconds.

    Raises:
        ConfigurationError: The text is not a number with an optional unit.
    """
    found = _EXPIRY.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(f"--expiry-time {text!r}: expected such as 90s, 5m, 1h, 3d or 2y")
    return int(found[1]) * _SECONDS[found[2].lower()]


def parse_headers(assignments: Iterable[str]) -> dict[str, str]:
    """Headers of `name=value`.

    Raises:
        ConfigurationError: One is not `name=value`, or names `alg` or `typ`.
    """
    headers = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not name or not separator:
            raise ConfigurationError(f"--headers {assignment!r}: expected name=value")
        if name in _OWN_HEADERS:
            raise ConfigurationError(f"--headers {name}: leave it out, it follows from the key")
        headers[name] = value
    return headers


def signing_key(
    secret: str | None, private: str | None, algorithm: str | None = None
) -> VerificationKey:
    """The key to sign with, and the one algorithm for it.

    Raises:
        ConfigurationError: No key or two keys were given, or the key can't be read or used.
    """
    if secret is not None and private is not None:
        raise ConfigurationError("give only one of --secret-key and --private-key")
    if secret is not None:
        found = KeySource("--secret-key", secret, secret_key, is_secret=True).current()
        return VerificationKey(found.key, found.algorithms[-1:])  # the strongest for its length
    if private is None:
        raise ConfigurationError("a key to sign with is needed: --secret-key or --private-key")
    return KeySource(
        "--private-key", private, lambda data: _private_key(data, algorithm), is_secret=True
    ).current()


def verification_key(
    secret: str | None, public: str | None, algorithm: str | None = None
) -> VerificationKey:
    """The key to check with, and the algorithms that it takes.

    Raises:
        ConfigurationError: No key or two keys were given, or the key can't be read or used.
    """
    if secret is not None and public is not None:
        raise ConfigurationError("give only one of --secret-key and --public-key")
    if secret is not None:
        return KeySource("--secret-key", secret, secret_key, is_secret=True).current()
    if public is None:
        raise ConfigurationError("a key to check with is needed: --secret-key or --public-key")
    return KeySource(
        "--public-key", public, lambda data: public_key(data, algorithm or ""), is_secret=False
    ).current()


def signed(request: TokenRequest, key: VerificationKey) -> str:
    """The token."""
    claims: dict[str, object] = {"sub": request.subject}
    if request.expires_at_seconds is not None:
        claims["exp"] = request.expires_at_seconds
    return jwt.encode(claims, key.key, key.algorithms[0], headers=dict(request.headers))


def read_token(token: str | None, file: Path | None, *, is_stdin: bool) -> str:
    """The token that was given, read, or put into the environment as TOKEN, without white space.

    Raises:
        ConfigurationError: There is none, or its file can't be read.
    """
    if token is None and is_stdin:
        token = sys.stdin.read()
    if token is None and file is not None:
        try:
            token = file.read_text("ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"--token-file {file}: {error}") from None
    if token is None:
        token = os.environ.get("TOKEN")
    if token is None or not token.strip():
        raise ConfigurationError("a token is needed: --token-file, --stdin, TOKEN or an argument")
    return token.strip().removeprefix("token:")


def shown(token: str) -> tuple[Json, Json]:
    """Headers and claims.

    Raises:
        AuthenticationError: It is no token.
    """
    try:
        parts = jwt.decode_complete(token, options={"verify_signature": False})
    except jwt.PyJWTError as error:
        raise AuthenticationError(f"no token: {error}") from None
    return parts["header"], parts["payload"]


def validated(token: str, key: VerificationKey) -> Json:
    """The claims of a token that a broker with this key takes.

    Raises:
        AuthenticationError: It is signed with another key, expired, or not valid yet.
    """
    try:
        claims: Json = jwt.decode(
            token,
            key.key,
            algorithms=list(key.algorithms),
            options={"verify_aud": False, "verify_iat": False},
        )
    except jwt.PyJWTError as error:
        raise AuthenticationError(f"token refused: {error}") from None
    return claims


def _wrong_algorithm(algorithm: str, expected: Iterable[str]) -> str:
    return f"--signature-algorithm {algorithm}: expected one of {', '.join(expected)}"


def _public_bytes(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _private_key(data: bytes, algorithm: str | None) -> VerificationKey:
    """The private key in a file's contents, and the algorithm asked for or its first.

    Raises:
        ValueError: It is none, or not one of `algorithm`.
    """
    try:
        if data.startswith(b"-----"):
            key = serialization.load_pem_private_key(data, None)
        else:
            key = serialization.load_der_private_key(key_bytes(data), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"no private key in DER (PKCS#8) without a password: {error}") from None
    if not isinstance(key, PrivateKey):
        text = "expected a private key of RSA, or of the curves P-256, P-384, P-521"
        raise ValueError(text)  # noqa: TRY004 - what the bytes hold is wrong
    algorithms = public_key(_public_bytes(key), algorithm or "").algorithms
    return VerificationKey(key, (algorithm or algorithms[0],))
