from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import pytest

from pulsar_py.common.clock import SystemClock
from pulsar_py.common.memory_disk import MemoryDisk
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.storage.bookie import Bookie, BookieSettings


@pytest.fixture
def metadata() -> MemoryMetadataStore:
    return MemoryMetadataStore(SystemClock())


@pytest.fixture
async def bookie() -> AsyncIterator[Bookie]:
    ids = count(1)

    async def next_id() -> int:
        return next(ids)

    store = await Bookie.start(
        MemoryDisk(),
        clock=SystemClock(),
        ledger_ids=next_id,
        settings=BookieSettings(is_volatile=True),
    )
    yield store
    await store.close()
