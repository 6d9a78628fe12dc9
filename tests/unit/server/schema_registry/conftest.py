from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.ledger_ids import CountedLedgerIds


@pytest.fixture(params=["memory", "sqlite"])
async def metadata(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MetadataStore]:
    """Both stores, in turn."""
    clock = SystemClock()
    store: MetadataStore = (
        await SqliteMetadataStore.open(tmp_path / "metadata.sqlite", clock)
        if request.param == "sqlite"
        else MemoryMetadataStore(clock)
    )
    yield store
    await store.close()


@pytest.fixture
async def bookie() -> AsyncIterator[Bookie]:
    store = await Bookie.start(
        MemoryDisk(),
        clock=SystemClock(),
        ledger_ids=CountedLedgerIds(),
        settings=BookieSettings(is_volatile=True),
    )
    yield store
    await store.close()
