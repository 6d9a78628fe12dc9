from __future__ import annotations

import json

import pytest

from pulsar_py.server.load.broker_report import BrokerReport, BundleStats, ResourceUsage

APACHE = (
    b'{"webServiceUrl":"http://127.0.0.1:45757","pulsarServiceUrl":"pulsar://127.0.0.1:57057",'
    b'"cpu":{"usage":199.8,"limit":200.0},"bandwidthIn":{"usage":0.03,"limit":-1000.0},'
    b'"lastStats":{"acme/orders/0x80000000_0xc0000000":{"msgRateIn":2.0,"consumerCount":2,'
    b'"topics":3}},"bundles":["acme/orders/0x80000000_0xc0000000"],"protocols":{},'
    b'"loadManagerClassName":"org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",'
    b'"startTimestamp":1795403772612,"loadReportType":"LocalBrokerData"}'
)


def test_what_apache_s_broker_wrote_is_read() -> None:
    report = BrokerReport.decode("127.0.0.1:45757", APACHE)
    assert report.pulsar_url == "pulsar://127.0.0.1:57057"
    assert report.pulsar_url_tls is None
    assert report.start_millis == 1795403772612
    assert report.usage == pytest.approx(0.999)
    assert report.messages_rate == 2.0
    assert not report.is_ours
    assert report.bundles["acme/orders/0x80000000_0xc0000000"].topics_count == 3


def test_what_is_written_is_read() -> None:
    report = BrokerReport(
        broker_id="a:1",
        start_millis=5,
        web_url="http://a:1",
        pulsar_url="pulsar://a:2",
        advertised_listeners={"x": {"brokerServiceUrl": "pulsar://b:3"}},
        bundles={"t/n/r": BundleStats(messages_out_rate=1.5, producers_count=2)},
        cpu=ResourceUsage(50.0, 100.0),
    )
    assert BrokerReport.decode("a:1", report.encode()) == report
    document = json.loads(report.encode())
    assert document["protocols"] == {"pulsar_py": ""}
    assert document["loadReportType"] == "LocalBrokerData"
    assert document["numProducers"] == 2
    assert document["maxResourceUsage"] == 0.5


@pytest.mark.parametrize("value", [b"", b"[]", b"{"])
def test_what_is_no_report_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expecting"):
        BrokerReport.decode("a:1", value)
