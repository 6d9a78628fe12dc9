from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pulsar_py.common.errors import MetadataUnavailableError
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import Notification, NotificationType
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


class SlowStore(MemoryMetadataStore):
    """Lists what was there when it was asked, once it is let."""

    gate: asyncio.Event | None = None

    async def children(self, path: str) -> list[str]:
        names = await super().children(path)
        if self.gate is not None:
            await self.gate.wait()
        return names


class Watching:
    """A watch that hears nothing by itself once it is deaf, and what it told."""

    def __init__(self, clock: VirtualClock) -> None:
        self.store = SlowStore(clock)
        self.watch = TopicWatch(self.store)
        self.told: list[tuple[str, list[str]]] = []
        self.clock = clock

    async def begin(self, *names: str) -> None:
        for name in names:
            await self.put(name)
        self.watch.watch(NAMESPACE, self._on_changed)
        await self.clock.sleep(0.01)
        self.watch._cancel()

    def _on_changed(self, new: Sequence[str], gone: Sequence[str]) -> None:
        self.told += [(kind, list(names)) for kind, names in (("+", new), ("-", gone)) if names]

    async def put(self, name: str) -> None:
        await self.store.put(paths.managed_ledger(name_of(name).managed_ledger_name), b"")

    async def delete(self, name: str) -> None:
        await self.store.delete(paths.managed_ledger(name_of(name).managed_ledger_name))

    def miss(self) -> None:
        self.watch._on_notification(Notification(NotificationType.ANYTHING, "/managed-ledgers"))

    async def close(self) -> None:
        self.watch.close()
        await self.store.close()


async def test_what_was_missed_is_told(virtual_clock: VirtualClock) -> None:
    watching = Watching(virtual_clock)
    await watching.begin("a", "b")
    await watching.delete("a")
    await watching.put("c")
    watching.miss()
    await virtual_clock.sleep(0.01)
    assert watching.told == [("+", [str(name_of("c"))]), ("-", [str(name_of("a"))])]
    watching.miss()
    await virtual_clock.sleep(0.01)
    assert len(watching.told) == 2
    await watching.close()


async def test_what_is_told_while_it_lists_counts_more(virtual_clock: VirtualClock) -> None:
    """The list is from before: it must not take back what has come or gone since."""
    watching = Watching(virtual_clock)
    await watching.begin("a", "b")
    watching.store.gate = asyncio.Event()
    watching.miss()
    await virtual_clock.sleep(0.01)
    watching.watch.on_created(name_of("new"))
    watching.watch.on_deleted(name_of("a"))
    watching.store.gate.set()
    await virtual_clock.sleep(0.01)
    assert watching.told == [("+", [str(name_of("new"))]), ("-", [str(name_of("a"))])]
    await watching.close()


class Fickle(MemoryMetadataStore):
    """Can't be asked at times."""

    is_reachable = True
    seconds = 0.0
    """How long the answer with a list is under way."""

    async def children(self, path: str) -> list[str]:
        if not self.is_reachable:
            raise MetadataUnavailableError("not connected")
        found = await super().children(path)
        await asyncio.sleep(self.seconds)
        return found


async def test_what_was_missed_is_told_as_soon_as_the_store_can_be_asked(
    virtual_clock: VirtualClock,
) -> None:
    store = Fickle(virtual_clock)
    watch = TopicWatch(store)
    events: list[list[str]] = []
    store.is_reachable = False
    watch.watch(NAMESPACE, lambda new, _: events.append(list(new)))
    watch._cancel()
    await virtual_clock.sleep(2)
    store.is_reachable = True
    await virtual_clock.sleep(2)
    await store.put(paths.managed_ledger(name_of("a").managed_ledger_name), b"x")
    store.is_reachable = False
    watch._on_notification(Notification(NotificationType.ANYTHING, paths.MANAGED_LEDGERS))
    await virtual_clock.sleep(2)
    assert events == []
    store.is_reachable = True
    await virtual_clock.sleep(2)
    assert events == [[str(name_of("a"))]]
    watch.close()
    await store.close()


async def test_a_list_that_is_older_than_the_news_says_nothing(
    virtual_clock: VirtualClock,
) -> None:
    store = Fickle(virtual_clock)
    watch = TopicWatch(store)
    events: list[tuple[list[str], list[str]]] = []
    watch.watch(NAMESPACE, lambda new, gone: events.append((list(new), list(gone))))
    await virtual_clock.sleep(1)
    store.seconds = 1.0
    watch._on_notification(Notification(NotificationType.ANYTHING, paths.MANAGED_LEDGERS))
    await virtual_clock.sleep(0.5)
    await store.put(paths.managed_ledger(name_of("a").managed_ledger_name), b"x")
    await virtual_clock.sleep(5)
    assert events == [([str(name_of("a"))], [])]
    watch.close()
    await store.close()
