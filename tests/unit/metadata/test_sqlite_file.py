"""SqliteFile: one transaction at a time; what callers see is in the contract suite."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pulsar_py.common.errors import CorruptDataError, MetadataBadVersionError, MetadataError
from pulsar_py.metadata import paths
from pulsar_py.metadata.sqlite_file import SqliteFile
from pulsar_py.metadata.store import Notification, NotificationType


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteFile]:
    opened = SqliteFile(tmp_path / "metadata.sqlite")
    yield opened
    opened.close()


def test_a_group_sees_its_own_changes(file: SqliteFile) -> None:
    file.begin()
    assert file.put("/a", b"1", None, None, 5) == 0
    assert file.put("/a", b"2", 0, None, 6) == 1
    file.commit()
    found = file.get("/a")
    assert found is not None
    assert (found.value, found.created_millis, found.modified_millis) == (b"2", 5, 6)
    assert file.notifications == [
        Notification(NotificationType.CREATED, "/a"),
        Notification(NotificationType.MODIFIED, "/a"),
    ]


def test_what_was_rolled_back_is_gone(file: SqliteFile) -> None:
    file.begin()
    file.put("/a", b"", None, None, 0)
    file.create_sequential("/s/", b"", None, 0)
    file.roll_back()
    file.roll_back()
    assert file.get("/a") is None
    file.begin()
    assert file.create_sequential("/s/", b"", None, 0) == "/s/0000000000"
    file.commit()


def test_a_sequence_is_raised_and_never_lowered(file: SqliteFile) -> None:
    file.begin()
    file.raise_sequence("/s", 7)
    file.raise_sequence("/s", 3)
    assert file.create_sequential("/s/", b"", None, 0) == "/s/0000000007"
    file.commit()


def test_a_file_of_the_first_version_goes_on_above_the_ids_it_gave(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    SqliteFile(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO sequences VALUES (?, 200)", (paths.LEDGER_ID_COUNTER,))
        connection.execute("INSERT INTO sequences VALUES (?, 3)", (paths.PRODUCER_NAME_COUNTER,))
        connection.execute("PRAGMA user_version = 1")
    for _ in range(2):  # the second time it has the new version, and nothing is raised again
        file = SqliteFile(path)
        file.close()
    file = SqliteFile(path)
    file.begin()
    ledger = file.create_sequential(paths.LEDGER_ID_PREFIX, b"", None, 0)
    producer = file.create_sequential(paths.PRODUCER_NAME_PREFIX, b"", None, 0)
    file.commit()
    file.close()
    assert paths.sequence_number(ledger) == 201  # the last lease was 101 to 200
    assert paths.sequence_number(producer) == 3


def test_a_refused_change_leaves_the_group_as_it_was(file: SqliteFile) -> None:
    file.begin()
    file.put("/a", b"", None, None, 0)
    with pytest.raises(MetadataBadVersionError, match="expected version 7, it has 0"):
        file.delete("/a", 7)
    file.commit()
    assert file.children("/") == ["a"]
    assert len(file.notifications) == 1


def test_notifications_are_those_of_one_group(file: SqliteFile) -> None:
    file.begin()
    file.put("/a", b"", None, None, 0)
    file.commit()
    file.begin()
    file.delete_recursive("/a")
    file.commit()
    assert file.notifications == [Notification(NotificationType.DELETED, "/a")]


def test_every_commit_is_synced(file: SqliteFile) -> None:
    pragmas = {"synchronous": 2, "journal_mode": "wal", "locking_mode": "exclusive"}
    for name, expected in pragmas.items():
        assert file._connection.execute(f"PRAGMA {name}").fetchone()[0] == expected


def test_a_new_file_is_put_in_place_whole(tmp_path: Path) -> None:
    SqliteFile(tmp_path / "metadata.sqlite").close()
    assert [each.name for each in tmp_path.iterdir()] == ["metadata.sqlite"]


def test_a_file_system_without_links_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path, _target: Path) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    file = SqliteFile(tmp_path / "metadata.sqlite")
    assert file.get("/a") is None
    file.close()


def test_who_is_slower_takes_the_file_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metadata.sqlite"
    quicker = SqliteFile(path)
    quicker.begin()
    quicker.put("/a", b"", None, None, 0)
    quicker.commit()
    quicker.close()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda _: False)
        slower = SqliteFile(path)
    assert slower.get("/a") is not None
    slower.close()


def test_an_empty_file_is_none_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "metadata.sqlite"
    path.touch()
    with pytest.raises(CorruptDataError, match="is not pulsar_py's metadata"):
        SqliteFile(path)


@pytest.fixture
def somebody() -> Iterator[int]:
    """The number of a user who is not root, and who this process is for a while."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    yield os.geteuid()
    os.seteuid(before)


@pytest.fixture
def foreign_directory() -> Iterator[Path]:
    """One that everybody may enter and nobody may write, but root."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o555)
    yield directory
    shutil.rmtree(directory)


def test_a_directory_of_somebody_else_is_named_with_both_users(
    foreign_directory: Path, somebody: int
) -> None:
    owner = foreign_directory.stat().st_uid
    expected = (
        rf"{foreign_directory}: user {somebody} can't write there \(owner {owner}, .*mode 555"
    )
    with pytest.raises(MetadataError, match=expected):
        SqliteFile(foreign_directory / "metadata.sqlite")
