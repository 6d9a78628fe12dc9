"""Names and addresses of hosts, as URLs and `Host` headers have them (pure)."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

__all__ = ["host_of", "is_address", "is_loopback", "is_name"]

_NAME: Final = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")
_AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(:[0-9]*)?")


def host_of(authority: str) -> str:
    """The host of `host:port` in lower case, without brackets and last dot; empty if malformed."""
    found = _AUTHORITY.fullmatch(authority.strip().lower())
    return "" if found is None else found[1].strip("[]").removesuffix(".")


def is_address(host: str) -> bool:
    """Whether a host is an IP address in its usual form, not a name that has to be resolved."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def is_name(host: str) -> bool:
    """Whether a text in lower case can be a host's name."""
    return _NAME.fullmatch(host) is not None


def is_loopback(host: str) -> bool:
    """Whether an address or name is that of this machine for itself."""
    bare = host.strip("[]").lower()
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare == "localhost" or bare.endswith(".localhost")
