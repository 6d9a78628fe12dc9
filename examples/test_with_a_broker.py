"""Tests of your own against a fresh broker each; the fixtures come with the package.

.venv/bin/pytest examples/test_with_a_broker.py
"""

import pulsar
import pytest

from pulsar_py import Client
from pulsar_py.testing import BrokerThread, RestartableBroker


def test_an_order_arrives(pulsar_broker: BrokerThread) -> None:
    """The broker has a thread of its own, so blocking clients work."""
    client = pulsar.Client(pulsar_broker.service_url)
    consumer = client.subscribe("orders", "billing")
    client.create_producer("orders").send(b"one coffee")
    assert consumer.receive(timeout_millis=10_000).data() == b"one coffee"
    client.close()


@pytest.mark.asyncio  # not needed where asyncio_mode is "auto"
async def test_with_the_asyncio_client(async_pulsar_broker: RestartableBroker) -> None:
    """The broker and the client run in the loop of the test; needs pytest-asyncio."""
    async with Client(async_pulsar_broker.service_url) as client:
        consumer = await client.subscribe("orders", "billing")
        producer = await client.create_producer("orders")
        await producer.send(b"one coffee")
        message = await consumer.receive(timeout_millis=10_000)
        assert message.data() == b"one coffee"


@pytest.mark.pulsar_broker(config={"brokerDeduplicationEnabled": True})
def test_an_order_survives_a_restart(pulsar_broker: BrokerThread) -> None:
    """Settings by the marker; `restart` keeps what was confirmed."""
    client = pulsar.Client(pulsar_broker.service_url)
    consumer = client.subscribe("orders", "billing")
    client.create_producer("orders").send(b"one coffee")
    pulsar_broker.restart()
    assert consumer.receive(timeout_millis=30_000).data() == b"one coffee"
    client.close()
