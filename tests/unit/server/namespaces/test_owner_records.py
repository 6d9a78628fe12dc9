from __future__ import annotations

import asyncio

from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses
from pulsar_py.server.namespaces.owner_record import OwnerRecord
from pulsar_py.server.namespaces.owner_records import OwnerRecords
from pulsar_py.testing.clock import VirtualClock

PATH = paths.bundle_owner(NamespaceName("t", "n"), "0x00000000_0xffffffff")


def record(host: str) -> OwnerRecord:
    return OwnerRecord(LocalAddresses(default=BrokerAddresses(broker_url=f"pulsar://{host}:1")))


async def test_records_follow_the_store(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    records = OwnerRecords(store)
    records.start()
    assert await records.get(PATH) is None
    await store.put(PATH, record("a").encode())
    assert await records.get(PATH) == record("a")
    await store.put(PATH, record("b").encode())
    assert await records.get(PATH) == await records.get_newest(PATH) == record("b")
    await store.delete(PATH)
    assert await records.get(PATH) is None
    records.close()
    await store.close()


class CountingStore(MemoryMetadataStore):
    """Counts syncs, each of which takes a while."""

    syncs_count = 0

    async def sync(self, path: str) -> None:
        self.syncs_count += 1
        await asyncio.sleep(0)
        await super().sync(path)


async def test_those_who_want_the_newest_at_the_same_time_read_it_together(
    virtual_clock: VirtualClock,
) -> None:
    store = CountingStore(virtual_clock)
    await store.put(PATH, record("a").encode())
    records = OwnerRecords(store)
    records.start()
    found = await asyncio.gather(*(records.get_newest(PATH) for _ in range(100)))
    assert found == [record("a")] * 100
    assert store.syncs_count == 2, "for the first one, and for all who came meanwhile"
    records.close()
    await store.close()


async def test_who_waits_is_told_of_the_change(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    await store.put(PATH, record("a").encode())
    records = OwnerRecords(store)
    records.start()
    since = records.changes_count
    assert not await records.wait_for_change(PATH, since=since, timeout_seconds=5)
    waiting = asyncio.get_running_loop().create_task(
        records.wait_for_change(PATH, since=since, timeout_seconds=5)
    )
    await virtual_clock.sleep(1)
    assert not waiting.done()
    await store.delete(PATH)
    assert await waiting
    assert await records.wait_for_change(PATH, since=since, timeout_seconds=5)  # since long ago
    assert not records._waiting
    records.close()
    await store.close()
