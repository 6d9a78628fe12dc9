"""Requests that a browser sends for a page of another site: refused unless that site is listed.

A page that somebody has open in a browser can send requests to every address that the browser
reaches, a broker on loopback among them, and many calls change something without a body. Browsers
say where a request comes from: `Sec-Fetch-Site` in all of them, `Origin` in those that may change
something. Other clients send neither.

Source: Fetch Metadata Request Headers of the W3C; `Origin` in RFC 6454.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

__all__ = ["refusal_of"]

_FROM_ELSEWHERE: Final = "cross-site"


def refusal_of(headers: Mapping[str, str], allowed: AbstractSet[str]) -> str | None:
    """Why a request is refused, None if it is not; header names are in lower case.

    `allowed` are origins such as `https://tools.example:8443`, in lower case.
    """
    origin = headers.get("origin", "").strip().lower()
    if origin and origin in allowed:
        return None
    if origin and origin.partition("://")[2] != headers.get("host", "").strip().lower():
        return _reason(f"the page is of {origin[:200]!r}, not of this broker")
    if headers.get("sec-fetch-site", "").strip().lower() == _FROM_ELSEWHERE:
        return _reason("the browser says that a page of another site sent it")
    return None


def _reason(what: str) -> str:
    return f"Refused: {what}; webServiceAllowedOrigins lists the origins that may call"
