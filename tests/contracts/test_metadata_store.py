"""What every MetadataStore does; run on each of ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataError,
    MetadataExistsError,
    MetadataNotFoundError,
)
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.metadata.store import (
    MUST_NOT_EXIST,
    MetadataStore,
    Notification,
    NotificationType,
    Versioned,
)

CREATED, MODIFIED, DELETED = NotificationType


class TickingClock(Clock):
    """One millisecond a question."""

    def __init__(self) -> None:
        self.now_millis = 1000

    def monotonic_seconds(self) -> float:
        return self.wall_time_millis() / 1000

    def wall_time_millis(self) -> int:
        self.now_millis += 1
        return self.now_millis


Opener = Callable[[], Awaitable[MetadataStore]]


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MetadataStore]:
    clock = TickingClock()
    opened: MetadataStore
    if request.param == "memory":
        opened = MemoryMetadataStore(clock)
    else:
        opened = await SqliteMetadataStore.open(tmp_path / "metadata.sqlite", clock)
    yield opened
    await opened.close()


@pytest.fixture
def seen(store: MetadataStore) -> list[tuple[NotificationType, str]]:
    changes: list[tuple[NotificationType, str]] = []
    store.watch("/", lambda each: changes.append((each.type, each.path)))
    return changes


async def test_a_missing_key_has_no_value(store: MetadataStore) -> None:
    assert await store.get("/a") is None
    assert not await store.exists("/a")
    assert await store.children("/a") == []


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


async def test_a_key_can_have_a_value_and_children(store: MetadataStore) -> None:
    await store.put("/a", b"1")
    await store.put("/a/b", b"2")
    await store.delete("/a")
    assert await store.exists("/a/b")
    assert not await store.exists("/a")
    assert await store.children("/") == ["a"]


async def test_children_are_sorted_and_direct_and_need_no_value(store: MetadataStore) -> None:
    for path in ("/a/z", "/a/b/c/d", "/a/b/e", "/a/ä", "/a/B", "/a0", "/ab/x", "/a-b/x", "/a/b-c"):
        await store.put(path, b"")
    assert await store.children("/a") == ["B", "b", "b-c", "z", "ä"]
    assert await store.children("/a/b") == ["c", "e"]
    assert await store.children("/") == ["a", "a-b", "a0", "ab"]
    assert await store.children("/a/z") == []


async def test_parents_without_values_go_with_their_last_child(store: MetadataStore) -> None:
    await store.put("/a/b/c", b"")
    await store.delete("/a/b/c")
    assert await store.children("/") == []


async def test_delete_recursive_takes_everything_below_and_nothing_beside(
    store: MetadataStore, seen: list[tuple[NotificationType, str]]
) -> None:
    for path in ("/a", "/a/b", "/a/b/c", "/a0", "/a-/x"):
        await store.put(path, b"")
    seen.clear()
    await store.delete_recursive("/a")
    assert await store.children("/") == ["a-", "a0"]
    assert seen == [(DELETED, "/a/b/c"), (DELETED, "/a/b"), (DELETED, "/a")]
    await store.delete_recursive("/a")


async def test_delete_recursive_of_the_root(store: MetadataStore) -> None:
    await store.put("/a/b", b"")
    await store.put("/c", b"")
    await store.delete_recursive("/")
    assert await store.children("/") == []


async def test_watchers_hear_of_changes_at_and_below_in_order(store: MetadataStore) -> None:
    seen: list[Notification] = []
    stop = store.watch("/a", seen.append)
    await store.put("/a", b"")
    await store.put("/a/b", b"")
    await store.put("/ab", b"")
    await store.put("/a/b", b"")
    await store.delete("/a/b")
    stop()
    await store.put("/a", b"")
    assert seen == [
        Notification(CREATED, "/a"),
        Notification(CREATED, "/a/b"),
        Notification(MODIFIED, "/a/b"),
        Notification(DELETED, "/a/b"),
    ]


async def test_watchers_hear_before_the_one_who_changed_goes_on(store: MetadataStore) -> None:
    heard: list[str] = []
    store.watch("/a", lambda each: heard.append(each.path))
    await store.put("/a", b"")
    assert heard == ["/a"]


async def test_a_failed_change_is_no_news(
    store: MetadataStore, seen: list[tuple[NotificationType, str]]
) -> None:
    with pytest.raises(MetadataBadVersionError):
        await store.put("/a", b"", expected_version=3)
    assert seen == []


async def test_a_watcher_that_raises_stops_nobody(
    store: MetadataStore, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Notification) -> None:
        raise RuntimeError("on purpose")

    heard: list[str] = []
    store.watch("/", fail)
    store.watch("/", lambda each: heard.append(each.path))
    await store.put("/a", b"")
    assert heard == ["/a"]
    assert "watcher failed" in caplog.text


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


async def test_sequences_start_at_zero_and_take_blocks(store: MetadataStore) -> None:
    assert await store.next_in_sequence("/s") == 0
    assert await store.next_in_sequence("/s", 10) == 1
    assert await store.next_in_sequence("/s") == 11
    assert await store.next_in_sequence("/t") == 0


async def test_concurrent_takers_of_a_sequence_get_different_numbers(store: MetadataStore) -> None:
    taken = await asyncio.gather(*(store.next_in_sequence("/s", 2) for _ in range(20)))
    assert sorted(taken) == list(range(0, 40, 2))


async def test_a_sequence_is_no_key_and_survives_deletion(store: MetadataStore) -> None:
    await store.next_in_sequence("/a/s", 5)
    assert await store.children("/") == []
    await store.delete_recursive("/")
    assert await store.next_in_sequence("/a/s") == 5


async def test_ephemeral_keys_go_with_their_session(
    store: MetadataStore, seen: list[tuple[NotificationType, str]]
) -> None:
    session = await store.open_session()
    other = await store.open_session()
    assert session.session_id != other.session_id
    await store.put("/mine", b"", session=session)
    await store.put("/others", b"", session=other)
    await store.put("/lasting", b"")
    found = await store.get("/mine")
    assert found is not None
    assert found.is_ephemeral
    seen.clear()
    await session.close()
    assert await store.children("/") == ["lasting", "others"]
    assert seen == [(DELETED, "/mine")]
    await session.close()


async def test_an_ephemeral_key_stays_ephemeral_when_anybody_puts(store: MetadataStore) -> None:
    session = await store.open_session()
    await store.put("/a", b"1", session=session)
    await store.put("/a", b"2")
    found = await store.get("/a")
    assert found is not None
    assert found.is_ephemeral
    await session.close()
    assert not await store.exists("/a")


async def test_a_put_with_a_session_hands_the_key_over(store: MetadataStore) -> None:
    old = await store.open_session()
    new = await store.open_session()
    await store.put("/a", b"", session=old)
    await store.put("/a", b"", session=new)
    await old.close()
    assert await store.exists("/a")
    await new.close()
    assert not await store.exists("/a")


async def test_a_deleted_and_remade_key_is_not_the_sessions_any_more(store: MetadataStore) -> None:
    session = await store.open_session()
    await store.put("/a", b"", session=session)
    await store.delete("/a")
    await store.put("/a", b"")
    await session.close()
    assert await store.exists("/a")


async def test_a_closed_session_owns_nothing_more(store: MetadataStore) -> None:
    session = await store.open_session()
    await session.close()
    with pytest.raises(MetadataError, match="closed"):
        await store.put("/a", b"", session=session)


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b"])
async def test_what_is_no_path_is_refused(store: MetadataStore, path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        await store.put(path, b"")
    with pytest.raises(ValueError, match="is not a path"):
        await store.get(path)
    with pytest.raises(ValueError, match="is not a path"):
        store.watch(path, print)


async def test_any_name_is_a_key(store: MetadataStore) -> None:
    names = ["a b", "a%2Fb", "ü", "😀", "'\"", "_%", "\x01", "*"]
    for name in names:
        await store.put(f"/n/{name}", name.encode())
    assert await store.children("/n") == sorted(names)
    for name in names:
        found = await store.get(f"/n/{name}")
        assert found is not None
        assert found.value == name.encode()


async def test_any_bytes_are_a_value(store: MetadataStore) -> None:
    value = bytes(range(256)) * 8192
    await store.put("/a", value)
    found = await store.get("/a")
    assert isinstance(found, Versioned)
    assert found.value == value
    await store.put("/a", b"")
    assert await store.get("/a") is not None


async def test_a_cancelled_caller_disturbs_nobody(store: MetadataStore) -> None:
    async with asyncio.TaskGroup() as group:
        cancelled = group.create_task(store.put("/a", b""))
        other = group.create_task(store.put("/b", b""))
        await asyncio.sleep(0)
        cancelled.cancel()
    assert other.result() == 0


async def test_a_closed_store_refuses_everything(store: MetadataStore) -> None:
    session = await store.open_session()
    await store.put("/a", b"", session=session)
    await store.close()
    await store.close()
    for operation in (
        store.get("/a"),
        store.put("/a", b""),
        store.delete("/a"),
        store.children("/"),
        store.next_in_sequence("/s"),
        store.open_session(),
    ):
        with pytest.raises(MetadataError, match="closed"):
            await operation
