"""OAuth2 authentication: fetches a token from an issuer and keeps it until it nearly expires.

    GET  <issuer>/.well-known/openid-configuration      -> token_endpoint
    POST <token_endpoint>   grant_type=client_credentials&client_id=..&client_secret=..
                            [&audience=..][&scope=..]   -> access_token, expires_in (seconds)

The broker gets the token by the method `token`. A challenge fetches a new one. Connections that ask
at the same time share one fetch.

Source: RFC 6749 section 4.4; AuthenticationOauth2 in the official Python client, and
AuthenticationOAuth2 in Java's.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlencode, urlsplit

from pulsar_py.client.security.authentication import Authentication, json_params
from pulsar_py.common.errors import (
    AuthenticationDataError,
    ClientError,
    InvalidConfigurationError,
    ProtocolError,
    UnusableCredentialsError,
)
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.network.http_client import HttpRequest, HttpResponse, http_request
from pulsar_py.common.network.tls import TlsOptions, client_ssl_context

if TYPE_CHECKING:
    import ssl

__all__ = ["AuthenticationOauth2"]

_REFUSED: Final = frozenset({400, 401, 403})
"""Statuses of a token endpoint that does not know the client, or does not take its secret."""
EARLY_SECONDS: Final = 10.0
"""A token is replaced so long before it expires, or a tenth of its lifetime if that is less."""

_SPELLINGS: Final[Mapping[str, str]] = {"issuerUrl": "issuer_url", "privateKey": "private_key"}
_NAMES: Final = frozenset(
    {
        "type",
        "issuer_url",
        "private_key",
        "audience",
        "scope",
        "client_id",
        "client_secret",
        "tls_trust_certs_file_path",
    }
)


class AuthenticationOauth2(Authentication):
    """Authenticates with tokens of an OAuth2 issuer, by the client credentials grant."""

    method_name = "token"

    def __init__(
        self,
        auth_params_string: str | Mapping[str, Any],
        *,
        request_timeout_seconds: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        """Keep the parameters; nothing is fetched yet.

        Args:
            auth_params_string: JSON (or a mapping) of `issuer_url`, `private_key` (a path,
                `file://` or `data:` URL of JSON with `client_id` and `client_secret`) or these two
                themselves, and optionally `audience`, `scope`, `tls_trust_certs_file_path`.
                Java's spellings (`issuerUrl`, `privateKey`) are understood.
            request_timeout_seconds: Limit of each of the two requests.
            clock: Decides when a token expires; None: the machine's clock.

        Raises:
            InvalidConfigurationError: A parameter is missing, unknown, or not a text.
        """
        given = (
            json_params("auth_params_string", auth_params_string)
            if isinstance(auth_params_string, str)
            else auth_params_string
        )
        self._params = _checked(
            {_SPELLINGS.get(name, name): value for name, value in given.items()}
        )
        self._timeout_seconds = request_timeout_seconds
        self._clock = clock or SystemClock()
        # One fetch at a time.
        self._lock = asyncio.Lock()
        self._token = b""
        # The time from which on the token is replaced; seconds of the monotonic clock.
        self._stale_at = float("-inf")
        # The number of fetches: a caller that waited for the lock sees whether another one fetched.
        self._fetches_count = 0

    async def auth_data(self) -> bytes:
        """The token; fetches one if there is none, or if it expires soon."""
        if self._clock.monotonic_seconds() < self._stale_at:
            return self._token
        return await self._fetch_once()

    async def answer_challenge(self, challenge: bytes) -> bytes:
        """A new token: the broker asked for fresh credentials."""
        del challenge
        return await self._fetch_once()

    async def http_headers(self) -> Mapping[str, str]:
        """The access token as a bearer token, in the header `Authorization`."""
        return {"Authorization": "Bearer " + (await self.authenticate()).decode()}

    async def _fetch_once(self) -> bytes:
        before = self._fetches_count
        async with self._lock:
            if self._fetches_count == before:
                await self._fetch()
            return self._token

    async def _fetch(self) -> None:
        client_id, client_secret = await asyncio.to_thread(_credentials, self._params)
        form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": client_secret,
        }
        form |= {name: self._params[name] for name in ("audience", "scope") if name in self._params}
        issuer = self._params["issuer_url"]
        try:
            answer = await self._request_token(issuer, urlencode(form).encode())
        except (ClientError, ProtocolError) as error:
            raise AuthenticationDataError(f"OAuth2 issuer {issuer}: {error}") from error
        token, lifetime_seconds = _token_in(issuer, answer)
        early_seconds = min(EARLY_SECONDS, lifetime_seconds / 10)
        self._token = token
        self._stale_at = self._clock.monotonic_seconds() + lifetime_seconds - early_seconds
        self._fetches_count += 1

    async def _request_token(self, issuer: str, form: bytes) -> HttpResponse:
        context = await asyncio.to_thread(self._ssl_context, issuer)
        known = await self._send(
            HttpRequest(url=issuer.rstrip("/") + "/.well-known/openid-configuration"), context
        )
        configuration = known.json() if known.is_success else None
        endpoint = configuration.get("token_endpoint") if isinstance(configuration, dict) else None
        if not isinstance(endpoint, str):
            raise AuthenticationDataError(
                f"{known.url}: HTTP status {known.status}, no token_endpoint"
            )
        if issuer.startswith("https:") and not endpoint.startswith("https:"):
            raise AuthenticationDataError(
                f"token_endpoint {endpoint}: expected https, as the issuer has it"
            )
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self._send(
            HttpRequest(method="POST", url=endpoint, headers=headers, body=form), context
        )

    async def _send(self, request: HttpRequest, context: ssl.SSLContext | None) -> HttpResponse:
        return await http_request(
            request,
            ssl_context=context,
            timeout_seconds=self._timeout_seconds,
            body_limit_bytes=1024 * 1024,
        )

    def _ssl_context(self, issuer: str) -> ssl.SSLContext | None:
        if not issuer.startswith("https:"):
            return None
        path = self._params.get("tls_trust_certs_file_path")
        try:
            return client_ssl_context(
                TlsOptions(tls_trust_certs_file_path=path, tls_validate_hostname=True)
            )
        except InvalidConfigurationError as error:
            raise UnusableCredentialsError(f"OAuth2 parameter {error}") from error

    def __repr__(self) -> str:
        return f"AuthenticationOauth2(issuer_url={self._params['issuer_url']!r})"


def _checked(params: Mapping[str, Any]) -> dict[str, str]:
    for name, value in params.items():
        if name not in _NAMES:
            raise InvalidConfigurationError(
                f"OAuth2 parameter {name!r} is unknown: expected one of {sorted(_NAMES)}"
            )
        if not isinstance(value, str) or not value:
            raise InvalidConfigurationError(f"OAuth2 parameter {name}: expected a non-empty text")
    if urlsplit(params.get("issuer_url", "")).scheme not in {"http", "https"}:
        raise InvalidConfigurationError(
            "OAuth2 parameter issuer_url: expected an http:// or https:// URL, "
            f"got {params.get('issuer_url')!r}"
        )
    if "private_key" not in params and not {"client_id", "client_secret"} <= params.keys():
        raise InvalidConfigurationError(
            "OAuth2 parameter private_key is missing: give it, or client_id and client_secret"
        )
    return dict(params)


def _credentials(params: Mapping[str, str]) -> tuple[str, str]:
    """Client id and secret; reads a file, which may have been replaced since the last time."""
    if "private_key" not in params:
        return params["client_id"], params["client_secret"]
    try:
        values = parse_json(_key_document(params["private_key"]))
        return str(values["client_id"]), str(values["client_secret"])
    except OSError as error:
        raise UnusableCredentialsError(f"OAuth2 private_key: {error}") from error
    except (ValueError, KeyError, TypeError):
        # Without the cause: its text would quote a secret.
        raise UnusableCredentialsError(
            "OAuth2 private_key: expected a JSON object with client_id and client_secret"
        ) from None


def _key_document(where: str) -> bytes:
    if where.startswith("data:"):
        head, _, data = where.partition(",")
        return b64decode(data) if head.endswith(";base64") else unquote(data).encode()
    if where.startswith("file:"):
        where = unquote(urlsplit(where).path)
    return Path(where).read_bytes()


def _token_in(issuer: str, answer: HttpResponse) -> tuple[bytes, float]:
    try:
        value = answer.json()
    except ProtocolError:
        value = None
    if not isinstance(value, dict):
        value = {}
    token, lifetime = value.get("access_token"), value.get("expires_in", 0)
    if not answer.is_success or not isinstance(token, str) or not token:
        problem = value.get("error_description") or value.get("error") or "no access_token"
        kind = UnusableCredentialsError if answer.status in _REFUSED else AuthenticationDataError
        raise kind(f"OAuth2 issuer {issuer}: HTTP status {answer.status}: {problem}")
    try:
        return token.encode(), max(0.0, float(lifetime))
    except (TypeError, ValueError):
        return token.encode(), 0.0  # without a lifetime: fetched for each use
