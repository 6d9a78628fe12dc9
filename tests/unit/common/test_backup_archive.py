"""The archive of a backup is a tar file that other tools read, with its list last."""

from __future__ import annotations

import io
import tarfile

import pytest

from pulsar_py.common.backup_archive import LIST_FILE, Archive, BackupList, FileState
from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.common.hashing import crc32c

LISTED = BackupList("0.9", "2026-01-31T12:00:00Z", "c", {"a/b": FileState(3, 7)})


def test_tar_reads_it_and_the_list_is_last() -> None:
    archive = Archive("0.9", "now", "c")
    contents = {"a": b"", "dir/b": b"x" * 512, "dir/c": b"yz"}
    data = bytearray()
    for path, content in contents.items():
        data += archive.begin(path, len(content))
        for place in range(0, len(content), 100):
            data += archive.add(content[place : place + 100])
        data += archive.end()
    data += archive.close()
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        names = opened.getnames()
        found = {name: opened.extractfile(name).read() for name in names}  # type: ignore[union-attr]
    assert names == [*contents, LIST_FILE]
    listed = BackupList.decode(found.pop(LIST_FILE))
    assert found == contents
    assert listed.files == {
        path: FileState(len(content), crc32c(content)) for path, content in contents.items()
    }
    assert (listed.version, listed.made, listed.cluster) == ("0.9", "now", "c")


def test_a_file_of_another_size_is_a_fault_of_ours() -> None:
    archive = Archive("0.9", "now", "c")
    archive.begin("a", 2)
    archive.add(b"1")
    with pytest.raises(AssertionError):
        archive.end()


def test_a_list_is_read_back() -> None:
    assert BackupList.decode(LISTED.encode()) == LISTED


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"format": 1}', LISTED.encode()[:-20]])
def test_what_is_no_list_is_damage(data: bytes) -> None:
    with pytest.raises(CorruptDataError, match="not the list"):
        BackupList.decode(data)


def test_another_format_is_said() -> None:
    with pytest.raises(FormatVersionError):
        BackupList.decode(LISTED.encode().replace(b'"format": 1', b'"format": 2'))
