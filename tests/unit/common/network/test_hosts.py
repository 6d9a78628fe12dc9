"""Which texts are hosts, addresses, and this machine itself."""

from __future__ import annotations

import pytest

from pulsar_py.common.network.hosts import host_of, is_address, is_loopback, is_name


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("Broker.Example:8080", "broker.example"),
        ("broker.example.", "broker.example"),
        ("[::1]:8080", "::1"),
        ("[::1]", "::1"),
        ("192.0.2.1:1", "192.0.2.1"),
        ("localhost@evil.example:80:80", ""),
        ("[::1]evil.example", ""),
        ("", ""),
    ],
)
def test_the_host_of_an_authority(authority: str, host: str) -> None:
    assert host_of(authority) == host


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "::1", "[::1]", "Broker.localhost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "localhost.example", "192.0.2.1", ""])
def test_no_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_addresses_and_names() -> None:
    assert is_address("192.0.2.1")
    assert is_address("[2001:db8::1]")
    assert not is_address("2130706433")
    assert not is_address("a.example")
    assert is_name("my_broker-1.example")
    for text in ("", "http://a", "a:80", "a/b", "*", "-a", "a.", "A"):
        assert not is_name(text), text
