"""Consumers' tests run in virtual time, over a network in memory; the others on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

import pytest

from pulsar_py.testing.network import SimulatedLoop

IN_MEMORY = {"test_consumer", "test_consumer_positions", "test_consumer_redelivery"}
"""Modules whose waits, for deliveries again and for silence, would be real seconds."""


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """A hook of pytest-asyncio."""
    if item.path.stem in IN_MEMORY:
        return {"memory": partial(SimulatedLoop, latency_seconds=0.0001)}
    return {"sockets": asyncio.new_event_loop}
