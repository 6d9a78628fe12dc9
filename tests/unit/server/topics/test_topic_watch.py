from __future__ import annotations

from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.topics.topic_watch import TopicWatch
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.topics.rig import NAMESPACE, name_of


async def test_other_brokers_topics_are_heard_of(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    watch = TopicWatch(store)
    events: list[tuple[list[str], list[str]]] = []
    cancel = watch.watch(NAMESPACE, lambda new, gone: events.append((list(new), list(gone))))
    ledger = paths.managed_ledger(name_of("a b").managed_ledger_name)
    await store.put(ledger, b"")
    await store.put(ledger, b"changed")
    await store.put(f"{ledger}/cursor", b"")
    await store.put("/managed-ledgers/elsewhere", b"")
    await store.put("/managed-ledgers/a/b/c/d", b"")
    await store.delete(f"{ledger}/cursor")
    await store.delete(ledger)
    await virtual_clock.sleep(0.01)
    assert events == [([str(name_of("a b"))], []), ([], [str(name_of("a b"))])]
    cancel()
    cancel()
    watch.on_created(name_of("x"))
    assert len(events) == 2
    watch.close()
    await store.close()


async def test_nobody_is_told_after_closing(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    watch = TopicWatch(store)
    events: list[object] = []
    watch.watch(NAMESPACE, lambda new, _: events.append(new))
    watch.close()
    await store.put(paths.managed_ledger(name_of("a").managed_ledger_name), b"")
    await virtual_clock.sleep(0.01)
    assert events == []
    await store.close()
