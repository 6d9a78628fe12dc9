from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError, ServiceNotReadyError
from pulsar_py.server.namespaces.lookup import (
    BrokerAddresses,
    LocalAddresses,
    parse_advertised_listeners,
    select_listener,
)

DEFAULT = BrokerAddresses(broker_url="pulsar://a:1")
OUTSIDE = BrokerAddresses(broker_url="pulsar://b:2")


def test_ports_that_other_machines_reach_are_told_by_what_they_are_bound_to() -> None:
    bound = (
        "pulsar://127.0.0.1:1",
        "http://[::1]:2",
        "pulsar://0.0.0.0:3",
        "http://[::]:4",
        "pulsar+ssl://0.0.0.0:5",
        "https://10.0.0.1:6",
    )
    advertised = BrokerAddresses(broker_url="pulsar://localhost:3")
    addresses = LocalAddresses(default=advertised, bound_urls=bound)
    assert addresses.outside_urls == list(bound[2:])
    assert addresses.outside_clear_text_urls == list(bound[2:4])


def test_a_listener_is_selected_by_name() -> None:
    addresses = LocalAddresses(default=DEFAULT, by_listener={"outside": OUTSIDE})
    assert select_listener(addresses, None) is DEFAULT
    assert select_listener(addresses, "") is DEFAULT
    assert select_listener(addresses, "outside") == OUTSIDE
    with pytest.raises(ServiceNotReadyError, match="no-such-listener"):
        select_listener(addresses, "no-such-listener")


def test_a_listener_without_an_address_of_http_has_the_brokers() -> None:
    default = BrokerAddresses(broker_url="pulsar://a:1", http_url="http://a:3")
    own = BrokerAddresses(broker_url="pulsar://c:4", http_url="http://c:5")
    addresses = LocalAddresses(default=default, by_listener={"outside": OUTSIDE, "own": own})
    found = select_listener(addresses, "outside")
    assert found == BrokerAddresses(broker_url="pulsar://b:2", http_url="http://a:3")
    assert select_listener(addresses, "own") == own


def test_advertised_listeners_are_read() -> None:
    text = "in:pulsar://a:1, in:pulsar+ssl://a:2,out:http://[::1]:3,out:https://c:4"
    assert parse_advertised_listeners(text) == {
        "in": BrokerAddresses(broker_url="pulsar://a:1", broker_url_tls="pulsar+ssl://a:2"),
        "out": BrokerAddresses(
            broker_url=None, http_url="http://[::1]:3", http_url_tls="https://c:4"
        ),
    }
    assert parse_advertised_listeners("") == {}


@pytest.mark.parametrize("text", ["pulsar://a:1", "in:ftp://a:1", ":pulsar://a:1", "in"])
def test_what_is_no_listener_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_advertised_listeners(text)
