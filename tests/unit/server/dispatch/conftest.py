"""These tests run in virtual time, on real stores in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsar_py.testing.clock import (
    VirtualClock,
    pytest_asyncio_loop_factories,
    virtual_clock,
)
from tests.dispatch_parts import Topic

__all__ = ["pytest_asyncio_loop_factories", "topic", "virtual_clock"]


@pytest.fixture
async def topic(virtual_clock: VirtualClock) -> AsyncIterator[Topic]:
    """A topic without subscriptions and entries."""
    started = await Topic(virtual_clock).open()
    yield started
    await started.close()
