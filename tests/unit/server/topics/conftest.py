"""These tests run in virtual time, on real stores; those that take `rig` on both metadata stores.

The log's storage is in memory in both cases. Tests that build a rig of their own, with a store that
fails or with settings, run on the store in memory alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.testing.clock import (
    VirtualClock,
    pytest_asyncio_loop_factories,
    virtual_clock,
)
from tests.unit.server.topics.rig import Rig
from tests.unit.server.topics.synchronous_store import SynchronousSqliteStore

__all__ = ["pytest_asyncio_loop_factories", "rig", "virtual_clock"]


@pytest.fixture(params=["memory", "sqlite"])
async def rig(
    request: pytest.FixtureRequest, virtual_clock: VirtualClock, tmp_path: Path
) -> AsyncIterator[Rig]:
    """A broker's topics, with `public/default` owned."""
    metadata: MetadataStore = (
        await SynchronousSqliteStore.open(tmp_path / "metadata.sqlite", virtual_clock)
        if request.param == "sqlite"
        else MemoryMetadataStore(virtual_clock)
    )
    async with Rig(virtual_clock, metadata=metadata) as started:
        yield started
