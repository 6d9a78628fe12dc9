"""These tests run in virtual time, on a broker's topics in memory."""

from __future__ import annotations

from tests.unit.server.topics.conftest import (
    pytest_asyncio_loop_factories,
    rig,
    virtual_clock,
)

__all__ = ["pytest_asyncio_loop_factories", "rig", "virtual_clock"]
