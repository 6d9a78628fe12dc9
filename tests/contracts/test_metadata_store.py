"""What every MetadataStore does; run on each of ours.

A suite for the contract, not for what an embedded store does beyond it: news is waited for, and
what was a parent may look like a key with an empty value. `connect` gives further clients of the
same keys; a store that has only one gives that again, with sessions that are others' all the same.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataError,
    MetadataExistsError,
    MetadataNotEmptyError,
    MetadataNotFoundError,
    MetadataTooLargeError,
)
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.metadata.store import (
    MUST_NOT_EXIST,
    MetadataStore,
    Notification,
    NotificationType,
    Versioned,
)
from pulsar_py.testing.hostile_metadata import HostileMetadata
from pulsar_py.testing.hostile_service import HostileSettings
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.zookeeper_process import ZooKeeperProcess

CREATED, MODIFIED, DELETED, _ = NotificationType


class TickingClock(Clock):
    """One millisecond a question."""

    def __init__(self) -> None:
        self.now_millis = 1000

    def monotonic_seconds(self) -> float:
        return self.wall_time_millis() / 1000

    def wall_time_millis(self) -> int:
        self.now_millis += 1
        return self.now_millis


Connect = Callable[[], MetadataStore]


class Heard:
    """What a watch tells, and a way to wait for it."""

    def __init__(self, store: MetadataStore, prefix: str = "/") -> None:
        self.changes: list[tuple[NotificationType, str]] = []
        self._came = asyncio.Event()
        self.stop = store.watch(prefix, self._hear)

    def _hear(self, change: Notification) -> None:
        self.changes.append((change.type, change.path))
        self._came.set()

    async def until(self, count: int) -> list[tuple[NotificationType, str]]:
        """All changes, once there are so many."""
        async with asyncio.timeout(30):
            while len(self.changes) < count:
                self._came.clear()
                await self._came.wait()
        return self.changes

    async def until_told(self, change: tuple[NotificationType, str]) -> None:
        """Return once that was told, whatever else is."""
        while change not in self.changes:
            await self.until(len(self.changes) + 1)


HOSTILE = {
    "hostile": HostileSettings(),
    "hostile, late": HostileSettings(delay_seconds=(0.0, 0.002)),
    "hostile, parents are keys": HostileSettings(are_parents_keys=True, delay_seconds=(0.0, 0.001)),
    "hostile, lagging": HostileSettings(lag_seconds=0.01, delay_seconds=(0.0, 0.001)),
}
"""Services that are slow, and keep every promise."""


@pytest.fixture(params=["memory", "sqlite", *HOSTILE, "zookeeper"])
async def connect(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Connect]:
    clock = TickingClock()
    if request.param in HOSTILE:
        service = HostileMetadata(random.Random(7), clock, HOSTILE[request.param])
        names = itertools.count()
        yield lambda: service.connect(f"client-{next(names)}", SystemClock())
        for hostile in service.clients:
            await hostile.close()
    elif request.param == "zookeeper":
        process: ZooKeeperProcess = request.getfixturevalue("zookeeper")
        address = ZooKeeperAddress.parse(f"{process.url}/{tmp_path.name}")
        opened = [await ZooKeeperMetadataStore.open(address, SystemClock()) for _ in range(2)]
        unused = iter(opened)
        yield lambda: next(unused)
        for client in opened:
            await client.close()
    elif request.param == "memory":
        memory = MemoryMetadataStore(clock)
        clients: list[MetadataStore] = [memory]

        def another() -> MetadataStore:
            clients.append(memory.connect())
            return clients[-1]

        yield another
        for each in clients:
            await each.close()
    else:
        sqlite = await SqliteMetadataStore.open(tmp_path / "metadata.sqlite", clock)
        yield lambda: sqlite
        await sqlite.close()


@pytest.fixture
async def store(connect: Connect) -> MetadataStore:
    return connect()


async def test_a_missing_key_has_no_value(store: MetadataStore) -> None:
    assert await store.get("/a") is None
    assert not await store.exists("/a")
    assert await store.children("/a") == []


async def test_what_another_client_has_written_is_newest_at_once(connect: Connect) -> None:
    one, other = connect(), connect()
    assert await one.get_newest("/a") is None
    for number in range(20):
        version = await other.put("/a", b"%d" % number)
        newest = await one.get_newest("/a")
        assert newest is not None
        assert (newest.value, newest.version) == (b"%d" % number, version)


async def test_versions_start_at_zero_and_grow_by_one(store: MetadataStore) -> None:
    assert await store.put("/a", b"0") == 0
    assert await store.put("/a", b"1") == 1
    assert await store.put("/a", b"2", expected_version=1) == 2
    found = await store.get("/a")
    assert found is not None
    assert (found.value, found.version) == (b"2", 2)


async def test_a_value_knows_when_it_was_made_and_changed(store: MetadataStore) -> None:
    await store.put("/a", b"")
    first = await store.get("/a")
    await asyncio.sleep(0.002)  # versions may be told in milliseconds
    await store.put("/a", b"")
    second = await store.get("/a")
    assert first is not None
    assert second is not None
    assert first.created_millis == first.modified_millis == second.created_millis
    assert second.modified_millis > first.modified_millis
    assert not second.is_ephemeral


async def test_a_deleted_key_starts_again_at_version_zero(store: MetadataStore) -> None:
    await store.put("/a", b"")
    await store.put("/a", b"")
    await store.delete("/a")
    assert await store.put("/a", b"") == 0


async def test_must_not_exist_creates_only(store: MetadataStore) -> None:
    assert await store.put("/a", b"1", expected_version=MUST_NOT_EXIST) == 0
    with pytest.raises(MetadataExistsError, match="/a"):
        await store.put("/a", b"2", expected_version=MUST_NOT_EXIST)
    found = await store.get("/a")
    assert found is not None
    assert (found.value, found.version) == (b"1", 0)


@pytest.mark.parametrize("expected", [0, 2, 7])
async def test_compare_and_set_with_another_version_changes_nothing(
    store: MetadataStore, expected: int
) -> None:
    await store.put("/a", b"0")
    await store.put("/a", b"1")
    with pytest.raises(MetadataBadVersionError, match=f"/a: expected version {expected}, it has 1"):
        await store.put("/a", b"2", expected_version=expected)
    with pytest.raises(MetadataBadVersionError):
        await store.delete("/a", expected_version=expected)
    found = await store.get("/a")
    assert found is not None
    assert found.value == b"1"


async def test_compare_and_set_of_a_missing_key(store: MetadataStore) -> None:
    with pytest.raises(MetadataBadVersionError, match="missing"):
        await store.put("/a", b"", expected_version=0)
    assert await store.children("/") == []
    with pytest.raises(MetadataNotFoundError):
        await store.delete("/a")
    with pytest.raises(MetadataNotFoundError):
        await store.delete("/a", expected_version=0)


async def test_delete_takes_the_right_version(store: MetadataStore) -> None:
    await store.put("/a", b"")
    await store.delete("/a", expected_version=0)
    assert not await store.exists("/a")


async def test_children_are_sorted_and_direct_and_need_no_value(store: MetadataStore) -> None:
    for path in ("/a/z", "/a/b/c/d", "/a/b/e", "/a/ä", "/a/B", "/a0", "/ab/x", "/a-b/x", "/a/b-c"):
        await store.put(path, b"")
    assert await store.children("/a") == ["B", "b", "b-c", "z", "ä"]
    assert await store.children("/a/b") == ["c", "e"]
    assert await store.children("/") == ["a", "a-b", "a0", "ab"]
    assert await store.children("/a/z") == []


async def test_each_of_many_concurrent_changes_gets_its_own_result(store: MetadataStore) -> None:
    await store.put("/taken", b"")
    results = await asyncio.gather(
        *(store.put(f"/k{number}", b"", expected_version=MUST_NOT_EXIST) for number in range(50)),
        store.put("/taken", b"", expected_version=MUST_NOT_EXIST),
        store.put("/taken", b"", expected_version=0),
        store.delete("/missing"),
        return_exceptions=True,
    )
    assert results[:50] == [0] * 50
    assert isinstance(results[50], MetadataExistsError)
    assert results[51] == 1
    assert isinstance(results[52], MetadataNotFoundError)
    assert len(await store.children("/")) == 51


async def test_of_many_who_compare_and_set_one_wins(store: MetadataStore) -> None:
    await store.put("/a", b"")
    results = await asyncio.gather(
        *(store.put("/a", b"%d" % number, expected_version=0) for number in range(10)),
        return_exceptions=True,
    )
    assert [result for result in results if result == 1] == [1]
    assert sum(isinstance(result, MetadataBadVersionError) for result in results) == 9


async def test_a_key_can_have_a_value_and_children(store: MetadataStore) -> None:
    await store.put("/a", b"1")
    await store.put("/a/b", b"2")
    with pytest.raises(MetadataNotEmptyError, match="/a has"):
        await store.delete("/a")
    with pytest.raises(MetadataNotEmptyError, match="/a has"):
        await store.delete("/a", expected_version=0)
    found = await store.get("/a")
    assert found is not None
    assert found.value == b"1"
    await store.delete("/a/b")
    await store.delete("/a", expected_version=0)
    assert await store.children("/") == []


async def test_a_parent_made_on_demand_has_no_value_or_an_empty_one(store: MetadataStore) -> None:
    await store.put("/a/b", b"1")
    found = await store.get("/a")
    assert found is None or found.value == b""
    with pytest.raises(MetadataNotEmptyError):
        await store.delete("/a")
    assert await store.children("/") == ["a"]


async def test_many_keys_are_deleted_whether_or_not_they_are_there(store: MetadataStore) -> None:
    for path in ("/a/1", "/a/2", "/b"):
        await store.put(path, b"")
    heard = Heard(store)
    await store.delete_each(["/a/1", "/b"])
    assert await store.children("/") == ["a"]
    assert sorted(await heard.until(2)) == [(DELETED, "/a/1"), (DELETED, "/b")]
    await store.delete_each(["/a/1", "/a/2", "/c"])
    assert await store.get("/a/2") is None
    await store.delete_each([])


async def test_delete_recursive_takes_everything_below_and_nothing_beside(
    store: MetadataStore,
) -> None:
    for path in ("/a", "/a/b", "/a/b/c", "/a0", "/a-"):
        await store.put(path, b"")
    heard = Heard(store)
    await store.delete_recursive("/a")
    assert await store.children("/") == ["a-", "a0"]
    assert await heard.until(3) == [(DELETED, "/a/b/c"), (DELETED, "/a/b"), (DELETED, "/a")]
    await store.delete_recursive("/a")
    await store.put("/z", b"")
    assert (await heard.until(4))[3:] == [(CREATED, "/z")]


async def test_delete_recursive_of_the_root(store: MetadataStore) -> None:
    await store.put("/a/b", b"")
    await store.put("/c", b"")
    await store.delete_recursive("/")
    assert await store.children("/") == []


async def test_watchers_hear_of_changes_at_and_below_in_order(store: MetadataStore) -> None:
    heard = Heard(store, "/a")
    await store.put("/a", b"")
    await store.put("/a/b", b"")
    await store.put("/ab", b"")
    await store.put("/a/b", b"")
    await store.delete("/a/b")
    expected = [(CREATED, "/a"), (CREATED, "/a/b"), (MODIFIED, "/a/b"), (DELETED, "/a/b")]
    assert await heard.until(4) == expected
    heard.stop()
    everything = Heard(store)
    await store.put("/a", b"")
    await everything.until(1)
    assert heard.changes == expected


async def test_what_another_client_changed_is_told(connect: Connect) -> None:
    one, other = connect(), connect()
    heard = Heard(one, "/a/b")
    await one.sync("/a/b")
    await other.put("/a/b", b"1")
    await other.delete("/a/b")
    assert await heard.until(2) == [(CREATED, "/a/b"), (DELETED, "/a/b")]


async def test_after_a_sync_the_writes_of_others_are_seen(connect: Connect) -> None:
    one, other = connect(), connect()
    for number in range(5):
        await other.put("/a/b", b"%d" % number)
        await one.sync("/a")
        found = await one.get("/a/b")
        assert found is not None
        assert (found.value, found.version) == (b"%d" % number, number)


async def test_compare_and_set_decides_by_the_newest_whoever_wrote_it(connect: Connect) -> None:
    one, other = connect(), connect()
    await one.put("/a", b"0")
    assert await other.put("/a", b"1", expected_version=0) == 1
    with pytest.raises(MetadataBadVersionError, match="expected version 0, it has 1"):
        await one.put("/a", b"2", expected_version=0)
    with pytest.raises(MetadataExistsError):
        await one.put("/a", b"2", expected_version=MUST_NOT_EXIST)
    with pytest.raises(MetadataBadVersionError):
        await one.delete("/a", expected_version=0)
    assert await one.put("/a", b"2", expected_version=1) == 2


async def test_a_failed_change_is_no_news(store: MetadataStore) -> None:
    heard = Heard(store)
    with pytest.raises(MetadataBadVersionError):
        await store.put("/a", b"", expected_version=3)
    await store.put("/b", b"")
    assert await heard.until(1) == [(CREATED, "/b")]


async def test_a_watcher_that_raises_stops_nobody(
    store: MetadataStore, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Notification) -> None:
        raise RuntimeError("on purpose")

    store.watch("/", fail)
    heard = Heard(store)
    await store.put("/a", b"")
    assert await heard.until(1) == [(CREATED, "/a")]
    assert "watcher failed" in caplog.text


async def test_sequential_keys_have_growing_numbers_of_ten_digits(store: MetadataStore) -> None:
    made = [await store.create_sequential("/s/ID-", b"%d" % each) for each in range(3)]
    numbers = [paths.sequence_number(path) for path in made]
    assert made == [f"/s/ID-{number:010d}" for number in numbers]
    assert numbers == sorted(set(numbers))
    assert numbers[0] >= 0
    assert await store.children("/s") == [path.removeprefix("/s/") for path in made]
    found = await store.get(made[2])
    assert found is not None
    assert (found.value, found.version, found.owner) == (b"2", 0, None)


async def test_numbers_of_a_parent_do_not_repeat_although_its_children_go(
    connect: Connect,
) -> None:
    one, other = connect(), connect()
    session = await other.open_session()
    await one.put("/s", b"")
    numbers = []
    for _ in range(3):
        for path in (
            await one.create_sequential("/s/a-", b""),
            await other.create_sequential("/s/b-", b"", session),
        ):
            numbers.append(paths.sequence_number(path))
            await one.delete(path)
    assert numbers == sorted(set(numbers))
    await other.sync("/s")
    assert await other.children("/s") == []


async def test_numbers_taken_at_once_differ(connect: Connect) -> None:
    one, other = connect(), connect()
    made = await asyncio.gather(
        *(client.create_sequential("/s/", b"") for client in (one, other) for _ in range(20))
    )
    assert len({paths.sequence_number(path) for path in made}) == 40


async def test_a_sequential_key_goes_with_its_session(store: MetadataStore) -> None:
    session = await store.open_session()
    await store.put("/s", b"")
    path = await store.create_sequential("/s/", b"", session)
    found = await store.get(path)
    assert found is not None
    assert found.owner == session.session_id
    await session.close()
    assert await store.children("/s") == []


async def test_ephemeral_keys_go_with_their_session(connect: Connect) -> None:
    one, other = connect(), connect()
    session, others_session = await one.open_session(), await other.open_session()
    assert session.session_id != others_session.session_id
    await one.put("/mine", b"", expected_version=MUST_NOT_EXIST, session=session)
    await other.put("/others", b"", expected_version=MUST_NOT_EXIST, session=others_session)
    await one.put("/lasting", b"")
    found = await one.get("/mine")
    assert found is not None
    assert found.is_ephemeral
    assert found.owner == session.session_id
    heard = Heard(other)
    await other.sync("/")  # from here on the watch tells what others change
    await session.close()
    await heard.until_told((DELETED, "/mine"))
    await other.sync("/")
    assert await other.children("/") == ["lasting", "others"]
    await session.close()


async def test_a_session_is_good_until_it_is_closed(store: MetadataStore) -> None:
    session = await store.open_session()
    stop = session.listen(lambda _: None)
    assert session.is_good
    await session.close()
    assert not session.is_good
    stop()


async def test_an_ephemeral_key_keeps_its_owner_whoever_puts(connect: Connect) -> None:
    one, other = connect(), connect()
    session = await one.open_session()
    await one.put("/a", b"1", expected_version=MUST_NOT_EXIST, session=session)
    assert await other.put("/a", b"2") == 1
    assert await other.put("/a", b"3", expected_version=1) == 2
    await one.sync("/a")
    found = await one.get("/a")
    assert found is not None
    assert (found.value, found.owner) == (b"3", session.session_id)
    await session.close()
    assert not await one.exists("/a")


@pytest.mark.parametrize("expected", [None, 0, 5])
async def test_a_session_only_creates(store: MetadataStore, expected: int | None) -> None:
    session = await store.open_session()
    await store.put("/a", b"1")
    with pytest.raises(ValueError, match="only created"):
        await store.put("/a", b"2", expected_version=expected, session=session)
    with pytest.raises(MetadataExistsError, match="/a"):
        await store.put("/a", b"2", expected_version=MUST_NOT_EXIST, session=session)
    found = await store.get("/a")
    assert found is not None
    assert (found.value, found.owner) == (b"1", None)


async def test_an_ephemeral_key_is_taken_over_by_deleting_it_first(connect: Connect) -> None:
    one, other = connect(), connect()
    old, new = await one.open_session(), await other.open_session()
    await one.put("/a", b"1", expected_version=MUST_NOT_EXIST, session=old)
    with pytest.raises(MetadataExistsError):
        await other.put("/a", b"2", expected_version=MUST_NOT_EXIST, session=new)
    await other.delete("/a", expected_version=0)
    await other.put("/a", b"2", expected_version=MUST_NOT_EXIST, session=new)
    await old.close()
    found = await other.get("/a")
    assert found is not None
    assert found.owner == new.session_id


async def test_a_deleted_and_remade_key_is_not_the_sessions_any_more(store: MetadataStore) -> None:
    session = await store.open_session()
    await store.put("/a", b"", expected_version=MUST_NOT_EXIST, session=session)
    await store.delete("/a")
    await store.put("/a", b"")
    await session.close()
    assert await store.exists("/a")


async def test_a_closed_session_owns_nothing_more(store: MetadataStore) -> None:
    session = await store.open_session()
    await session.close()
    with pytest.raises(MetadataError, match="closed"):
        await store.put("/a", b"", expected_version=MUST_NOT_EXIST, session=session)
    with pytest.raises(MetadataError, match="closed"):
        await store.create_sequential("/s/", b"", session)


NO_PATHS = ["", "a", "/a/", "//a", "/a//b", "/a/.", "/../a", "/a\x01", "/\x7f", "/\ud800", "/😀"]
TOO_LONG = "/" + paths.MAX_CHARACTERS * "a"


@pytest.mark.parametrize("path", [*NO_PATHS, pytest.param(TOO_LONG, id="too long")])
async def test_what_is_no_path_is_refused(store: MetadataStore, path: str) -> None:
    for ask in (store.get, store.exists, store.children, store.sync, store.delete):
        with pytest.raises(ValueError, match="is not a path"):
            await ask(path)
    with pytest.raises(ValueError, match="is not a path"):
        await store.put(path, b"")
    with pytest.raises(ValueError, match="is not a path"):
        await store.delete_recursive(path)
    with pytest.raises(ValueError, match="is not a path"):
        store.watch(path, print)


async def test_a_sequential_prefix_has_to_become_a_path(store: MetadataStore) -> None:
    for prefix in ("", "a", "//", "/a//b-", "/\x01"):
        with pytest.raises(ValueError, match="is not a path"):
            await store.create_sequential(prefix, b"")


async def test_names_are_any_text_that_zookeeper_takes(store: MetadataStore) -> None:
    names = ["a b", "a%2Fb", "ü", "漢", "'\"", "_%", "*", "..."]
    for name in names:
        await store.put(f"/n/{name}", name.encode())
    assert await store.children("/n") == sorted(names)
    for name in names:
        found = await store.get(f"/n/{name}")
        assert found is not None
        assert found.value == name.encode()


async def test_any_bytes_are_a_value(store: MetadataStore) -> None:
    value = bytes(range(256)) * 2048
    assert len(value) <= store.limits.max_value_bytes
    await store.put("/a", value)
    found = await store.get("/a")
    assert isinstance(found, Versioned)
    assert found.value == value
    await store.put("/a", b"")
    assert await store.get("/a") is not None


async def test_what_is_over_a_limit_is_refused_and_changes_nothing(store: MetadataStore) -> None:
    store.limits = replace(store.limits, max_value_bytes=10, max_children_bytes=20)
    await store.put("/a/0", bytes(10))
    with pytest.raises(MetadataTooLargeError, match="11 bytes, the store takes at most 10"):
        await store.put("/a/0", bytes(11))
    with pytest.raises(MetadataTooLargeError):
        await store.create_sequential("/a/", bytes(11))
    assert await store.children("/a") == ["0"]
    for name in ("12345678", "abcdefghijkl"):
        await store.put(f"/a/{name}", b"")
    with pytest.raises(MetadataTooLargeError, match="3 children"):
        await store.children("/a")
    await store.delete_recursive("/a")
    assert await store.children("/a") == []


async def test_a_cancelled_caller_disturbs_nobody(store: MetadataStore) -> None:
    async with asyncio.TaskGroup() as group:
        cancelled = group.create_task(store.put("/a", b""))
        other = group.create_task(store.put("/b", b""))
        await asyncio.sleep(0)
        cancelled.cancel()
    assert other.result() == 0


async def test_a_closed_store_refuses_everything(store: MetadataStore) -> None:
    session = await store.open_session()
    await store.put("/a", b"", expected_version=MUST_NOT_EXIST, session=session)
    await store.close()
    await store.close()
    refused: list[Callable[[], Awaitable[object]]] = [
        lambda: store.get("/a"),
        lambda: store.exists("/a"),
        lambda: store.children("/"),
        lambda: store.sync("/"),
        lambda: store.put("/a", b""),
        lambda: store.create_sequential("/s/", b""),
        lambda: store.delete("/a"),
        lambda: store.delete_recursive("/a"),
        store.open_session,
    ]
    for ask in refused:
        with pytest.raises(MetadataError, match="closed"):
            await ask()
