"""`TrustedProxies`: the addresses of proxies that may name a client's address (pure).

Anybody can send a PROXY header or `X-Forwarded-For`: both count only on connections that come from
a listed address. Of `X-Forwarded-For` the rightmost address that is no listed one is the client's,
because each proxy appends the peer that it saw, and what stands further left is the client's own
word.

Source: HAProxyMessage in Pulsar's ServerCnx; ForwardedRequestCustomizer of its web server, which
trusts everybody.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Self

from pulsar_py.common.errors import ConfigurationError

__all__ = ["TrustedProxies"]

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class TrustedProxies:
    """The listed addresses and networks; immutable."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        """Without any address, no peer is trusted."""
        self._networks = tuple(networks)

    @classmethod
    def parse(cls, name: str, texts: Iterable[str]) -> Self:
        """What setting `name` lists: addresses, and networks as `10.0.0.0/8`.

        Raises:
            ConfigurationError: An entry is neither.
        """
        networks = []
        for text in sorted(texts):
            try:
                networks.append(ipaddress.ip_network(text))
            except ValueError as error:
                raise ConfigurationError(f"{name}: {error}") from None
        return cls(networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def includes(self, host: str) -> bool:
        """Whether an address is listed; False for a text that is not an address."""
        address = _parsed(host)
        return address is not None and any(address in network for network in self._networks)

    def client_of(self, host: str, forwarded_for: str) -> str:
        """Whose request a peer at `host` passes on, by the header's value."""
        found = host
        for text in reversed(forwarded_for.split(",")):
            address = _parsed(_without_port(text.strip()))
            if not self.includes(found) or address is None:
                break
            found = str(address)
        return found


def _parsed(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _without_port(text: str) -> str:
    """`192.0.2.1:80` and `[2001:db8::1]:80` without what follows."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
