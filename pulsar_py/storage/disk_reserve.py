"""`DiskReserve`: a file that holds back disk space for the time when the disk is full (edge).

Below a minimum of free space the engine takes no entries. Other programs may use up even the rest
of the disk, and then a broker could not start again: closing a ledger whose writer died takes a
record in the journal, serving a namespace takes a key in the metadata. So a file without content
reserves some space while there is plenty. The engine deletes it when nearly nothing is free, which
makes room for the records that reading, acknowledging and deleting need, and creates it again
when there is space.

The file is `RESERVE` in the root of the disk. It is never read and may be deleted at any time.
"""

from __future__ import annotations

import logging

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import StorageError

logger = logging.getLogger(__name__)

PATH = "RESERVE"


class DiskReserve:
    """The reserve of one disk. Size 0 keeps none."""

    def __init__(self, disk: Disk, size_bytes: int) -> None:
        self._disk = disk
        self.size_bytes = size_bytes
        # Whether the file exists; None until the directory was listed.
        self._is_there: bool | None = None

    async def adapt(self, free_bytes: int, *, enough_bytes: int) -> int:
        """Delete the file if little space is free, create it if there is enough.

        It is deleted below a quarter of its own size, and created when `enough_bytes` and twice its
        size are free. Returns the bytes that are free afterwards.

        Raises:
            StorageError: The disk can't do it now.
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
            "disk full, the file that reserves space is deleted",
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
