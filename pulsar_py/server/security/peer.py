"""`Peer`: the address and certificate of a connection's other end (values).

Source: AuthenticationDataCommand, AuthenticationDataHttps in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

from msgspec import Struct

__all__ = ["UNKNOWN_ADDRESS", "Peer", "PeerCertificate", "named_peer", "peer_of"]

UNKNOWN_ADDRESS: Final = "/unknown:0"

_COMMON_NAME: Final = "commonName"
_Names = tuple[tuple[tuple[str, str], ...], ...]


class PeerCertificate(Struct, frozen=True):
    """A client's certificate of a TLS connection.

    `der` is its DER encoding. `subject` is that of `ssl.SSLSocket.getpeercert`: empty unless the
    certificate was verified, so a trusted authority has signed every name in it.
    """

    der: bytes
    subject: _Names = ()
    expires_at_millis: int | None = None
    """When a verified one ends."""

    @property
    def common_name(self) -> str | None:
        """The subject's CN, which is the role if certificates authenticate; None without one."""
        for names in self.subject:
            for key, value in names:
                if key == _COMMON_NAME:
                    return value
        return None


class Peer(Struct, frozen=True):
    """Address of a connection's other end as `/host:port`, and its certificate if it sent one."""

    remote_address: str = UNKNOWN_ADDRESS
    certificate: PeerCertificate | None = None

    @property
    def host(self) -> str:
        """The address without its port."""
        return self.remote_address.removeprefix("/").rpartition(":")[0]


_NOBODY: Final = Peer()


def named_peer(address: tuple[str, int] | None) -> Peer:
    """The peer at an address that a proxy named; None: it is not known yet."""
    return Peer() if address is None else Peer(f"/{address[0]}:{address[1]}")


def peer_of(transport: asyncio.BaseTransport, named: Peer = _NOBODY) -> Peer:
    """The peer of a connected transport; `named` is what a proxy said before."""
    remote_address = named.remote_address
    if remote_address == UNKNOWN_ADDRESS:
        address = transport.get_extra_info("peername")
        remote_address = f"/{address[0]}:{address[1]}" if address else UNKNOWN_ADDRESS
    connection: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    if connection is None:
        return Peer(remote_address)
    der = connection.getpeercert(binary_form=True)
    if der is None:
        return Peer(remote_address)
    verified = connection.getpeercert() or {}
    subject: _Names = verified.get("subject", ())  # type: ignore[assignment] # typeshed: any value
    ends: str | None = verified.get("notAfter")  # type: ignore[assignment] # likewise
    expires_at_millis = None if ends is None else ssl.cert_time_to_seconds(ends) * 1000
    return Peer(remote_address, PeerCertificate(der, subject, expires_at_millis))
