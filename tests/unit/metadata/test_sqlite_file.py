"""SqliteFile: one transaction at a time; what callers see is in the contract suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_py.common.errors import MetadataBadVersionError
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
    file.next_in_sequence("/s", 3)
    file.roll_back()
    file.roll_back()
    assert file.get("/a") is None
    file.begin()
    assert file.next_in_sequence("/s", 1) == 0
    file.commit()


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
