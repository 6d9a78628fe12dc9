"""The fixture of a topic on real stores in memory; import it where tests run in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsar_py.testing.clock import VirtualClock
from tests.dispatch_parts import Topic


@pytest.fixture
async def topic(virtual_clock: VirtualClock) -> AsyncIterator[Topic]:
    """A topic without subscriptions and entries."""
    started = await Topic(virtual_clock).open()
    yield started
    await started.close()
