"""SqliteMetadataStore: groups, restarts, locks, failures; the rest is in the contract suite."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pulsar_py.common.errors import (
    CorruptDataError,
    DirectoryLockedError,
    FormatVersionError,
    MetadataError,
    MetadataExistsError,
)
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.metadata import sqlite_file, sqlite_store
from pulsar_py.metadata.sqlite_file import SqliteFile
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.metadata.store import MUST_NOT_EXIST


class WallAt(Clock):
    """Time that stands still."""

    def __init__(self, millis: int) -> None:
        self._millis = millis

    def monotonic_seconds(self) -> float:
        return self._millis / 1000

    def wall_time_millis(self) -> int:
        return self._millis


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metadata.sqlite"


async def test_everything_but_ephemeral_keys_survives_a_restart(path: Path) -> None:
    store = await SqliteMetadataStore.open(path, SystemClock())
    session = await store.open_session()
    await store.put("/a", b"1")
    await store.put("/a", b"2")
    await store.put("/e", b"", expected_version=MUST_NOT_EXIST, session=session)
    await store.create_sequential("/s/n-", b"", session)
    before = await store.get("/a")
    await store.close()
    store = await SqliteMetadataStore.open(path, SystemClock())
    assert await store.get("/a") == before
    assert await store.children("/") == ["a"]
    assert await store.create_sequential("/s/n-", b"") == "/s/n-0000000001"
    await store.close()


async def test_ephemeral_keys_that_a_crash_left_go_at_the_next_start(path: Path) -> None:
    file = SqliteFile(path)
    file.begin()
    file.put("/e", b"", None, "a session", 0)
    file.put("/a", b"", None, None, 0)
    file.commit()
    file.close()  # without ending the session
    store = await SqliteMetadataStore.open(path, SystemClock())
    assert await store.children("/") == ["a"]
    await store.close()


async def test_session_ids_differ_over_restarts(path: Path) -> None:
    store = await SqliteMetadataStore.open(path, WallAt(1000))
    first = (await store.open_session()).session_id
    await store.close()
    store = await SqliteMetadataStore.open(path, WallAt(1001))
    assert (await store.open_session()).session_id != first
    await store.close()


async def test_a_second_store_on_the_same_file_is_refused(path: Path) -> None:
    store = await SqliteMetadataStore.open(path, SystemClock())
    with pytest.raises(
        DirectoryLockedError,
        match=r"metadata\.sqlite: the data directory is in use by another process",
    ):
        await SqliteMetadataStore.open(path, SystemClock())
    await store.put("/a", b"")
    await store.close()
    store = await SqliteMetadataStore.open(path, SystemClock())
    await store.close()


async def test_a_file_of_something_else_is_refused(path: Path) -> None:
    _write(path, b"not a database, but long enough to have a header" * 100)
    with pytest.raises(CorruptDataError, match=r"metadata\.sqlite"):
        await SqliteMetadataStore.open(path, SystemClock())


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


async def test_a_database_of_something_else_is_refused(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 1")
    connection.execute("CREATE TABLE keys (a)")
    connection.close()
    with pytest.raises(CorruptDataError, match="is not pulsar_py's metadata"):
        await SqliteMetadataStore.open(path, SystemClock())


@pytest.mark.parametrize("version", [0, 99])
async def test_another_format_is_refused(path: Path, version: int) -> None:
    await (await SqliteMetadataStore.open(path, SystemClock())).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(FormatVersionError, match=f"sqlite: .*version {version}, .* version 2"):
        await SqliteMetadataStore.open(path, SystemClock())


async def test_a_directory_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MetadataError, match="no"):
        await SqliteMetadataStore.open(tmp_path / "no" / "metadata.sqlite", SystemClock())


async def test_a_thousand_concurrent_puts_are_one_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = _count_commits(monkeypatch)
    store = await SqliteMetadataStore.open(path, SystemClock())
    await asyncio.gather(*(store.put(f"/k{number}", b"") for number in range(1000)))
    assert len(commits) == 1
    await store.close()


async def test_a_group_has_an_upper_bound(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = _count_commits(monkeypatch)
    monkeypatch.setattr(sqlite_store, "MAX_OPERATIONS_PER_COMMIT", 10)
    store = await SqliteMetadataStore.open(path, SystemClock())
    await asyncio.gather(*(store.put(f"/k{number}", b"") for number in range(25)))
    assert len(commits) == 3
    await store.close()


def _count_commits(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    commits: list[None] = []
    commit = SqliteFile.commit

    def counted(file: SqliteFile) -> None:
        commits.append(None)
        commit(file)

    monkeypatch.setattr(SqliteFile, "commit", counted)
    return commits


async def test_one_that_fails_leaves_the_others_of_its_group(path: Path) -> None:
    store = await SqliteMetadataStore.open(path, SystemClock())
    await store.put("/taken", b"")
    good, bad, also_good = await asyncio.gather(
        store.put("/a", b""),
        store.put("/taken", b"", expected_version=MUST_NOT_EXIST),
        store.put("/b", b""),
        return_exceptions=True,
    )
    assert (good, also_good) == (0, 0)
    assert isinstance(bad, MetadataExistsError)
    await store.close()


async def test_a_value_that_cannot_be_bound_fails_alone(path: Path) -> None:
    store = await SqliteMetadataStore.open(path, SystemClock())
    good, bad = await asyncio.gather(
        store.put("/a", b""),
        store.put("/b", object()),  # type: ignore[arg-type]
        return_exceptions=True,
    )
    assert good == 0
    assert isinstance(bad, Exception)
    assert await store.children("/") == ["a"]
    await store.close()


async def test_a_failed_commit_fails_the_whole_group_and_no_other(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = await SqliteMetadataStore.open(path, SystemClock())
    heard: list[str] = []
    store.watch("/", lambda each: heard.append(each.path))
    with monkeypatch.context() as patch:

        def fail(_: SqliteFile) -> None:
            raise MetadataError("database or disk is full")

        patch.setattr(SqliteFile, "commit", fail)
        results = await asyncio.gather(
            store.put("/a", b""), store.put("/b", b""), return_exceptions=True
        )
    assert [str(result) for result in results] == ["database or disk is full"] * 2
    assert heard == []
    assert "metadata not written" in caplog.text
    assert await store.put("/a", b"") == 0
    assert heard == ["/a"]
    await store.close()


async def test_a_full_disk_is_an_error_and_reads_go_on(path: Path) -> None:
    store = await SqliteMetadataStore.open(path, SystemClock())
    await store.put("/a", b"1")
    await store._submit(
        lambda file: file._connection.execute("PRAGMA max_page_count = 10").fetchone(),
        is_change=False,
    )
    with pytest.raises(MetadataError, match="full"):
        await store.put("/b", bytes(100_000))
    found = await store.get("/a")
    assert found is not None
    assert await store.put("/a", b"2") == 1
    await store.close()


async def test_what_is_queued_when_it_closes_is_written(path: Path) -> None:
    store = await SqliteMetadataStore.open(path, SystemClock())
    queued = asyncio.gather(*(store.put(f"/k{number}", b"") for number in range(10)))
    await asyncio.sleep(0)
    await store.close()
    assert await queued == [0] * 10
    store = await SqliteMetadataStore.open(path, SystemClock())
    assert len(await store.children("/")) == 10
    await store.close()


async def test_a_backup_has_what_is_written_meanwhile_and_holds_nobody_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BACKUP_PAGES", 5)
    real, pause = SqliteFile.back_up, threading.Event()

    def slowly(file: SqliteFile, copy: Path, between: Callable[[], None]) -> None:
        real(file, copy, lambda: between() if not pause.wait(0.002) else None)

    monkeypatch.setattr(SqliteFile, "back_up", slowly)
    store = await SqliteMetadataStore.open(path, SystemClock())
    await asyncio.gather(*(store.put(f"/k{number}", b"x" * 1000) for number in range(300)))
    copy_path = path.with_name("copy")
    backup = asyncio.ensure_future(store.back_up(copy_path))  # noqa: TID251 - awaited below
    await asyncio.sleep(0)
    done: list[int] = []
    while not backup.done():
        await store.put(f"/meanwhile{len(done)}", b"y")
        done.append(await store.put("/k0", b"changed"))
    await backup
    await store.put("/later", b"z")
    assert len(done) > 3

    copy = SqliteFile(copy_path)
    assert [copy.get(f"/k{number}") is not None for number in range(300)] == [True] * 300
    found = [copy.get(f"/meanwhile{number}") is not None for number in range(len(done))]
    assert found == sorted(found, reverse=True), "a later change is there without an earlier one"
    assert sum(found) >= len(done) - 2
    assert copy.get("/later") is None
    copy.close()
    await store.close()
    assert not copy_path.with_name("copy-wal").exists()


async def test_a_backup_that_can_not_be_written_is_an_error_and_the_store_goes_on(
    path: Path,
) -> None:
    store = await SqliteMetadataStore.open(path, SystemClock())
    with pytest.raises(MetadataError):
        await store.back_up(path.parent / "no" / "directory")
    await store.put("/a", b"")
    closing = asyncio.ensure_future(store.close())  # noqa: TID251 - awaited below
    await asyncio.sleep(0)
    with pytest.raises(MetadataError, match="closed"):
        await store.back_up(path.with_name("late"))
    await closing
