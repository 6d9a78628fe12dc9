"""The work of `pulsar-py storage backup` and `restore` (edge).

A backup is a directory, or a tar file if its name ends in `.tar`; both have the files of
`common.backup_archive`. A directory is a data directory and the list `BACKUP.json`, so the other
commands of `storage` read it, too. Everything is written under another name beside its place,
checked and synced, and gets its own name last (`common.disks.tool_files`).

Memory holds one piece of a file at a time.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

from pulsar_py.admin_client import AdminClient, AdminSettings
from pulsar_py.admin_client.plain_requests import Download
from pulsar_py.cli.backups.progress import progress
from pulsar_py.common.backup_archive import LIST_FILE, MAX_LIST_BYTES, BackupList, FileState
from pulsar_py.common.disks.tool_files import put_in_place, sync_directories, write_file
from pulsar_py.common.errors import ConfigurationError, CorruptDataError
from pulsar_py.common.hashing import crc32c

__all__ = ["back_up", "restore"]

PIECE_BYTES: Final = 1024 * 1024
TIMEOUT_SECONDS: Final = 120.0
"""Longer than a broker takes to bring metadata and ledgers together."""
PATH: Final = "/admin/v2/brokers/backup"
SIZE_HEADER: Final = "x-backup-bytes"

Moved = Callable[[float], None]
Source = Download | IO[bytes]
Member = tuple[str, Source]
"""The path of a file, and what its bytes are read from."""


def back_up(admin: AdminSettings, destination: Path) -> BackupList:
    """Write a backup of a running broker; returns what it has.

    Raises:
        ConfigurationError: `destination` exists.
        ServiceError, ConnectError: The broker refused, or can't be reached.
        CorruptDataError: What came is not a whole backup.
        OSError: It can't be written.
    """
    if destination.exists():
        raise ConfigurationError(f"{destination} exists; name another place")
    with AdminClient(admin) as client, client.download(PATH, "application/x-tar") as download:
        total = float(download.headers.get(SIZE_HEADER, 0)) or None
        with progress("backing up", total) as moved, put_in_place(destination) as partial:
            if destination.suffix == ".tar":
                write_file(partial, _Pieces(download, moved))
                with partial.open("rb") as file:
                    return _written(_members_of(file), None, _not_shown)
            listed = _written(_members_of(download), partial, moved)
            write_file(partial / LIST_FILE, [listed.encode()])
            sync_directories(partial)
            return listed


def restore(source: Path, data_dir: Path) -> BackupList:
    """Make a data directory of a backup; returns what it has.

    Raises:
        ConfigurationError: `source` is no backup, or `data_dir` is not empty.
        CorruptDataError: The backup is not whole, or damaged.
        OSError: It can't be read or written.
    """
    if data_dir.exists() and (not data_dir.is_dir() or any(data_dir.iterdir())):
        raise ConfigurationError(
            f"{data_dir} is not empty; restore into an empty directory, or a new one"
        )
    total = float(sum(each.stat().st_size for each in source.rglob("*") if each.is_file()))
    if source.is_file():
        total = float(source.stat().st_size)
    with (
        progress("restoring", total) as moved,
        put_in_place(data_dir) as partial,
    ):
        if source.is_dir():
            listed = _written(_members_in(source), partial, moved)
        else:
            with source.open("rb") as file:
                listed = _written(_members_of(file), partial, moved)
        sync_directories(partial)
    return listed


def _members_of(source: Source) -> Iterator[Member]:
    """The files of an archive.

    Raises:
        CorruptDataError: It is none, or cut short.
    """
    try:
        # mypy: typeshed wants a whole file; of a stream tarfile calls `read` alone.
        with tarfile.open(fileobj=source, mode="r|") as archive:  # type: ignore[call-overload]
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None:
                    raise CorruptDataError(f"{member.name}: not a file; this is no backup")
                yield member.name, content
    except (tarfile.TarError, EOFError) as error:
        raise CorruptDataError(f"not a whole backup: {error}") from None


def _members_in(directory: Path) -> Iterator[Member]:
    """The files that the list of a directory names, and the list last."""
    path = directory / LIST_FILE
    if not path.is_file():
        raise ConfigurationError(f"{directory} is no backup: it has no {LIST_FILE}")
    for name in BackupList.decode(path.read_bytes()).files:
        try:
            with (directory / _checked(name)).open("rb") as file:
                yield name, file
        except FileNotFoundError:
            raise CorruptDataError(f"{name} is missing") from None
    with path.open("rb") as file:
        yield LIST_FILE, file


def _written(members: Iterator[Member], target: Path | None, moved: Moved) -> BackupList:
    """Write files below `target`, or only read them, and compare them with the list at the end.

    Raises:
        CorruptDataError: There is no list, or a file is not as it says.
    """
    found: dict[str, FileState] = {}
    if target is not None:
        target.mkdir(mode=0o700)
    for name, content in members:
        if name == LIST_FILE:
            listed = BackupList.decode(_read(content, MAX_LIST_BYTES))
            _compare(found, listed)
            return listed
        path = _checked(name)
        pieces = _Pieces(content, moved)
        if target is None:
            for _ in pieces:
                pass
        else:
            (target / path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file(target / path, pieces)
        found[name] = pieces.state
    raise CorruptDataError(f"not a whole backup: it has no {LIST_FILE}, which comes last")


class _Pieces:
    """The pieces of a file, with their checksum when all were read."""

    def __init__(self, content: Source, moved: Moved) -> None:
        self._content = content
        self._moved = moved
        self.state = FileState(0, 0)

    def __iter__(self) -> Iterator[bytes]:
        while piece := _read(self._content, PIECE_BYTES):
            self.state = FileState(
                self.state.size_bytes + len(piece), crc32c(piece, self.state.checksum)
            )
            self._moved(len(piece))
            yield piece


def _read(content: Source, size_bytes: int) -> bytes:
    """The next bytes.

    Raises:
        CorruptDataError: The archive that they are in ends before.
    """
    try:
        return content.read(size_bytes)
    except tarfile.TarError as error:
        raise CorruptDataError(f"not a whole backup: {error}") from None


def _not_shown(_: float) -> None:
    pass


def _compare(found: dict[str, FileState], listed: BackupList) -> None:
    for name in found.keys() ^ listed.files.keys():
        what = "is missing" if name in listed.files else "is not in the list"
        raise CorruptDataError(f"{name} {what}")
    for name, state in found.items():
        if state != listed.files[name]:
            raise CorruptDataError(
                f"{name}: damaged: {state.size_bytes} bytes with checksum {state.checksum:08x}, "
                f"expected {listed.files[name].size_bytes} with {listed.files[name].checksum:08x}"
            )


def _checked(name: str) -> PurePosixPath:
    """A path that stays below the directory."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise CorruptDataError(f"{name!r}: not a path of a backup")
    return path
