"""proxy_protocol: headers of both versions, whole, cut short and wrong."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.network.proxy_protocol import (
    MAX_HEADER_BYTES,
    BadProxyHeaderError,
    ProxyHeader,
    header_in,
)

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"


def binary(
    source: str = "192.0.2.1", port: int = 4711, *, head: bytes | None = None, more: bytes = b""
) -> bytes:
    """A header of version 2."""
    address = ipaddress.ip_address(source).packed
    family = b"\x11" if len(address) == 4 else b"\x21"
    body = 2 * address + port.to_bytes(2, "big") + (6650).to_bytes(2, "big") + more
    return SIGNATURE + (head or b"\x21" + family) + len(body).to_bytes(2, "big") + body


WHOLE = [
    (b"PROXY TCP4 192.0.2.1 198.51.100.7 4711 6650\r\n", ("192.0.2.1", 4711)),
    (b"PROXY TCP6 2001:db8::1 2001:db8::2 4711 6650\r\n", ("2001:db8::1", 4711)),
    (b"PROXY UNKNOWN\r\n", None),
    (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None),
    (binary(), ("192.0.2.1", 4711)),
    (binary("2001:db8::1"), ("2001:db8::1", 4711)),
    (binary(more=b"\x04\x00\x01x"), ("192.0.2.1", 4711)),
    (binary(head=b"\x20\x00"), None),  # LOCAL
    (binary(head=b"\x21\x31"), None),  # Unix
    (binary(head=b"\x21\x12"), None),  # datagrams
]


@pytest.mark.parametrize(("header", "client"), WHOLE)
def test_a_header_names_the_client(header: bytes, client: tuple[str, int] | None) -> None:
    assert header_in(header) == ProxyHeader(len(header), client)
    assert header_in(header + b"\x00\x00\x00\x05rest") == ProxyHeader(len(header), client)
    for end in range(1, len(header)):
        wanted = header_in(header[:end])
        assert isinstance(wanted, int)
        assert end < wanted <= len(header)


@pytest.mark.parametrize(
    "header",
    [
        b"PROXY TCP4 192.0.2.1 198.51.100.7 4711\r\n",
        b"PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
        b"PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n",
        b"PROXY TCP4 192.0.2.1 x 1 2\r\n",
        b"PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n",
        b"PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 ٣ 2\r\n".encode(),
        b"PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",
        b"PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
        b"PROXY " + 110 * b"x",
        binary(head=b"\x11\x11"),
        binary(head=b"\x22\x11"),
        SIGNATURE + b"\x21\x11\xff\xff",
        SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11),
    ],
)
def test_what_begins_as_a_header_and_is_none(header: bytes) -> None:
    with pytest.raises(BadProxyHeaderError):
        header_in(header)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1", b"\x16\x03\x01", b"\x00\x00\x00\x10", b"PX"])
def test_other_bytes_are_the_clients(data: bytes) -> None:
    assert header_in(data) is None


@given(st.binary(max_size=200), st.sampled_from([b"", b"PROXY ", SIGNATURE]))
def test_nothing_else_happens(data: bytes, start: bytes) -> None:
    try:
        found = header_in(start + data)
    except BadProxyHeaderError:
        return
    if isinstance(found, ProxyHeader):
        assert found.size <= len(start + data)
    elif found is not None:
        assert len(start + data) < found <= MAX_HEADER_BYTES
