"""What can be read of a damaged file, and the new one that is made of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pulsar_py.common.errors import FormatVersionError, MetadataError
from pulsar_py.metadata.inspection import MetadataContents, read_metadata, write_metadata
from pulsar_py.metadata.sqlite_file import SqliteFile

KEYS = {f"/a/{number:04}": bytes([number % 256]) * 60 for number in range(400)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "metadata.sqlite"
    write_metadata(path, MetadataContents(dict(KEYS), {"/ids": 200}), now_millis=5)
    return path


def read(path: Path) -> MetadataContents:
    scratch = path.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    return read_metadata(path, scratch)


def test_what_was_written_is_read(path: Path) -> None:
    found = read(path)
    assert (found.keys, found.sequences, found.findings) == (KEYS, {"/ids": 200}, [])


def test_what_is_only_in_the_wal_is_read_and_nothing_is_changed(path: Path) -> None:
    file = SqliteFile(path)
    file.begin()
    file.put("/b", b"new", None, None, 1)
    file.put("/session", b"gone", None, "owner", 1)
    file.commit()
    before = {each: each.read_bytes() for each in path.parent.glob("metadata*")}
    assert read(path).keys == KEYS | {"/b": b"new"}
    assert {each: each.read_bytes() for each in path.parent.glob("metadata*")} == before
    file.close()


def test_rows_on_whole_pages_are_read_from_a_broken_table(path: Path) -> None:
    size = 4096
    data = bytearray(path.read_bytes())
    page = next(
        at for at in range(size, len(data), size) if data.find(b"/a/0100", at, at + size) > 0
    )
    data[page : page + size] = b"\xaa" * size
    path.write_bytes(data)
    found = read(path)
    assert found.findings
    assert all(each.path == path.name for each in found.findings)
    assert 0 < len(found.keys) < len(KEYS)
    assert found.keys.items() <= KEYS.items()


@pytest.mark.parametrize("data", [b"", b"no database at all" * 300])
def test_what_is_no_file_of_ours(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    found = read(path)
    assert (found.keys, bool(found.findings)) == ({}, True)


def test_a_missing_file(tmp_path: Path) -> None:
    assert [str(each) for each in read(tmp_path / "none").findings] == ["none: missing"]


def test_another_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(FormatVersionError, match="version 7"):
        read(path)


def test_a_key_without_bytes(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE keys SET value = 'text' WHERE path = '/a/0001'")
        connection.commit()
    found = read(path)
    assert [each.problem for each in found.findings] == ["key '/a/0001' has no bytes"]
    assert "/a/0001" not in found.keys


def test_a_sequence_of_no_sense_is_lost_and_the_others_are_kept(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO sequences VALUES ('/text', 'text'), ('/less', -1)")
        connection.commit()
    found = read(path)
    assert [each.problem for each in found.findings if each.problem.startswith("sequence ")] == [
        "sequence '/less' is lost, its next number is -1",
        "sequence '/text' is lost, its next number is 'text'",
    ]
    assert found.sequences == {"/ids": 200}


@pytest.mark.parametrize("size_bytes", [8, 60, 3000])
def test_a_page_of_sequences_of_which_a_part_is_gone(path: Path, size_bytes: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'sequences'"
        ).fetchone()
    data = bytearray(path.read_bytes())
    data[page * 4096 - size_bytes : page * 4096] = bytes(size_bytes)
    path.write_bytes(data)
    found = read(path)
    assert any("sequence" in each.problem for each in found.findings)
    assert (found.keys, found.sequences) == (KEYS, {})
    again = path.with_name("again")
    write_metadata(again, found, now_millis=5)
    assert read(again).keys == KEYS


def test_what_can_not_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    contents = MetadataContents({"/a": None})  # type: ignore[dict-item]
    with pytest.raises(MetadataError, match=r"metadata\.sqlite: NOT NULL"):
        write_metadata(tmp_path / "metadata.sqlite", contents, now_millis=1)
