"""`Issuers`: the keys of the issuers whose tokens are taken, fetched and kept (edge).

    GET <issuer>/.well-known/openid-configuration   -> issuer, jwks_uri
    GET <jwks_uri>                                  -> keys

Keys are fetched when the first token of an issuer comes, again in the background when they are
older than `refresh_seconds`, and before they are used once they are older than
`expiration_seconds`. A key id that is not among them fetches them anew at most once every
`miss_seconds`, so that nobody makes the broker send requests by inventing ids; a fetch that failed
is tried again after a second. Connections that wait for the same fetch share it.

What always holds: only issuers of the list are asked; at most one fetch of an issuer is under way.

Source: OpenIDProviderMetadataCache, JwksCache in Pulsar's pulsar-broker-auth-oidc; OpenID Connect
Discovery 1.0.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from pulsar_py.common.errors import (
    AuthenticationError,
    ClientError,
    InvalidConfigurationError,
    ProtocolError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.network.http_client import HttpRequest, HttpResponse, http_request
from pulsar_py.common.network.tls import TlsOptions, client_ssl_context
from pulsar_py.server.security.issuer_keys import IssuerKey, parse_key_set

if TYPE_CHECKING:
    import ssl

__all__ = ["FetchKeys", "IssuerFetcher", "IssuerTimes", "Issuers", "KeysByIssuer"]

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""The least time between two fetches of an issuer after one that failed."""
_DOCUMENT_LIMIT_BYTES: Final = 1024 * 1024
_DISCOVERY: Final = "/.well-known/openid-configuration"

Keys = Mapping[str, IssuerKey]
FetchKeys = Callable[[str], Awaitable[Keys]]
"""Fetches an issuer's keys; raises AuthenticationError."""


class KeysByIssuer(Protocol):
    """Gives the keys of issuers."""

    async def key(self, issuer: str, key_id: str) -> IssuerKey:
        """A key of an issuer.

        Raises:
            AuthenticationError: There is none of that id, or it can't be fetched now.
        """

    def has_dropped(self, issuer: str, key_id: str, key: IssuerKey) -> bool:
        """Whether a key that was given is known to be the issuer's no more; must not block."""

    async def close(self) -> None:
        """End the fetches that are under way."""


class IssuerTimes(Struct, frozen=True, kw_only=True):
    """How long keys are kept, by the settings `openIDCache…` and `openIDKeyId…`."""

    refresh_seconds: float = 64_800.0
    expiration_seconds: float = 86_400.0
    miss_seconds: float = 300.0
    max_issuers: int = 5


@dataclass(slots=True)
class _Kept:
    """What is known of an issuer."""

    keys: Keys | None = None  # None before they were fetched
    fetched_at: float = float("-inf")  # seconds of the monotonic clock
    failed_at: float = float("-inf")  # the last failure, likewise
    error: str = ""  # of the last failure
    fetch: asyncio.Task[None] | None = None  # under way


class Issuers:
    """The keys of issuers; owned by the provider, which asks only for those that it allows."""

    def __init__(self, fetch: FetchKeys, times: IssuerTimes, clock: Clock) -> None:
        """Nothing is fetched yet."""
        self._fetch = fetch
        self._times = times
        self._clock = clock
        self._kept: dict[str, _Kept] = {}  # the one that was used last stands last
        self._tasks = TaskOwner("issuers")

    async def key(self, issuer: str, key_id: str) -> IssuerKey:
        """A key of an issuer, fetched if need be.

        Raises:
            AuthenticationError: There is none of that id, or it can't be fetched now.
        """
        kept = self._kept_of(issuer)
        keys = await self._fresh(issuer, kept)
        if key_id in keys:
            return keys[key_id]
        if self._clock.monotonic_seconds() - kept.fetched_at >= self._times.miss_seconds:
            keys = await self._fetched(issuer, kept)
            if key_id in keys:
                return keys[key_id]
        raise AuthenticationError(f"{issuer} has no key {key_id!r}")

    def has_dropped(self, issuer: str, key_id: str, key: IssuerKey) -> bool:
        """Whether the issuer's keys were fetched since, and this one is not among them."""
        kept = self._kept.get(issuer)
        return kept is not None and kept.keys is not None and kept.keys.get(key_id) != key

    async def _fresh(self, issuer: str, kept: _Kept) -> Keys:
        """Keys that have not expired; older ones are fetched again in the background."""
        age_seconds = self._clock.monotonic_seconds() - kept.fetched_at
        if kept.keys is None or age_seconds >= self._times.expiration_seconds:
            return await self._fetched(issuer, kept)
        if age_seconds >= self._times.refresh_seconds and self._may_try(kept):
            self._begin(issuer, kept)
        return kept.keys

    async def _fetched(self, issuer: str, kept: _Kept) -> Keys:
        """Keys as they are now.

        Raises:
            AuthenticationError: They can't be fetched, or could not a moment ago.
        """
        before = kept.failed_at
        if self._may_try(kept):
            self._begin(issuer, kept)
        if kept.fetch is not None:
            # Whoever is cut off meanwhile must not end it for the others.
            await asyncio.shield(kept.fetch)
            if kept.failed_at == before and kept.keys is not None:
                return kept.keys
        raise AuthenticationError(f"{issuer}: {kept.error}")

    def _may_try(self, kept: _Kept) -> bool:
        waited_seconds = self._clock.monotonic_seconds() - kept.failed_at
        return kept.fetch is None and waited_seconds >= RETRY_SECONDS

    def _begin(self, issuer: str, kept: _Kept) -> None:
        kept.fetch = self._tasks.spawn(self._take(issuer, kept), f"keys of {issuer}")

    async def _take(self, issuer: str, kept: _Kept) -> None:
        try:
            keys = await self._fetch(issuer)
        except AuthenticationError as error:
            kept.failed_at, kept.error = self._clock.monotonic_seconds(), str(error)
            logger.warning("keys not fetched", extra={"issuer": issuer, "error": kept.error})
        else:
            kept.keys, kept.fetched_at = keys, self._clock.monotonic_seconds()
            logger.info("keys fetched", extra={"issuer": issuer, "keys": len(keys)})
        finally:
            kept.fetch = None

    def _kept_of(self, issuer: str) -> _Kept:
        """What is known of an issuer; the one that was not used for longest makes room."""
        kept = self._kept.pop(issuer, None) or _Kept()
        self._kept[issuer] = kept
        while len(self._kept) > max(1, self._times.max_issuers):
            del self._kept[next(iter(self._kept))]
        return kept

    async def close(self) -> None:
        """End the fetches that are under way."""
        await self._tasks.close()


class IssuerFetcher:
    """Fetches keys over HTTP; owned by `Issuers`."""

    def __init__(
        self,
        *,
        trust_path: str,
        needs_https: bool,
        connect_seconds: float,
        read_seconds: float,
    ) -> None:
        """`trust_path` is a PEM file of authorities; empty: those of the system."""
        self._trust_path = trust_path
        self._needs_https = needs_https
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds

    async def __call__(self, issuer: str) -> Keys:
        """The keys that an issuer has now.

        Raises:
            AuthenticationError: It can't be reached, or answers something else.
        """
        try:
            # Read for each fetch, off the loop: a renewed authority counts from the next one on.
            context = await asyncio.to_thread(self._context)
            url = issuer.rstrip("/") + _DISCOVERY
            place = _place_of_keys(await self._get(url, context), issuer)
            if self._needs_https and not place.startswith("https://"):
                raise AuthenticationError(f"jwks_uri={place}: expected https")
            answer = await self._get(place, context)
            return await asyncio.to_thread(parse_key_set, answer.body)
        except (ClientError, ProtocolError, InvalidConfigurationError, ValueError) as error:
            raise AuthenticationError(str(error)) from error

    async def _get(self, url: str, context: ssl.SSLContext) -> HttpResponse:
        answer = await http_request(
            HttpRequest(url=url),
            timeout_seconds=self._connect_seconds + self._read_seconds,
            connect_timeout_seconds=self._connect_seconds,
            ssl_context=context,
            body_limit_bytes=_DOCUMENT_LIMIT_BYTES,
            trust_options="openIDTokenIssuerTrustCertsFilePath",
        )
        if not answer.is_success:
            raise AuthenticationError(f"{url}: HTTP status {answer.status}")
        return answer

    def _context(self) -> ssl.SSLContext:
        path = self._trust_path or None
        return client_ssl_context(
            TlsOptions(tls_trust_certs_file_path=path, tls_validate_hostname=True)
        )


def _place_of_keys(answer: HttpResponse, issuer: str) -> str:
    """The URL of the keys in a discovery document, which has to be the issuer's own."""
    document = answer.json()
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        named = document.get("issuer") if isinstance(document, dict) else None
        raise AuthenticationError(f"{answer.url} is of the issuer {named!r}, not {issuer}")
    place = document.get("jwks_uri")
    if not isinstance(place, str) or not place.startswith(("https://", "http://")):
        raise AuthenticationError(f"{answer.url}: no jwks_uri")
    return place
