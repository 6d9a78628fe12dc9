"""MemoryMetadataStore; what it shares with the durable one is in the contract suite."""

from __future__ import annotations

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.memory_store import MemoryMetadataStore


async def test_a_value_is_a_copy() -> None:
    store = MemoryMetadataStore(SystemClock())
    value = bytearray(b"1")
    await store.put("/a", value)  # type: ignore[arg-type]
    value[0] = 0
    found = await store.get("/a")
    assert found is not None
    assert found.value == b"1"


async def test_two_stores_know_nothing_of_each_other() -> None:
    one, other = MemoryMetadataStore(SystemClock()), MemoryMetadataStore(SystemClock())
    await one.put("/a", b"")
    assert not await other.exists("/a")
