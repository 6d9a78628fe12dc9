from __future__ import annotations

import pytest

from pulsar_py.server.namespaces.joining import broker_id_of, first_report
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses

ADDRESSES = LocalAddresses(
    default=BrokerAddresses(broker_url="pulsar://a:6650", http_url="http://a:8080"),
    by_listener={"outside": BrokerAddresses(broker_url="pulsar://b:6650")},
)


def test_a_broker_is_named_by_its_http_service() -> None:
    assert broker_id_of(ADDRESSES) == "a:8080"
    only_tls = BrokerAddresses(broker_url=None, http_url_tls="https://a:8443")
    assert broker_id_of(LocalAddresses(default=only_tls)) == "a:8443"


def test_a_report_has_all_addresses() -> None:
    report = first_report(ADDRESSES, start_millis=3)
    assert (report.broker_id, report.start_millis) == ("a:8080", 3)
    assert report.pulsar_url == "pulsar://a:6650"
    assert report.advertised_listeners == {"outside": {"brokerServiceUrl": "pulsar://b:6650"}}
    assert not report.bundles


def test_without_http_a_broker_has_no_name() -> None:
    with pytest.raises(ValueError, match="web port"):
        first_report(
            LocalAddresses(default=BrokerAddresses(broker_url="pulsar://a:1")), start_millis=1
        )
