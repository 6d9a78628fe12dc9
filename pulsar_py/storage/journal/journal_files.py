"""`JournalFiles`: begins new journal files, and reuses old ones for them (edge).

In a file that was written before, a sync has nothing to do but to write: the file system allocates
nothing and commits nothing of its own. Measured with groups of 4 MB on ext4: two to four times the
bytes a second, and for 4 KB 0.19 ms in place of 0.33. So a file that ends before the mark becomes a
*spare*, named `journal/spare-<id>`, if each byte of it was written, and the next file that is begun
takes it. No file is written only to become a spare: a fresh directory has none and starts without
delay, and its first files are the first spares.

Taking a spare into use has these steps; a crash between any two leaves a spare, or a file that is
not begun, which recovery does not look into:

    1. a header of the new id and a new generation, not begun, is written over the old one
    2. sync of the file
    3. the file gets its name in the place of the spare's
    4. sync of the directory
    5. with the first group, the header that is begun, and the first block, in one sector

Spares are nothing but space: they are given up when the disk is full, where they have another size
than journal files have now, and when an error on them makes them suspicious.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pulsar_py.common.disks.disk import AppendFile, Disk
from pulsar_py.common.errors import StorageError
from pulsar_py.storage.journal.file_header import FileHeader
from pulsar_py.storage.shared.settings import SECTOR_BYTES, BookieSettings

logger = logging.getLogger(__name__)

DIRECTORY: Final = "journal"
SPARE: Final = "spare-"
"""What names of spares begin with; all others are ids."""


def journal_path(file_id: int) -> str:
    """Path of a journal file."""
    return f"{DIRECTORY}/{file_id:010}"


def spare_path(file_id: int) -> str:
    """Path of the spare that a journal file becomes."""
    return f"{DIRECTORY}/{SPARE}{file_id:010}"


class NewFile(Struct, frozen=True):
    """A journal file without a block, open for writing at its start."""

    file: AppendFile
    header: FileHeader


class JournalFiles:
    """The journal files of one engine that are not being written. Owned by the Bookie."""

    def __init__(self, disk: Disk, settings: BookieSettings) -> None:
        self._disk = disk
        self._settings = settings
        # Paths of spares, the one to take next first.
        self._spares: deque[str] = deque()
        # Files of which each byte was written.
        self._written: set[int] = set()

    @property
    def spares_count(self) -> int:
        """How many files wait to be used again."""
        return len(self._spares)

    async def find_spares(self) -> None:
        """Take up the spares of an earlier process, and remove those that are of no use."""
        for name in await self._disk.list_directory(DIRECTORY):
            if name.startswith(SPARE):
                path = f"{DIRECTORY}/{name}"
                if await self._is_of_use(path):
                    self._spares.append(path)
                else:
                    await self._disk.remove(path)

    async def create(self, file_id: int, *, largest_block_bytes: int) -> NewFile:
        """A file for the journal to begin, whose name is durable.

        Raises:
            StorageError: It can't be created.
        """
        header = FileHeader(
            file_id,
            generation=self._disk.random_number(),
            block_bytes=SECTOR_BYTES,
            largest_block_bytes=largest_block_bytes,
            is_begun=False,
        )
        path = journal_path(file_id)
        # A crash or a failed attempt may have left the file; nothing in it is confirmed.
        await self._disk.remove(path)
        new = await self._take_spare(path, header)
        if new is None:
            file = await self._create_reserved(path)
            new = NewFile(file or await self._disk.create(path), header)
        await self._disk.sync_directory(DIRECTORY)
        return new

    def on_written(self, file_id: int) -> None:
        """Note that each byte of a file was written, so that it may be used again."""
        self._written.add(file_id)

    def on_failed(self, file_id: int) -> None:
        """Note that a file can't be trusted any more."""
        self._written.discard(file_id)

    async def retire(self, file_id: int) -> None:
        """Make a spare of a file of which nothing is needed any more, or remove it."""
        path = journal_path(file_id)
        is_written = file_id in self._written
        self._written.discard(file_id)
        if is_written and len(self._spares) < self._settings.journal_spare_files_count:
            spare = spare_path(file_id)
            await self._disk.rename(path, spare)
            self._spares.append(spare)
        else:
            await self._disk.remove_slowly(path)

    async def give_up_spares(self) -> None:
        """Remove all spares, which makes room on a full disk."""
        while self._spares:
            await self._disk.remove(self._spares.popleft())

    async def _is_of_use(self, path: str) -> bool:
        """Whether a spare has the size of a journal file, and may stay."""
        if len(self._spares) >= self._settings.journal_spare_files_count:
            return False
        file = await self._disk.open_read(path)
        try:
            size_bytes = file.size_bytes
        finally:
            await file.close()
        usual_bytes = self._settings.journal_file_bytes
        # A file is a group longer than the setting at most; twice as much is of another setting.
        return usual_bytes <= size_bytes < 2 * usual_bytes + self._settings.journal_group_bytes

    async def _take_spare(self, path: str, header: FileHeader) -> NewFile | None:
        """A spare under its new name; None if there is none that works."""
        while self._spares:
            spare = self._spares.popleft()
            header = replace(
                header, is_used_again=True, block_bytes=self._settings.journal_block_bytes
            )
            try:
                file = await self._disk.open_again(spare)
                try:
                    await file.append([header.encode()])
                    await file.sync()
                finally:
                    await file.close()
                await self._disk.rename(spare, path)
                self._written.add(header.file_id)
                is_direct = self._settings.is_journal_direct
                return NewFile(await self._disk.open_again(path, is_direct=is_direct), header)
            except (StorageError, FileNotFoundError) as error:
                logger.warning("spare of the journal given up", extra={"error": str(error)})
                self._written.discard(header.file_id)
                for each in (spare, path):
                    await self._disk.remove(each)
        return None

    async def _create_reserved(self, path: str) -> AppendFile | None:
        """A file of the full size; None if reserving it would take space that appends may need.

        Without it a full disk still has room for the records of deletions.
        """
        settings = self._settings
        size_bytes = settings.journal_file_bytes
        needed_bytes = settings.minimum_free_bytes
        if needed_bytes:
            needed_bytes += settings.append_limit_bytes
        try:
            if await self._disk.free_bytes() - size_bytes < needed_bytes:
                return None
            return await self._disk.create(path, reserve_bytes=size_bytes)
        except StorageError as error:
            logger.info("journal file not reserved", extra={"error": str(error)})
            return None
