"""These tests run in virtual time, with the topics of a broker on stores in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsar_py.testing.clock import VirtualClock, pytest_asyncio_loop_factories, virtual_clock
from tests.unit.server.topics.rig import Rig

__all__ = ["pytest_asyncio_loop_factories", "rig", "virtual_clock"]


@pytest.fixture
async def rig(virtual_clock: VirtualClock) -> AsyncIterator[Rig]:
    """A broker's topics, with `public/default` owned."""
    async with Rig(virtual_clock) as started:
        yield started
