from __future__ import annotations

from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.load.broker_directory import BrokerDirectory
from pulsar_py.server.load.broker_report import BrokerReport, BundleStats
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


async def test_the_topics_of_a_dead_brokers_bundles_are_remembered(
    virtual_clock: VirtualClock,
) -> None:
    store = MemoryMetadataStore(virtual_clock)
    bundles = {"t/n/0": BundleStats(topics_count=7), "t/n/1": BundleStats()}
    dead = BrokerReport(broker_id="a:1", start_millis=1, bundles=bundles)
    await store.put(paths.broker("a:1"), dead.encode())
    directory = BrokerDirectory(store, virtual_clock)
    await directory.start()
    await store.delete(paths.broker("a:1"))
    await virtual_clock.sleep(0.1)
    assert not directory.brokers
    assert [directory.topics_of(f"t/n/{number}") for number in range(3)] == [7, 0, None]
    await directory.close()
    await store.close()
