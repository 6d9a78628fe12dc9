"""Service URLs and which host of them is used."""

from __future__ import annotations

from random import Random

import pytest

from pulsar_py.client.brokers.service_url import ServiceUrl, ServiceUrlHosts, host_and_port
from pulsar_py.common.errors import InvalidServiceUrlError


@pytest.mark.parametrize(
    ("text", "scheme", "hosts"),
    [
        ("pulsar://a", "pulsar", ("a:6650",)),
        ("pulsar://a:1,b:2", "pulsar", ("a:1", "b:2")),
        ("PULSAR+SSL://a, b:7/", "pulsar+ssl", ("a:6651", "b:7")),
        ("http://a", "http", ("a:80",)),
        ("https://a:8443/path", "https", ("a:8443",)),
        ("pulsar://[::1]:6650,[fe80::1]", "pulsar", ("[::1]:6650", "[fe80::1]:6650")),
        ("pulsar://[fe80::1%eth0.7]", "pulsar", ("[fe80::1%eth0.7]:6650",)),
        ("pulsar://my_broker-1.a.:1, 127.0.0.1", "pulsar", ("my_broker-1.a.:1", "127.0.0.1:6650")),
        ("http://bücher.example,हिन्दी.भारत", "http", ("bücher.example:80", "हिन्दी.भारत:80")),
        ("http://a:8080?b=c d", "http", ("a:8080",)),
    ],
)
def test_urls_are_read(text: str, scheme: str, hosts: tuple[str, ...]) -> None:
    url = ServiceUrl.parse(text)

    assert (url.scheme, url.hosts) == (scheme, hosts)
    assert ServiceUrl.parse(str(url)) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a:6650",
        "ftp://a",
        "pulsar://",
        "pulsar://a:x",
        "pulsar://a:70000",
        "pulsar://a,,b",
        "pulsar://u@a",
        "pulsar://a:0",
        "pulsar://[::1",
        "http://x y",
        "pulsar://a b:6650",
        "pulsar://a:1,b c:2",
        "pulsar://a\tb",
        "pulsar://a:66\n50",
        "pulsar://a\u3000b",
        "pulsar://a\x00b",
        "pulsar://a\x7f",
        *(f"pulsar://a{character}b" for character in "!\"$%&'()*+<=>[\\]^`{|}~"),
        "pulsar://[::1 ]",
        "pulsar://[fe80::1%a b]",
    ],
)
def test_what_is_no_url_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidServiceUrlError, match="service_url="):
        ServiceUrl.parse(text)


def test_schemes_say_what_they_ask_for() -> None:
    kinds = {
        scheme: (url.is_tls, url.is_http)
        for scheme in ("pulsar", "pulsar+ssl", "http", "https")
        if (url := ServiceUrl.parse(f"{scheme}://a"))
    }

    assert kinds == {
        "pulsar": (False, False),
        "pulsar+ssl": (True, False),
        "http": (False, True),
        "https": (True, True),
    }


def test_a_socket_gets_an_address_without_brackets() -> None:
    assert host_and_port("[::1]:6650") == ("::1", 6650)
    assert host_and_port("broker:1") == ("broker", 1)


def test_a_host_is_kept_until_it_fails_and_then_the_next_has_its_turn() -> None:
    hosts = ServiceUrlHosts(ServiceUrl.parse("pulsar://a:1,b:2,c:3"), Random(1))
    order = []
    for _ in range(4):
        order.append(hosts.current)
        hosts.on_failure(hosts.current)

    assert set(order[:3]) == {"a:1", "b:2", "c:3"}
    assert order[3] == order[0]


def test_old_news_of_another_host_changes_nothing() -> None:
    hosts = ServiceUrlHosts(ServiceUrl.parse("pulsar://a:1,b:2"), Random(1))
    failed = hosts.current
    hosts.on_failure(failed)
    now = hosts.current

    hosts.on_failure(failed)

    assert hosts.current == now != failed
