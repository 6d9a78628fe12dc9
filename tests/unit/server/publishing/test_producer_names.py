from __future__ import annotations

import asyncio

from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.publishing.producer_names import ProducerNames
from pulsar_py.testing.clock import VirtualClock


async def test_names_never_repeat_within_and_between_brokers(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    first, second = ProducerNames(store, "c"), ProducerNames(store, "c")
    names = await asyncio.gather(*(each.new_name() for each in (first, second) for _ in range(20)))
    assert len(set(names)) == 40
    assert all(name.startswith("c-") and name.count("-") == 2 for name in names)
    await store.close()
