"""Archives that are whole, cut short or hostile; tests/integration has those of a real broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pulsar_py.admin_client import AdminSettings
from pulsar_py.cli.backups.backup_jobs import back_up, restore
from pulsar_py.common.backup_archive import LIST_FILE, Archive
from pulsar_py.common.errors import ConfigurationError, ConnectError, CorruptDataError, ServiceError
from tests.http_server import Answer
from tests.unit.admin_client.test_plain_requests import serving

FILES = {
    "metadata.sqlite": b"m" * 1000,
    "ledgers/entries/1": b"e" * 70_000,
    "ledgers/MANIFEST": b"",
}


def archive_of(files: dict[str, bytes]) -> bytes:
    archive = Archive("0.9", "now", "standalone")
    data = bytearray()
    for path, content in files.items():
        data += archive.begin(path, len(content))
        data += archive.add(content)
        data += archive.end()
    return bytes(data + archive.close())


def files_in(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", ["copy", "copy.tar"])
def test_what_is_backed_up_is_restored(tmp_path: Path, name: str) -> None:
    with serving(lambda _: Answer(200, archive_of(FILES))) as server:
        listed = back_up(AdminSettings(url=server.url), tmp_path / name)
    assert listed.files.keys() == FILES.keys()
    restored = restore(tmp_path / name, tmp_path / "data")
    assert restored == listed
    assert files_in(tmp_path / "data") == FILES


CUT: dict[str, Callable[[bytes], bytes]] = {
    "in a file": lambda data: data[:30_000],
    "behind a file": lambda data: data[: data.index(LIST_FILE.encode())],
    "in the list": lambda data: data[: data.index(b'"files"')],
    "at once": lambda _: b"",
    "other bytes": lambda _: b"not a tar file" * 100,
}


@pytest.mark.parametrize("name", ["copy", "copy.tar"])
@pytest.mark.parametrize("cut", CUT.values(), ids=CUT)
def test_what_was_cut_short_leaves_nothing(
    tmp_path: Path, name: str, cut: Callable[[bytes], bytes]
) -> None:
    data = cut(archive_of(FILES))
    with serving(lambda _: Answer(200, data)) as server, pytest.raises(CorruptDataError):
        back_up(AdminSettings(url=server.url), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.tar").write_bytes(data)
    with pytest.raises(CorruptDataError):
        restore(tmp_path / "x.tar", tmp_path / "data")
    assert [each.name for each in tmp_path.iterdir()] == ["x.tar"]


def test_a_broker_that_refuses_or_is_not_there_leaves_nothing(tmp_path: Path) -> None:
    answer = Answer(409, b'{"reason": "a backup is being made"}')
    with serving(lambda _: answer) as server:
        settings = AdminSettings(url=server.url)
        with pytest.raises(ServiceError, match="is being made"):
            back_up(settings, tmp_path / "copy")
    with pytest.raises(ConnectError):
        back_up(settings, tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../outside", "/outside", "a/../../outside"])
def test_a_file_stays_below_the_directory(tmp_path: Path, path: str) -> None:
    (tmp_path / "x.tar").write_bytes(archive_of({path: b"x"}))
    with pytest.raises(CorruptDataError, match="not a path"):
        restore(tmp_path / "x.tar", tmp_path / "deep" / "data")
    assert not list(tmp_path.rglob("outside"))


def test_a_file_that_the_list_has_not_is_refused(tmp_path: Path) -> None:
    data = archive_of(FILES)
    extra = Archive("0.9", "now", "standalone")
    head = extra.begin("extra", 0)
    (tmp_path / "x.tar").write_bytes(head + data)
    with pytest.raises(CorruptDataError, match="extra is not in the list"):
        restore(tmp_path / "x.tar", tmp_path / "data")


def test_a_directory_without_its_list_or_a_file_is_no_backup(tmp_path: Path) -> None:
    with serving(lambda _: Answer(200, archive_of(FILES))) as server:
        back_up(AdminSettings(url=server.url), tmp_path / "copy")
    (tmp_path / "copy" / "metadata.sqlite").unlink()
    with pytest.raises(CorruptDataError, match=r"metadata\.sqlite is missing"):
        restore(tmp_path / "copy", tmp_path / "data")
    (tmp_path / "copy" / LIST_FILE).unlink()
    with pytest.raises(ConfigurationError, match="no backup"):
        restore(tmp_path / "copy", tmp_path / "data")
