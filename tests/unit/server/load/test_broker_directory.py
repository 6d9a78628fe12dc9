from __future__ import annotations

from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.load.broker_directory import BrokerDirectory
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.testing.clock import VirtualClock


def report(broker_id: str, start_millis: int = 1) -> bytes:
    return BrokerReport(broker_id=broker_id, start_millis=start_millis).encode()


async def test_it_follows_who_comes_changes_and_goes(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    await store.put(paths.broker("a:1"), report("a:1"))
    directory = BrokerDirectory(store, virtual_clock)
    await directory.start()
    assert list(directory.brokers) == ["a:1"]
    await store.put(paths.broker("b:1"), report("b:1"))
    await store.put(paths.broker("a:1"), report("a:1", start_millis=7))
    await virtual_clock.sleep(0.1)
    assert set(directory.brokers) == {"a:1", "b:1"}
    assert directory.brokers["a:1"].start_millis == 7
    await store.delete(paths.broker("a:1"))
    await virtual_clock.sleep(0.1)
    assert set(directory.brokers) == {"b:1"}
    await directory.close()
    await store.close()


async def test_a_report_that_can_t_be_read_is_left_out(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    await store.put(paths.broker("a:1"), b"[]")
    await store.put(paths.broker("b:1"), report("b:1"))
    directory = BrokerDirectory(store, virtual_clock)
    await directory.start()
    assert set(directory.brokers) == {"b:1"}
    await directory.close()
    await store.close()
