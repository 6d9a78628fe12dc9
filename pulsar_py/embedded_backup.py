"""`EmbeddedBackup`: lists the files of a broker with embedded stores, for a backup (edge).

    metadata.sqlite      a copy, made by SQLite while the broker works
    ledgers/…            index tables, entry logs, the manifest, the cookie

These are a data directory with which a broker starts. What is in it: all that was confirmed when
the backup was opened, and some of what was confirmed while metadata and ledgers were brought
together. The copy of the metadata lies in `backup.tmp` of the data directory while a backup is
made; what an earlier process left there is removed.

Third-party packages it may import: msgspec.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from pulsar_py.common.disks.copied_file import BackupSource, CopiedFile, of_bytes, of_disk
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.errors import StorageError
from pulsar_py.embedded_ledgers import DIRECTORY
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.metadata.embedded import FILE
from pulsar_py.metadata.instance_id import FILE as COOKIE
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.copying import copied

__all__ = ["EmbeddedBackup"]

SCRATCH: Final = "backup.tmp"


class EmbeddedBackup:
    """The `BackupSource` of one data directory."""

    def __init__(self, data_dir: Path, metadata: SqliteMetadataStore, ledgers: Bookie) -> None:
        """Use `of`."""
        self._scratch = data_dir / SCRATCH
        self._metadata = metadata
        self._ledgers = ledgers

    @classmethod
    def of(
        cls, data_dir: Path | None, metadata: MetadataStore, ledgers: LedgerStore
    ) -> BackupSource | None:
        """The source of a broker; None where a store keeps nothing in the data directory."""
        if data_dir is None or not isinstance(metadata, SqliteMetadataStore):
            return None
        return cls(data_dir, metadata, ledgers) if isinstance(ledgers, Bookie) else None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Sequence[CopiedFile]]:
        """The files, which stay as they are while the context is open; one context at a time.

        Raises:
            StorageError, MetadataError: They can't be brought to a common state now.
        """
        scratch = LocalDisk(self._scratch)
        await asyncio.to_thread(_renew, self._scratch)
        try:
            async with copied(
                self._ledgers, lambda: self._metadata.back_up(self._scratch / FILE)
            ) as files:
                cookie = await self._ledgers.storage.disk.read_whole(COOKIE)
                yield [
                    await of_disk(scratch, FILE, FILE),
                    *(replace(file, path=f"{DIRECTORY}/{file.path}") for file in files),
                    of_bytes(f"{DIRECTORY}/{COOKIE}", cookie),
                ]
        finally:
            await scratch.close()
            await asyncio.to_thread(_remove, self._scratch)


def _renew(scratch: Path) -> None:
    try:
        _remove(scratch)
        scratch.mkdir(parents=True)
    except OSError as error:
        raise StorageError(f"{scratch}: {error.strerror}") from error


def _remove(scratch: Path) -> None:
    import shutil  # noqa: PLC0415 - at first use

    shutil.rmtree(scratch, ignore_errors=True)
