"""Authentication methods: objects that produce a client's credentials whenever a broker asks.

A connection begins with `method_name` and `await authenticate()`; an AUTH_CHALLENGE is answered
with `await authenticate(challenge)`. What always holds: the data is made anew each time it is asked
for, so a supplier that returns a fresh token keeps a connection alive past the first one's end.

Methods of an application's own derive from `Authentication` and define `method_name` and
`auth_data`, which may be a plain function or a coroutine function. OAuth2 stands in
`authentication_oauth2`, the names of Java's plugins in `authentication_plugins`;
`common.network.tls` reads certificates.

Source: Authentication and AuthenticationDataProvider in Pulsar's Java client; the classes of the
same names in the official Python client.
"""

from __future__ import annotations

import inspect
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pulsar_py.common.errors import (
    AuthenticationDataError,
    InvalidConfigurationError,
    PulsarError,
    UnusableCredentialsError,
)
from pulsar_py.common.foreign_json import parse_json

__all__ = [
    "AUTH_REFRESH_CHALLENGE",
    "Authentication",
    "AuthenticationBasic",
    "AuthenticationTLS",
    "AuthenticationToken",
    "NoAuthentication",
]

AUTH_REFRESH_CHALLENGE: Final = b"PulsarAuthRefresh"
"""The challenge of a broker that only asks for fresh credentials."""

TokenSupplier = Callable[[], str | bytes | Awaitable[str | bytes]]


class Authentication:
    """Base class of authentication methods; one object serves all connections of a client."""

    method_name: str = "none"
    """The `auth_method_name` in CONNECT, by which the broker chooses its provider."""

    def auth_data(self) -> bytes | Awaitable[bytes]:
        """The current credentials; called for each connection and each refresh."""
        return b""

    def answer_challenge(self, challenge: bytes) -> bytes | Awaitable[bytes]:
        """The answer to a challenge: fresh credentials, unless a subclass overrides this.

        Args:
            challenge: The broker's bytes; `AUTH_REFRESH_CHALLENGE` only asks for fresh ones.
        """
        del challenge
        return self.auth_data()

    async def authenticate(self, challenge: bytes | None = None) -> bytes:
        """The bytes for CONNECT, or for AUTH_RESPONSE if the broker sent a challenge.

        Raises:
            AuthenticationDataError: The credentials could not be obtained; a retry may work.
            UnusableCredentialsError: Nor will a retry obtain them.
        """
        try:
            made = self.auth_data() if challenge is None else self.answer_challenge(challenge)
            data = await made if inspect.isawaitable(made) else made
        except PulsarError:
            raise
        except Exception as error:  # a user's supplier may raise anything
            kind = UnusableCredentialsError if _is_lasting(error) else AuthenticationDataError
            text = f"{type(error).__name__}: {error}"
            raise kind(f"{self.method_name} credentials: {text}") from error
        if not isinstance(data, bytes):
            raise UnusableCredentialsError(
                f"{self.method_name} credentials: expected bytes, got {type(data).__name__}"
            )
        return data

    async def http_headers(self) -> Mapping[str, str]:
        """Headers that carry the credentials to the REST API; none by default."""
        return {}

    @property
    def tls_certificate_paths(self) -> tuple[str, str] | None:
        """Paths of certificate and private key for the TLS handshake; None if it uses none."""
        return None

    async def close(self) -> None:
        """Close resources that obtaining credentials needed; may be called again."""


def _is_lasting(error: Exception) -> bool:
    """Whether a supplier fails so again: a file that is not there, or a fault in its code."""
    return isinstance(
        error,
        FileNotFoundError
        | IsADirectoryError
        | NotADirectoryError
        | PermissionError
        | AttributeError
        | LookupError
        | NameError
        | TypeError,
    )


class NoAuthentication(Authentication):
    """Sends no credentials; for clients without authentication."""


class AuthenticationToken(Authentication):
    """A token (JWT), fixed or from a supplier that is called for each connection and refresh.

    A supplier is a plain function (which must not block for long) or a coroutine function.
    """

    method_name = "token"

    def __init__(self, token: str | TokenSupplier) -> None:
        """`token` is the text, or a function that returns it.

        Raises:
            InvalidConfigurationError: It is neither, or empty, or the URL of a file.
        """
        if not (isinstance(token, str) or callable(token)):
            raise InvalidConfigurationError(
                f"token: expected a str or a function that returns one, got {type(token).__name__}"
            )
        if isinstance(token, str):
            _check_token(token)
        self._token = token

    async def auth_data(self) -> bytes:
        """The token's bytes."""
        token: object = self._token
        if callable(self._token):
            supplied = self._token()
            token = await supplied if inspect.isawaitable(supplied) else supplied
        if isinstance(token, str):
            token = token.encode()
        if not isinstance(token, bytes):
            raise UnusableCredentialsError(
                f"token supplier: expected a str, got {type(token).__name__}"
            )
        return token.strip()

    async def http_headers(self) -> Mapping[str, str]:
        """The token as a bearer token, in the header `Authorization`."""
        return {"Authorization": "Bearer " + (await self.authenticate()).decode()}

    def __repr__(self) -> str:
        return f"AuthenticationToken({'supplier' if callable(self._token) else '***'})"


def _check_token(token: str) -> None:
    if not token.strip():
        raise InvalidConfigurationError("token: expected a token, got an empty text")
    if token.startswith("file:"):
        raise InvalidConfigurationError(
            f"token: {token!r} is the URL of a file and not a token: "
            "give a function that reads the file"
        )


class AuthenticationBasic(Authentication):
    """Sends a user name and password."""

    def __init__(
        self,
        username: str | None = None,
        password: str | None = None,
        method: str = "basic",
        auth_params_string: str | None = None,
    ) -> None:
        """User and password, or a JSON object of `username`, `password` and `method` instead.

        Raises:
            InvalidConfigurationError: One of them is missing or not a text.
        """
        if auth_params_string is not None:
            params = json_params("auth_params_string", auth_params_string)
            username, password = params.get("username"), params.get("password")
            method = params.get("method", "basic")
        for name, value in (("username", username), ("password", password), ("method", method)):
            if not isinstance(value, str):
                raise InvalidConfigurationError(
                    f"{name}: expected a str, got {type(value).__name__}"
                )
        self.method_name = method
        self._credentials = f"{username}:{password}".encode()
        self._username = username

    def auth_data(self) -> bytes:
        """`user:password` in UTF-8."""
        return self._credentials

    async def http_headers(self) -> Mapping[str, str]:
        """The credentials as HTTP basic authentication, in the header `Authorization`."""
        return {"Authorization": "Basic " + b64encode(self._credentials).decode()}

    def __repr__(self) -> str:
        return f"AuthenticationBasic({self._username!r}, '***')"


class AuthenticationTLS(Authentication):
    """Presents a client certificate, which holds the role: no other data is sent to the broker."""

    method_name = "tls"

    def __init__(self, certificate_path: str, private_key_path: str) -> None:
        """Both files are PEM; they are read anew for each connection, so they may be replaced.

        Raises:
            InvalidConfigurationError: A path is not a text.
        """
        for name, value in (
            ("certificate_path", certificate_path),
            ("private_key_path", private_key_path),
        ):
            if not isinstance(value, str) or not value:
                raise InvalidConfigurationError(f"{name}: expected a path, got {value!r}")
        self._paths = certificate_path, private_key_path

    @property
    def tls_certificate_paths(self) -> tuple[str, str]:
        """Certificate and private key."""
        return self._paths

    def __repr__(self) -> str:
        return f"AuthenticationTLS{self._paths!r}"


def json_params(name: str, text: str) -> dict[str, Any]:  # Any: the JSON's own values
    """The JSON object in `text`.

    Raises:
        InvalidConfigurationError: It is not one; the message leaves out the value, a secret.
    """
    try:
        params = parse_json(text)
    except ValueError as error:
        # Without the cause: its text would quote a secret.
        raise InvalidConfigurationError(f"{name}: not JSON ({type(error).__name__})") from None
    if not isinstance(params, dict):
        raise InvalidConfigurationError(
            f"{name}: expected a JSON object, got {type(params).__name__}"
        )
    return params
