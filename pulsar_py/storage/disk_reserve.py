"""DiskReserve: space kept back for a disk on which there is none left (edge).

Below a minimum of free space the engine takes no entries; what others on the same disk leave may be
nothing at all. Then a broker could not even start again: to end a ledger whose writer died takes a
record in the journal, to serve a namespace a key in the metadata. So a file without content holds
some space while there is plenty. Where nearly none is left it goes, which lets records through that
reading, acknowledging and deleting need; it is made again when there is room.

`RESERVE` in the root of the disk: nobody reads it, and it may be deleted at any time.
"""

from __future__ import annotations

import logging

from pulsar_py.common.disk import Disk
from pulsar_py.common.errors import StorageError

logger = logging.getLogger(__name__)

PATH = "RESERVE"


class DiskReserve:
    """The reserve of one disk. Size 0 keeps none."""

    def __init__(self, disk: Disk, size_bytes: int) -> None:
        self._disk = disk
        self.size_bytes = size_bytes
        # Whether the file is there; None while nobody has looked.
        self._is_there: bool | None = None

    async def adapt(self, free_bytes: int, *, enough_bytes: int) -> int:
        """Give the space up if hardly any is free, take it if there is enough; returns what is.

        Raises:
            StorageError: It can't be done now.
        """
        if not self.size_bytes:
            return free_bytes
        if self._is_there is None:
            self._is_there = PATH in await self._disk.list_directory("")
        if self._is_there and free_bytes < self.size_bytes // 4:
            await self._release(free_bytes)
            return await self._disk.free_bytes()
        if not self._is_there and free_bytes >= enough_bytes + 2 * self.size_bytes:
            await self._take()
            return await self._disk.free_bytes()
        return free_bytes

    async def _release(self, free_bytes: int) -> None:
        await self._disk.remove(PATH)
        self._is_there = False
        logger.error(
            "disk full, its reserve is given up",
            extra={"free_bytes": free_bytes, "reserve_bytes": self.size_bytes},
        )

    async def _take(self) -> None:
        try:
            file = await self._disk.create(PATH, reserve_bytes=self.size_bytes)
            await file.close()
        except StorageError:
            await self._disk.remove(PATH)
            raise
        self._is_there = True
