"""Tests of your own against a fresh broker each; the fixtures come with the package.

.venv/bin/pytest examples/test_with_a_broker.py
"""

import asyncio

import pulsar
import pytest

from pulsar_py import Broker
from pulsar_py.testing.broker_thread import BrokerThread


def test_an_order_arrives(pulsar_broker: BrokerThread) -> None:
    """The broker has a thread of its own, so blocking clients work."""
    client = pulsar.Client(pulsar_broker.service_url)
    consumer = client.subscribe("orders", "billing")
    client.create_producer("orders").send(b"one coffee")
    assert consumer.receive(timeout_millis=10_000).data() == b"one coffee"
    client.close()


@pytest.mark.asyncio  # not needed where asyncio_mode is "auto"
async def test_in_my_own_loop(async_pulsar_broker: Broker) -> None:
    """The broker runs in the loop of the test; needs pytest-asyncio."""
    host, port = async_pulsar_broker.service_url.removeprefix("pulsar://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.close()
