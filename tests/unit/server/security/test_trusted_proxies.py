"""trusted_proxies: whose word about a client's address counts."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.security.trusted_proxies import TrustedProxies

PROXIES = TrustedProxies.parse("listed", ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"])


@pytest.mark.parametrize(
    ("host", "is_listed"),
    [
        ("10.1.2.3", True),
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("2001:db8::5", True),
        ("::ffff:10.1.2.3", True),
        ("::1", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_listed_addresses(host: str, *, is_listed: bool) -> None:
    assert PROXIES.includes(host) is is_listed


@pytest.mark.parametrize(
    ("host", "header", "client"),
    [
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"),  # the left one is the client's word
        ("10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        ("10.0.0.1", "[2001:db9::1]:4711", "2001:db9::1"),
        ("10.0.0.1", "2001:db9::1", "2001:db9::1"),
        ("10.0.0.1", "nonsense", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9, nonsense", "10.0.0.1"),
        ("198.51.100.1", "203.0.113.9", "198.51.100.1"),  # an unlisted peer
    ],
)
def test_the_client_is_the_last_that_no_proxy_stands_for(
    host: str, header: str, client: str
) -> None:
    assert PROXIES.client_of(host, header) == client


def test_without_a_list_nobody_is_believed() -> None:
    assert not TrustedProxies()
    assert not TrustedProxies().includes("127.0.0.1")
    assert TrustedProxies().client_of("127.0.0.1", "203.0.113.9") == "127.0.0.1"


@pytest.mark.parametrize("text", ["10.0.0.1/8", "localhost", "*"])
def test_what_is_no_address_is_an_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^listed: "):
        TrustedProxies.parse("listed", [text])
