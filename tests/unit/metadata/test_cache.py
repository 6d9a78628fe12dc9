"""MetadataCache: what is fresh, what is stale, who hears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pulsar_py.common.errors import MetadataError, MetadataUnavailableError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.cache import MISSING, MetadataCache
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import Notification, NotificationType, Versioned


class CountingStore(MemoryMetadataStore):
    """Counts reads, and can hold them back."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.reads: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_reachable = True

    async def children(self, path: str) -> list[str]:
        self._check_reachable()
        return await super().children(path)

    def _check_reachable(self) -> None:
        if not self.is_reachable:
            raise MetadataUnavailableError("not connected")

    async def get(self, path: str) -> Versioned | None:
        self.reads.append(path)
        self._check_reachable()
        found = await super().get(path)
        await self.gate.wait()
        return found


def decode(data: bytes) -> str:
    if data == b"bad":
        raise MetadataError("unreadable")
    return data.decode()


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
async def cache(store: CountingStore) -> AsyncIterator[MetadataCache[str]]:
    made = MetadataCache(store, "/a", decode, max_entries=3)
    yield made
    await made.close()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_value_is_read_once(store: CountingStore, cache: MetadataCache[str]) -> None:
    await store.put("/a/x", b"1")
    assert cache.get_cached("/a/x") is None
    assert await cache.get("/a/x") == "1"
    assert await cache.get("/a/x") == "1"
    assert cache.get_cached("/a/x") == "1"
    assert store.reads == ["/a/x"]


async def test_that_there_is_none_is_remembered_too(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    assert await cache.get("/a/x") is None
    assert (await cache.get_versioned("/a/x")).version == MISSING
    assert store.reads == ["/a/x"]
    await store.put("/a/x", b"1")
    assert await cache.get("/a/x") == "1"


async def test_a_change_is_read_again_by_itself(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    await store.put("/a/x", b"1")
    await cache.get("/a/x")
    await store.put("/a/x", b"2")
    assert cache.get_cached("/a/x") == "1"
    await settle()
    assert cache.get_cached("/a/x") == "2"
    await store.delete("/a/x")
    await settle()
    assert cache.get_cached("/a/x") is None


async def test_get_never_gives_a_stale_value(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    await store.put("/a/x", b"1")
    await cache.get("/a/x")
    await store.put("/a/x", b"2")
    assert await cache.get("/a/x") == "2"


async def test_a_read_that_a_change_overtook_is_not_kept(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    await store.put("/a/x", b"1")
    store.gate.clear()
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(cache.get("/a/x"))
        await settle()
        await store.put("/a/x", b"2")
        store.gate.set()
    assert reading.result() == "1"
    assert await cache.get("/a/x") == "2"


async def test_a_change_during_a_refresh_is_read_once_more(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    await store.put("/a/x", b"1")
    await cache.get("/a/x")
    store.gate.clear()
    await store.put("/a/x", b"2")
    await settle()
    await store.put("/a/x", b"3")
    store.gate.set()
    await settle()
    assert cache.get_cached("/a/x") == "3"


async def test_listeners_hear_of_every_change_once_it_is_cached(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    heard: list[tuple[str, str | None, str | None]] = []
    stop = cache.listen(lambda path, value: heard.append((path, value, cache.get_cached(path))))
    await store.put("/a/never-read", b"1")
    await settle()
    await store.delete("/a/never-read")
    await settle()
    stop()
    stop()
    await store.put("/a/never-read", b"2")
    await settle()
    assert heard == [("/a/never-read", "1", "1"), ("/a/never-read", None, None)]


async def test_a_listener_that_raises_stops_nobody(
    store: CountingStore, cache: MetadataCache[str], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_path: str, _value: str | None) -> None:
        raise RuntimeError("on purpose")

    heard: list[str | None] = []
    cache.listen(fail)
    cache.listen(lambda _, value: heard.append(value))
    await store.put("/a/x", b"1")
    await settle()
    assert heard == ["1"]
    assert "listener failed" in caplog.text


async def test_own_writes_are_seen_at_once(cache: MetadataCache[str]) -> None:
    cache.note_written("/a/x", "1", 4)
    cache.note_written("/a/x", "0", 3)
    assert cache.get_cached("/a/x") == "1"
    cache.note_deleted("/a/x")
    assert cache.get_cached("/a/x") is None


async def test_what_is_forgotten_is_read_again(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    cache.note_written("/a/x", "wrong", 4)
    cache.forget("/a/x")
    assert await cache.get("/a/x") is None
    assert store.reads == ["/a/x"]


async def test_the_oldest_goes_when_there_are_too_many(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    for name in "wxyz":
        await store.put(f"/a/{name}", name.encode())
        await cache.get(f"/a/{name}")
    assert [cache.get_cached(f"/a/{name}") for name in "wxyz"] == [None, "x", "y", "z"]


async def test_what_can_not_be_read_is_an_error_that_names_it(
    store: CountingStore, cache: MetadataCache[str], caplog: pytest.LogCaptureFixture
) -> None:
    await store.put("/a/x", b"1")
    await cache.get("/a/x")
    await store.put("/a/x", b"bad")
    await settle()
    assert "metadata not read" in caplog.text
    with pytest.raises(MetadataError, match="/a/x: unreadable"):
        await cache.get("/a/x")


async def test_a_closed_cache_reads_nothing_by_itself(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    await store.put("/a/x", b"1")
    await cache.get("/a/x")
    await cache.close()
    await store.put("/a/x", b"2")
    await settle()
    assert store.reads == ["/a/x"]


MISSED = Notification(NotificationType.ANYTHING, "/a")


async def test_where_changes_were_missed_everything_is_read_again(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    for name in "xyz":
        await store.put(f"/a/{name}", b"1")
        await cache.get(f"/a/{name}")
    cache._stop_watching()
    await store.put("/a/x", b"2")
    await store.delete("/a/y")
    assert await cache.get("/a/x") == "1", "nobody has said so"
    store.reads.clear()
    cache._on_change(MISSED)
    assert await cache.get("/a/x") == "2", "at once"
    await settle()
    assert [cache.get_cached(f"/a/{name}") for name in "xyz"] == ["2", None, "1"]
    assert set(store.reads) == {"/a/x", "/a/y", "/a/z"}


async def test_listeners_hear_of_what_was_made_while_changes_were_missed(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    heard: dict[str, str | None] = {}
    cache.listen(lambda path, value: heard.update({path: value}))
    await store.put("/a/x", b"1")
    await settle()
    cache._stop_watching()
    await store.put("/a/b/deep", b"2")
    await store.delete("/a/x")
    heard.clear()
    cache._on_change(MISSED)
    await settle()
    await settle()
    assert heard == {"/a": None, "/a/x": None, "/a/b": None, "/a/b/deep": "2"}


async def test_who_has_no_listeners_lists_nothing(
    store: CountingStore, cache: MetadataCache[str]
) -> None:
    await store.put("/a/x", b"1")
    cache._on_change(MISSED)
    await settle()
    assert store.reads == []
    assert not cache._is_refreshing


async def test_what_can_not_be_read_now_is_read_as_soon_as_it_can(
    store: CountingStore, cache: MetadataCache[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsar_py.metadata.cache.RETRY_SECONDS", 0)
    heard: list[tuple[str, str | None]] = []
    cache.listen(lambda path, value: heard.append((path, value)))
    store.is_reachable = False
    await store.put("/a/x", b"1")
    await settle()
    assert heard == []
    store.is_reachable = True
    await settle()
    assert heard == [("/a/x", "1")]


async def test_what_was_missed_is_looked_for_until_it_is_found(
    store: CountingStore, cache: MetadataCache[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsar_py.metadata.cache.RETRY_SECONDS", 0)
    heard: list[tuple[str, str | None]] = []
    cache.listen(lambda path, value: heard.append((path, value)))
    cache._stop_watching()
    await store.put("/a/x", b"1")
    store.is_reachable = False
    cache._on_change(Notification(NotificationType.ANYTHING, "/a"))
    await settle()
    store.is_reachable = True
    await settle()
    assert ("/a/x", "1") in heard
