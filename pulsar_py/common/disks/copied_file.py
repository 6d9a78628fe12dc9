"""`CopiedFile`: a file of a backup, read in parts while it is sent (a value).

Whoever offers it keeps its bytes as they are as long as it says; whoever takes it reads its parts
one after the other, so that memory holds one part at a time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from msgspec import Struct

from pulsar_py.common.disks.disk import Disk, read_fully
from pulsar_py.common.errors import StorageError

__all__ = ["BackupSource", "CopiedFile", "of_bytes", "of_disk"]

PART_BYTES: Final = 256 * 1024


class CopiedFile(Struct, frozen=True):
    """One file: its path with `/`, its size, and what reads it from its start."""

    path: str
    size_bytes: int
    parts: Callable[[], AsyncIterator[bytes]]


class BackupSource(Protocol):
    """What a broker keeps on its disk, as it is at one moment."""

    def opened(self) -> AbstractAsyncContextManager[Sequence[CopiedFile]]:
        """The files, which stay as they are while the context is open.

        Raises:
            StorageError, MetadataError: They can't be brought to a common state now.
        """


def of_bytes(path: str, data: bytes) -> CopiedFile:
    """A small file that is in memory."""

    async def parts() -> AsyncGenerator[bytes, None]:
        yield data

    return CopiedFile(path, len(data), parts)


async def of_disk(disk: Disk, path: str, name: str) -> CopiedFile:
    """A file of a disk with the size that it has now; it may grow, but not change.

    Raises:
        FileNotFoundError: There is none.
    """
    file = await disk.open_read(path)
    size_bytes = file.size_bytes
    await file.close()

    async def parts() -> AsyncGenerator[bytes, None]:
        file = await disk.open_read(path)
        try:
            for offset in range(0, size_bytes, PART_BYTES):
                wanted = min(PART_BYTES, size_bytes - offset)
                data = await read_fully(file, offset, wanted)
                if len(data) < wanted:
                    raise StorageError(f"{path}: it has become shorter than {size_bytes} bytes")
                yield data
        finally:
            await file.close()

    return CopiedFile(name, size_bytes, parts)
