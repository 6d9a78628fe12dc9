"""Pytest fixtures of a broker; installed with the package, they need no configuration.

    def test_with_any_client(pulsar_broker):
        client = pulsar.Client(pulsar_broker.service_url)

    async def test_in_my_own_loop(async_pulsar_broker): ...

Each test gets a fresh broker in memory on free ports. `pulsar_broker` runs in a thread of its own,
so that blocking clients work, and tests of any asyncio framework too; `async_pulsar_broker` runs in
the test's loop and needs pytest-asyncio. This module is loaded by every pytest of the environment,
so it imports nothing of ours before a fixture is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pulsar_py.standalone import Broker
    from pulsar_py.testing.broker_thread import BrokerThread


@pytest.fixture
def pulsar_broker() -> Iterator[BrokerThread]:
    """A fresh broker in memory, with `service_url` and `web_service_url`."""
    from pulsar_py.testing.broker_thread import BrokerThread  # noqa: PLC0415 - see the module

    with BrokerThread() as broker:
        yield broker


async def _async_pulsar_broker() -> AsyncIterator[Broker]:
    """A fresh broker in memory, in the loop of the test."""
    from pulsar_py.standalone import Broker  # noqa: PLC0415 - see the module

    async with Broker() as broker:
        yield broker


def _without_pytest_asyncio() -> None:
    """Replaces `async_pulsar_broker` if pytest-asyncio is missing: fails with the reason."""
    pytest.fail("async_pulsar_broker needs pytest-asyncio: pip install pytest-asyncio")


try:
    import pytest_asyncio
except ImportError:
    async_pulsar_broker: Any = pytest.fixture(  # Any: one of two kinds of fixture
        _without_pytest_asyncio, name="async_pulsar_broker"
    )
else:
    async_pulsar_broker = pytest_asyncio.fixture(_async_pulsar_broker, name="async_pulsar_broker")
