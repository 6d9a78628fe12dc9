"""`EmbeddedMetadata`: opens the metadata store that a broker keeps in its own process (edge).

A broker uses metadata stores in two roles: one for its cluster (`local`), one that all clusters
share (`configuration`). The composition root gives it a `MetadataStoreFactory`, and nothing else
knows what implements them. This factory makes a single store for both roles: the file
`metadata.sqlite` in the data directory, or memory alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from pulsar_py.common.loops.clock import Clock
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.moved_marker import check_not_moved
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.metadata.store import MetadataStore

FILE: Final = "metadata.sqlite"


class MetadataStores(Struct, frozen=True):
    """The stores of a broker's metadata; one store may have both roles."""

    local: MetadataStore
    configuration: MetadataStore

    async def close(self) -> None:
        """Close both. May be called again."""
        try:
            await self.local.close()
        finally:
            if self.configuration is not self.local:
                await self.configuration.close()


class MetadataStoreFactory(Protocol):
    """Opens a broker's metadata stores; called once at each start."""

    async def __call__(self, clock: Clock) -> MetadataStores:
        """Open the stores; the caller has to close them.

        Raises:
            DirectoryLockedError: Another process has them.
            MigrationError: They were moved elsewhere.
            CorruptDataError: What is stored is damaged.
            OSError, MetadataError: They can't be opened.
        """


class EmbeddedMetadata:
    """The `MetadataStoreFactory` of SQLite and memory."""

    def __init__(self, data_dir: Path | None) -> None:
        """`data_dir` None keeps everything in memory; else the directory is made if missing."""
        self._data_dir = data_dir

    async def __call__(self, clock: Clock) -> MetadataStores:
        """Open the file, or an empty store in memory."""
        store: MetadataStore
        if self._data_dir is None:
            store = MemoryMetadataStore(clock)
        else:
            check_not_moved(self._data_dir)
            _make_directory(self._data_dir)
            store = await SqliteMetadataStore.open(self._data_dir / FILE, clock)
        return MetadataStores(local=store, configuration=store)


def _make_directory(data_dir: Path) -> None:
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OSError(
            error.errno,
            f"data directory {data_dir.absolute()} can't be made: {reason}; "
            "choose another one (data_dir, --data-dir)",
        ) from error
