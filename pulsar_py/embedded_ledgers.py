"""EmbeddedLedgers: opens the ledger store that a broker keeps in its own process (edge).

The composition root gives a broker a `LedgerStoreFactory`, and nothing else knows which ledger
store that opens. This factory makes a `Bookie` on the directory `ledgers` in the data directory, or
in memory: it owns the disk, the reserve on it, and the file that says which instance's metadata it
belongs to.

Third-party packages it may import: none.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import (
    CorruptDataError,
    FormatVersionError,
    InstanceMismatchError,
    StorageError,
)
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.metadata.instance_id import check_instance_id
from pulsar_py.metadata.moved_marker import check_not_moved
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.disk_reserve import DiskReserve
from pulsar_py.storage.shared.settings import BookieSettings

DIRECTORY: Final = "ledgers"


class LedgerStoreFactory(Protocol):
    """Opens a broker's ledger store; used once a start."""

    async def prepare(self) -> None:
        """Make ready what opening the metadata needs."""

    async def __call__(
        self, metadata: MetadataStore, ledger_ids: LedgerIds, clock: Clock
    ) -> LedgerStore:
        """The open store; whoever called closes it.

        Args:
            metadata: The cluster's, which names the ledgers.
            ledger_ids: Gives new ledgers their ids, for a store that has no ids of its own.
            clock: Where it reads the time.

        Raises:
            DirectoryLockedError: Another process has it.
            InstanceMismatchError: It belongs to other metadata.
            CorruptDataError: What is stored is damaged.
            StorageError, MetadataError: It can't be opened.
        """


class EmbeddedLedgers:
    """The `LedgerStoreFactory` of the engine in `pulsar_py.storage`."""

    def __init__(self, data_dir: Path | None, settings: BookieSettings) -> None:
        """`data_dir` None keeps everything in memory, with settings of a volatile engine."""
        assert settings.is_volatile == (data_dir is None)
        self._data_dir = data_dir
        self._settings = settings

    async def prepare(self) -> None:
        """Give up the reserve on a full disk: opening the metadata needs some space.

        Raises:
            MigrationError: The directory's content was moved elsewhere; nothing was touched.
        """
        if self._data_dir is None:
            return
        check_not_moved(self._data_dir)
        disk = LocalDisk(self._data_dir / DIRECTORY)
        try:
            free_bytes = await disk.free_bytes()
            reserve = DiskReserve(disk, self._settings.reserve_bytes)
            await reserve.adapt(free_bytes, enough_bytes=sys.maxsize)
        except (FileNotFoundError, StorageError):
            pass  # There is no data yet, or whoever comes next tells what is wrong.
        finally:
            await disk.close()

    async def __call__(
        self, metadata: MetadataStore, ledger_ids: LedgerIds, clock: Clock
    ) -> LedgerStore:
        """Start the engine, where metadata and ledgers belong together."""
        if self._data_dir is None:
            return await self._start(MemoryDisk(), ledger_ids, clock)
        disk = LocalDisk(self._data_dir / DIRECTORY)
        await _check_instance(metadata, disk, self._data_dir)
        try:
            return await self._start(disk, ledger_ids, clock)
        except CorruptDataError as error:
            text = f"{self._data_dir.absolute() / DIRECTORY}: {error}"
            if not isinstance(error, FormatVersionError):
                text += f"; `pulsar-py storage verify {self._data_dir}` looks at everything"
            error.args = (text,)
            raise

    async def _start(self, disk: Disk, ledger_ids: LedgerIds, clock: Clock) -> Bookie:
        return await Bookie.start(disk, clock=clock, ledger_ids=ledger_ids, settings=self._settings)


async def _check_instance(metadata: MetadataStore, disk: Disk, data_dir: Path) -> None:
    async with OnFailureAwait(disk.close):
        await disk.make_directory("")
        try:
            await check_instance_id(metadata, disk, new_id=str(uuid4()))
        except InstanceMismatchError as error:
            raise InstanceMismatchError(f"{data_dir}: {error}") from None
