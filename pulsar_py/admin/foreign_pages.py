"""Decides which pages in a browser may send requests: the broker's own and listed ones (pure).

A page that somebody has open in a browser can send requests to every address that the browser
reaches, a broker on loopback among them, and many calls change something without a body. Browsers
say where a request comes from: `Sec-Fetch-Site` in all of them to trustworthy addresses, `Origin`
in those that may change something. Other clients send neither.

An attacker's page whose host name is made to resolve to the broker's address (DNS rebinding)
looks to its browser like one of the broker's own pages; only the header `Host` shows the foreign
name. So a broker without authentication refuses requests whose `Host` is a name that is not its
own: all of them if it listens on loopback alone, else those that come from a browser. Addresses in
`Host` are allowed, because they can't be made to resolve to another machine. A `Host` that is there
and empty is no name of it either; only requests of HTTP/1.0 may come without one, such as health
checks.

Only pages of listed origins get the headers of CORS.

Source: Fetch Metadata Request Headers of the W3C; `Origin` in RFC 6454; the Fetch Standard.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final, Self

from msgspec import Struct

from pulsar_py.admin.http_messages import Response
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.network.hosts import host_of, is_address, is_loopback, is_name

__all__ = ["PageRules"]

_NOT_ELSEWHERE: Final = frozenset({"", "same-origin", "none"})
"""Values of `Sec-Fetch-Site`; `same-site` is another port of this machine, or a sister's name."""

_ORIGIN: Final = r"https?://(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]{1,5})?"
_PREFLIGHT_SECONDS: Final = 600
_METHODS: Final = "GET, HEAD, POST, PUT, DELETE"
_SHOWN_CHARACTERS: Final = 200


class PageRules(Struct, frozen=True, kw_only=True):
    """The rules of one broker.

    `origins` are those whose pages may call. `hosts` are the names of the broker in `Host`, besides
    addresses and loopback's names, None where any will do. `is_local` says that it listens on
    loopback alone. All are in lower case.
    """

    origins: frozenset[str] = frozenset()
    hosts: frozenset[str] | None = None
    is_local: bool = False

    @classmethod
    def of(
        cls,
        *,
        allowed_origins: Iterable[str] = (),
        allowed_hosts: Iterable[str] = (),
        own_hosts: Iterable[str] = (),
        bound_host: str,
        is_open: bool,
    ) -> Self:
        """Make the rules from the two settings, the broker's names, and the host that it binds.

        `is_open` says that authentication is off.

        Raises:
            ConfigurationError: An entry of a setting is no origin, or no host.
        """
        origins = frozenset(map(_origin, filter(None, map(str.strip, allowed_origins))))
        listed = list(map(_host, filter(None, map(str.strip, allowed_hosts))))
        own = (host_of(each) for each in (*own_hosts, bound_host))
        hosts = frozenset((*listed, *own)) - {""}
        return cls(
            origins=origins, hosts=hosts if is_open else None, is_local=is_loopback(bound_host)
        )

    def refusal_of(self, headers: Mapping[str, str]) -> str | None:
        """Why a request is refused, None if it is not; header names are in lower case."""
        origin = headers.get("origin", "").strip().lower()
        if origin and origin in self.origins:
            return None
        host = headers.get("host", "").strip().lower()
        site = headers.get("sec-fetch-site", "").strip().lower()
        is_missing = "host" not in headers and not (origin or site)
        if (self.is_local or origin or site) and not (is_missing or self._is_own(host)):
            return (
                f"Refused: {host[:_SHOWN_CHARACTERS]!r} is no name of this broker; "
                "webServiceAllowedHosts lists further ones"
            )
        if origin and origin.partition("://")[2] != host:
            shown = origin[:_SHOWN_CHARACTERS]
            return _of_another(f"the page is of {shown!r}, not of this broker")
        if site not in _NOT_ELSEWHERE:
            return _of_another("the browser says that a page of another site sent it")
        return None

    def _is_own(self, host: str) -> bool:
        if self.hosts is None:
            return True
        name = host_of(host)
        return name in self.hosts or is_address(name) or is_loopback(name)

    def preflight(self, method: str, headers: Mapping[str, str]) -> Response | None:
        """The answer to a browser that asks what a listed origin may send; None for others."""
        if method != "OPTIONS" or "access-control-request-method" not in headers:
            return None
        permission = self.permission(headers)
        if not permission:
            return None
        asked = headers.get("access-control-request-headers", "")
        return Response(
            HTTPStatus.NO_CONTENT,
            headers=(
                *permission,
                ("Access-Control-Allow-Methods", _METHODS),
                ("Access-Control-Allow-Headers", asked),
                ("Access-Control-Max-Age", str(_PREFLIGHT_SECONDS)),
            ),
        )

    def permission(self, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """The headers by which a browser lets a page of a listed origin read the answer."""
        if not self.origins:
            return ()
        origin = headers.get("origin", "").strip()
        if origin.lower() not in self.origins:
            return ()
        return (("Access-Control-Allow-Origin", origin), ("Vary", "Origin"))


def _of_another(what: str) -> str:
    return f"Refused: {what}; webServiceAllowedOrigins lists the origins that may call"


def _origin(entry: str) -> str:
    origin = entry.removesuffix("/").lower()
    if re.fullmatch(_ORIGIN, origin) is None:
        raise ConfigurationError(
            f"webServiceAllowedOrigins: {entry!r} is no origin, expected such as "
            "https://tools.example or http://localhost:3000"
        )
    scheme, _, authority = origin.partition("://")
    default = ":443" if scheme == "https" else ":80"  # browsers leave it out
    return f"{scheme}://{authority.removesuffix(default)}"


def _host(entry: str) -> str:
    name = entry.lower().removesuffix(".")
    if not is_name(name) and not is_address(name):
        raise ConfigurationError(
            f"webServiceAllowedHosts: {entry!r} is no name of a host, expected such as "
            "broker.example, without scheme and port"
        )
    return name.strip("[]")
