"""The archive of a backup: a tar file whose last member lists the others with their checksums.

    metadata.sqlite, ledgers/…    the files of a data directory, one member each
    BACKUP.json                   {"format": 1, "version": "0.9.0", "made": "2026-01-31T12:00:00Z",
                                   "cluster": "standalone",
                                   "files": {"ledgers/MANIFEST":
                                             {"bytes": 231, "crc32c": "0a1b2c3d"}}}

The list is written last, so an archive that was cut short has none, and is no backup. Members are
regular files with mode 0600. `Archive` makes the bytes around the files' own, and keeps the list;
`BackupList` reads it.
"""

from __future__ import annotations

import json
from typing import Any, Final

from msgspec import Struct, field

from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.hashing import crc32c

__all__ = ["FORMAT", "LIST_FILE", "Archive", "BackupList", "FileState"]

LIST_FILE: Final = "BACKUP.json"
FORMAT: Final = 1
BLOCK_BYTES: Final = 512
MAX_LIST_BYTES: Final = 64 * 1024 * 1024
"""The largest list that is read: some hundred thousand files."""


class FileState(Struct, frozen=True):
    """Size and checksum of a file."""

    size_bytes: int
    checksum: int


class BackupList(Struct, frozen=True):
    """The list of a backup's files."""

    version: str
    made: str
    cluster: str
    files: dict[str, FileState]

    def encode(self) -> bytes:
        """The stored form."""
        value = {
            "format": FORMAT,
            "version": self.version,
            "made": self.made,
            "cluster": self.cluster,
            "files": {
                path: {"bytes": each.size_bytes, "crc32c": f"{each.checksum:08x}"}
                for path, each in self.files.items()
            },
        }
        return (json.dumps(value, indent=1) + "\n").encode()

    @classmethod
    def decode(cls, data: bytes) -> BackupList:
        """Read the stored form.

        Raises:
            CorruptDataError: It is none; of another format it is a `FormatVersionError`.
        """
        try:
            value: dict[str, Any] = parse_json(data)  # Any: JSON
            if value["format"] != FORMAT:
                raise FormatVersionError(LIST_FILE, "backup", value["format"], FORMAT)
            files = {
                str(path): FileState(int(each["bytes"]), int(each["crc32c"], 16))
                for path, each in value["files"].items()
            }
            return cls(str(value["version"]), str(value["made"]), str(value["cluster"]), files)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CorruptDataError(f"{LIST_FILE}: not the list of a backup") from None


class Archive(Struct):
    """Makes the bytes of one archive, file by file."""

    version: str
    made: str
    cluster: str
    files: dict[str, FileState] = field(default_factory=dict)
    _path: str = ""
    _size_bytes: int = 0
    _written_bytes: int = 0
    _checksum: int = 0

    def begin(self, path: str, size_bytes: int) -> bytes:
        """What comes before a file's bytes."""
        self._path, self._size_bytes = path, size_bytes
        self._written_bytes = self._checksum = 0
        return _header(path, size_bytes)

    def add(self, part: bytes) -> bytes:
        """Take note of a part of the file, and return it."""
        self._checksum = crc32c(part, self._checksum)
        self._written_bytes += len(part)
        return part

    def end(self) -> bytes:
        """What comes behind a file's bytes."""
        assert self._written_bytes == self._size_bytes, (self._path, self._written_bytes)
        self.files[self._path] = FileState(self._size_bytes, self._checksum)
        return _padding(self._size_bytes)

    def close(self) -> bytes:
        """The list, and the end of the archive."""
        data = BackupList(self.version, self.made, self.cluster, self.files).encode()
        return _header(LIST_FILE, len(data)) + data + _padding(len(data)) + bytes(2 * BLOCK_BYTES)


def _header(path: str, size_bytes: int) -> bytes:
    import tarfile  # noqa: PLC0415 - 4 modules, for backups alone

    member = tarfile.TarInfo(path)
    member.size, member.mode = size_bytes, 0o600
    return member.tobuf(tarfile.GNU_FORMAT)


def _padding(size_bytes: int) -> bytes:
    return bytes(-size_bytes % BLOCK_BYTES)
