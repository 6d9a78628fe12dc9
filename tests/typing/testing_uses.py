"""What a type checker says of tests that use the broker's fixtures: read by it, and never run."""

from __future__ import annotations

from typing import assert_type

import pytest

import pulsar_py.testing
from pulsar_py.testing import BrokerOptions, BrokerThread, RestartableBroker

BrokerThread(config={"brokerDeduplicationEnabled": True}, data_dir="data")
BrokerThread(confg={})  # type: ignore[call-arg]
BrokerThread(config=3)  # type: ignore[arg-type]
RestartableBroker(port="6650")  # type: ignore[arg-type]
with BrokerThread() as running:
    assert_type(running, BrokerThread)
    assert_type(running.service_url, str)
    running.strat()  # type: ignore[attr-defined]


def misspelt(*names: object) -> None: ...


misspelt(pulsar_py.testing.BrokerThraed)  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def pulsar_broker_options() -> BrokerOptions:
    return {"config": {"maxMessageSize": 1024}}


def wrong_options() -> BrokerOptions:
    return {"confg": {}}  # type: ignore[typeddict-unknown-key]


async def test_orders(async_pulsar_broker: RestartableBroker, pulsar_broker: BrokerThread) -> None:
    await async_pulsar_broker.restart()
    pulsar_broker.restart()
