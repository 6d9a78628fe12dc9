r"""The PROXY protocol: the header with which a load balancer says whom it connects for (pure).

    version 1, text     PROXY TCP4 192.0.2.1 198.51.100.7 40000 6650\r\n       at most 107 bytes
    version 2, binary   12 bytes  0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A
                        1 byte    version (high four bits, 2) and command (0 LOCAL, 1 PROXY)
                        1 byte    family (high: 1 IPv4, 2 IPv6, 3 Unix) and kind (low: 1 stream)
                        2 bytes   length of the rest, big endian
                        rest      source and destination address, their ports, further fields

The header stands before everything else, TLS too. `UNKNOWN`, `LOCAL` and other families name
nobody: the connection's own address counts.

Source: "The PROXY protocol, versions 1 and 2" of HAProxy.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from msgspec import Struct

__all__ = ["MAX_HEADER_BYTES", "BadProxyHeaderError", "ProxyHeader", "header_in"]

MAX_HEADER_BYTES: Final = 4096
"""Longer headers are refused: the addresses need 52 bytes, further fields a few hundred."""

_V1: Final = b"PROXY "
_V1_LIMIT: Final = 107
_V2: Final = b"\r\n\r\n\x00\r\nQUIT\n"
_V2_FIXED: Final = 16
_V1_PARTS: Final = 6
_FAMILIES: Final = {"TCP4": 4, "TCP6": 6}
_MAX_PORT: Final = 65_535


class BadProxyHeaderError(ValueError):
    """The bytes begin as a header, and are none."""


class ProxyHeader(Struct, frozen=True):
    """A whole header: its size, and the client's address; None if it names none."""

    size: int
    client: tuple[str, int] | None


def header_in(data: bytes) -> ProxyHeader | int | None:
    """The header at the beginning of what was received.

    None: there is none, these are the client's own bytes. A number: there may be one, which has at
    least so many bytes.

    Raises:
        BadProxyHeaderError: It begins as one, and is none.
    """
    if data.startswith(_V2):
        return _binary(data)
    if data.startswith(_V1):
        return _text(data)
    if _V1.startswith(data) or _V2.startswith(data):
        return len(data) + 1
    return None


def _text(data: bytes) -> ProxyHeader | int:
    end = data.find(b"\r\n", 0, _V1_LIMIT)
    if end < 0:
        if len(data) >= _V1_LIMIT:
            raise BadProxyHeaderError("a header of version 1 without an end")
        return len(data) + 1
    try:
        parts = data[:end].decode("ascii").split(" ")
    except UnicodeDecodeError:
        raise BadProxyHeaderError("a header of version 1 that is no ASCII") from None
    size = end + 2
    if parts[1] == "UNKNOWN":
        return ProxyHeader(size, None)
    if len(parts) != _V1_PARTS or parts[1] not in _FAMILIES:
        raise BadProxyHeaderError(f"expected PROXY TCP4 or TCP6 with two addresses, got {parts}")
    _address(parts[3], parts[1])
    _port(parts[5])
    return ProxyHeader(size, (_address(parts[2], parts[1]), _port(parts[4])))


def _address(text: str, family: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise BadProxyHeaderError(f"{text!r} is no address") from None
    if address.version != _FAMILIES[family] or "%" in text:
        raise BadProxyHeaderError(f"{text!r} is no address of {family}")
    return str(address)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MAX_PORT):
        raise BadProxyHeaderError(f"{text!r} is no port")
    return int(text)


def _binary(data: bytes) -> ProxyHeader | int:
    if len(data) < _V2_FIXED:
        return _V2_FIXED
    version, command = data[12] >> 4, data[12] & 15
    family, kind = data[13] >> 4, data[13] & 15
    size = _V2_FIXED + int.from_bytes(data[14:16], "big")
    if version != 2 or command > 1:  # noqa: PLR2004 - the format's own number
        raise BadProxyHeaderError(f"version {version}, command {command}")
    if size > MAX_HEADER_BYTES:
        raise BadProxyHeaderError(f"{size} bytes, expected at most {MAX_HEADER_BYTES}")
    if len(data) < size:
        return size
    address_size = {1: 4, 2: 16}.get(family)
    if command == 0 or kind != 1 or address_size is None:
        return ProxyHeader(size, None)
    if size < _V2_FIXED + 2 * address_size + 4:
        raise BadProxyHeaderError("the addresses are cut short")
    address = ipaddress.ip_address(data[16 : 16 + address_size])
    ports = 16 + 2 * address_size
    return ProxyHeader(size, (str(address), int.from_bytes(data[ports : ports + 2], "big")))
