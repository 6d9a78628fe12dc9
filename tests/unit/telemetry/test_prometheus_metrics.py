"""A client's metrics in Prometheus' text format."""

from __future__ import annotations

import subprocess
import sys

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import pulsar_py.telemetry
from pulsar_py import blocking
from pulsar_py.telemetry import ClientCollector
from pulsar_py.testing import BrokerThread


def test_a_scrape_has_them(session_pulsar_broker: BrokerThread) -> None:
    registry = CollectorRegistry()
    with blocking.Client(session_pulsar_broker.service_url) as client:
        collector = ClientCollector(client)
        registry.register(collector)
        producer = client.create_producer("scraped", producer_name="p")
        for _ in range(3):
            producer.send(b"12345")
        text = generate_latest(registry).decode()
        registry.unregister(collector)
    labels = (
        'messaging_client_id="p",messaging_destination_name="persistent://public/default/scraped"'
        ',messaging_system="pulsar"'
    )
    assert f"messaging_client_sent_messages_total{{{labels}}} 3.0" in text
    assert f"pulsar_client_sent_size_bytes_total{{{labels}}} 15.0" in text
    assert 'pulsar_client_connections{messaging_system="pulsar"} 1.0' in text
    assert "# TYPE pulsar_client_receiver_queue gauge" in text


def test_importing_the_package_loads_no_extra_and_says_which_is_missing() -> None:
    program = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "import pulsar_py.telemetry as t\n"
        "assert not {'opentelemetry', 'pulsar_py.client.client'} & set(sys.modules)\n"
        "try:\n    t.ClientCollector\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'pulsar_py[prometheus]'" in done.stdout
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = pulsar_py.telemetry.Nothing
    assert dir(pulsar_py.telemetry) == sorted(pulsar_py.telemetry.__all__)
