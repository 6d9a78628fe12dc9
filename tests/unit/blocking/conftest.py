"""One broker for all of them, a blocking client for each test, and a topic of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pulsar_py import blocking
from pulsar_py.testing import BrokerThread


@pytest.fixture
def client(session_pulsar_broker: BrokerThread) -> Iterator[blocking.Client]:
    with blocking.Client(session_pulsar_broker.service_url) as client:
        yield client


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"blocking-{request.node.module.__name__.rpartition('.')[2]}-{request.node.name}"
