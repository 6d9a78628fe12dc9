"""`SpillDirectory`: a directory of one broker for what compactions can't hold in memory (edge).

It is made when a compaction first needs it, and removed with the broker. What a killed broker left
is of no use to anybody: the next one with the same parent removes it when it starts. Whose broker
still runs is told by a lock on the directory, which the system releases with the process.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from pulsar_py.common.disks.directory_lock import DirectoryLock, is_locked
from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.errors import StorageError

logger = logging.getLogger(__name__)

PREFIX: Final = "pulsar-py-compaction-"

_TRIES: Final = 10


class SpillDirectory:
    """Owned by the broker; `disk` makes nothing before the first file."""

    def __init__(self, parent: str = "", *, makes_parent: bool = False) -> None:
        """Without `parent` it is in the system's directory for temporary files."""
        self._parent = parent or None
        self._makes_parent = makes_parent
        self._disk: LocalDisk | None = None
        self._path: Path | None = None
        self._lock: DirectoryLock | None = None

    async def remove_leftovers(self) -> None:
        """Remove what killed brokers left in the parent; only where one is set."""
        if self._parent is None:
            return
        left = [path for path in _made_in(self._parent) if not is_locked(path)]
        if not left:
            return
        import shutil  # noqa: PLC0415 - at first use

        for path in left:
            await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
        logger.info("removed what compactions left", extra={"directories": len(left)})

    def disk(self) -> Disk:
        """The directory as a disk.

        Raises:
            StorageError: It can't be made.
        """
        if self._disk is None:
            # Only now is the system asked for its directory: that writes a file to try it.
            try:
                if self._makes_parent and self._parent is not None:
                    Path(self._parent).mkdir(exist_ok=True)
                self._path, self._lock = _made(self._parent)
            except OSError as error:
                raise StorageError(
                    f"{self._parent}: no directory for a compaction can be made there: {error}"
                ) from error
            self._disk = LocalDisk(self._path)
        return self._disk

    async def remove(self) -> None:
        """Remove it with all that is in it; fine if it was never made."""
        disk, self._disk = self._disk, None
        if disk is None or self._path is None:
            return
        import shutil  # noqa: PLC0415 - at first use

        await disk.run(shutil.rmtree, self._path, ignore_errors=True)
        await disk.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _made(parent: str | None) -> tuple[Path, DirectoryLock | None]:
    """A new directory, and its lock; None where the system has no locks.

    Raises:
        OSError: There is none.
    """
    import tempfile  # noqa: PLC0415 - at first use

    for _ in range(_TRIES):
        # Nobody else may read what users sent: the name is made with its rights at once.
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        with suppress(FileNotFoundError):  # another broker took it for left over: once more
            return path, DirectoryLock.take(path)
    raise FileNotFoundError(f"{path} was removed each time")


def _made_in(parent: str) -> list[Path]:
    try:
        with os.scandir(parent) as entries:
            return [
                Path(entry.path)
                for entry in entries
                if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:  # there is none yet
        return []
