"""Reads heads of requests: targets of both forms, and what a proxy may see otherwise (pure).

A proxy in front may have checked the other one of two credentials, or seen a second request where
this server sees a body or a header. Clients send none of these, and whoever does gets 400:

    a line that ends with LF alone          RFC 9112, 2.2: a proxy may take it for part of a value
    a line that goes on with the next one   RFC 9112, 5.2
    a length beside chunks, or chunks in HTTP/1.0    RFC 9112, 6.1
    two headers of the same name, by which somebody is let in or refused

Source: RFC 9112; Jetty, which Apache Pulsar uses, refuses the second and the third, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pulsar_py.server.security.authentication import METHOD_HEADER, PRINCIPAL_HEADER

__all__ = ["can_be_read_in_two_ways", "has_odd_lines", "head_bytes", "in_origin_form"]

Headers = Sequence[tuple[bytes, bytes]]

_ODD_LINE: Final = re.compile(rb"(?<!\r)\n|\n[ \t]")
_END: Final = b"\r\n\r\n"
_ABSOLUTE: Final = re.compile(rb"https?://([^/?]*)/?(.*)", re.IGNORECASE | re.DOTALL)
_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})
_ONCE: Final = frozenset(
    {
        b"authorization",
        METHOD_HEADER.encode(),
        PRINCIPAL_HEADER.encode(),
        b"origin",
        b"sec-fetch-site",
    }
)
"""Headers by which somebody is let in or refused."""


def has_odd_lines(received: bytes) -> bool:
    """Whether the head that these bytes begin with, be it whole or not, has lines of the kinds."""
    end = received.find(_END)
    return _ODD_LINE.search(received, 0, len(received) if end < 0 else end + 2) is not None


def head_bytes(target: bytes, headers: Headers) -> int:
    """The approximate size of a request's head in bytes."""
    return len(target) + sum(len(name) + len(value) + 4 for name, value in headers)


def can_be_read_in_two_ways(headers: Headers, http_version: bytes) -> bool:
    """Whether the headers of a request say something in two ways; names are in lower case."""
    names = [name for name, _ in headers]
    once = [name for name in names if name in _ONCE]
    if len(once) > len(set(once)):
        return True
    if b"transfer-encoding" not in names:
        return False
    return http_version == b"1.0" or _LENGTHS.issubset(names)


def said_body_bytes(headers: Headers) -> int:
    """The size of the body that a request announces, of which h11 has seen that it is a number.

    0 if it announces none. Digits beyond the twentieth make no difference to who is refused.
    """
    return next((int(value[:20]) for name, value in headers if name == b"content-length"), 0)


def in_origin_form(target: bytes, headers: Headers) -> tuple[bytes, Headers]:
    """A target without scheme and host, and headers in which the target's host is the Host.

    Proxies are sent `GET http://host/path`; its host counts, not the header's (RFC 9112, 3.2.2).
    """
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        return target, headers
    host, path = absolute.groups()
    others = [(name, value) for name, value in headers if name != b"host"]
    return b"/" + path, [*others, (b"host", host)]
