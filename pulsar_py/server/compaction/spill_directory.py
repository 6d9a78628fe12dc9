"""`SpillDirectory`: a directory of one broker for what compactions can't hold in memory (edge).

It is made when a compaction first needs it and removed with the broker. What a killed broker left
is of no use to anybody; it stays until somebody tidies up, as with all temporary files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.errors import StorageError

PREFIX: Final = "pulsar-py-compaction-"


class SpillDirectory:
    """Owned by the broker; `disk` makes nothing before the first file."""

    def __init__(self, parent: str = "") -> None:
        """Without `parent` it is in the system's directory for temporary files."""
        self._parent = parent or None
        self._disk: LocalDisk | None = None
        self._path: Path | None = None

    def disk(self) -> Disk:
        """The directory as a disk.

        Raises:
            StorageError: It can't be made.
        """
        if self._disk is None:
            import tempfile  # noqa: PLC0415 - at first use

            # Only now is the system asked for its directory: that writes a file to try it.
            # Nobody else may read what users sent: the name is made with its rights at once.
            try:
                self._path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._parent))
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
