"""Decides which journal files a start replays, and up to where, or refuses the start (pure).

A file without a header, or with one that is not begun, was created ahead, and no block in it was
ever confirmed; spares have names of their own and are not looked at. Each header names the
file before it and that file's end. So the files that count are a chain from the newest header back
to the checkpoint's mark, and only the newest file's end is unknown. There the first block that
isn't whole is a torn write and is cut off, unless a whole block follows: then it was confirmed once
and is damaged now, and so is a file that ends before the place that its successor names. No
confirmed block is ever skipped: instead the start fails with the file and offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.journal.file_header import FileHeader


class FoundFile(Struct, frozen=True):
    """One journal file as a start finds it."""

    file_id: int
    path: str
    header: FileHeader | None
    lost_header: FileHeader | None = None
    """With what the file's blocks are read; only where it has whole ones and no header."""

    @property
    def is_begun(self) -> bool:
        """Whether the file may have a confirmed block."""
        return self.header is not None and self.header.is_begun


class ReplayFile(Struct, frozen=True):
    """A file to replay from `start` to `end` (offsets) or, if None, to its last whole block."""

    file_id: int
    path: str
    start: int
    end: int | None
    life: FileHeader
    """Whose blocks count."""


class ReplayPlan(Struct, frozen=True):
    """The files to replay, in order, and the ids of those that nothing needs."""

    files: tuple[ReplayFile, ...]
    leftovers: tuple[int, ...]


def plan_replay(found: Sequence[FoundFile], mark: tuple[int, int]) -> ReplayPlan:
    """The journal files to replay and those that are left over, given the checkpoint's mark.

    Raises:
        CorruptDataError: A file is missing or has lost its header.
    """
    by_id = {file.file_id: file for file in found if file.file_id >= mark[0]}
    for file in by_id.values():
        if file.lost_header is not None:
            raise CorruptDataError(f"{file.path}: offset 0: the file header is damaged")
    begun = [file_id for file_id, file in by_id.items() if file.is_begun]
    if not begun:
        if mark[1]:
            raise CorruptDataError(f"journal file {mark[0]} of the checkpoint is missing")
        return ReplayPlan((), tuple(file.file_id for file in found))
    files = _chain(by_id, max(begun), mark)
    chained = {file.file_id for file in files}
    leftovers = tuple(file.file_id for file in found if file.file_id not in chained)
    return ReplayPlan(tuple(files), leftovers)


def _chain(
    by_id: Mapping[int, FoundFile], newest_id: int, mark: tuple[int, int]
) -> list[ReplayFile]:
    """The files that count, oldest first."""
    files: list[ReplayFile] = []
    file_id, end = newest_id, None
    while True:
        file = by_id.get(file_id)
        if file is None or file.header is None or not file.is_begun:
            raise CorruptDataError(
                f"journal file {file_id} is missing or has lost its header; "
                f"{files[0].path} says that it goes on to {end}"
            )
        if file.header.file_id != file_id:
            raise CorruptDataError(
                f"{file.path}: has the header of journal file {file.header.file_id}"
            )
        is_marked = file_id == mark[0] and mark[1] > 0
        start = max(mark[1] if is_marked else 0, file.header.first_offset)
        files.insert(0, ReplayFile(file_id, file.path, start, end, file.header))
        previous = (file.header.previous_id, file.header.previous_end)
        if is_marked or previous == mark:
            return files
        if previous < mark:
            raise CorruptDataError(
                f"{file.path}: follows offset {previous[1]} of journal file {previous[0]}, "
                f"but the checkpoint ends at offset {mark[1]} of journal file {mark[0]}"
            )
        file_id, end = previous


def check_end(file: ReplayFile, stopped_at: int, *, has_later_block: bool) -> None:
    """Decide whether the first block that isn't whole is a torn write or damage.

    Raises:
        CorruptDataError: It can't be a torn write: confirmed data is damaged.
    """
    if file.end is not None and stopped_at < file.end:
        raise CorruptDataError(
            f"{file.path}: offset {stopped_at}: a damaged block; "
            f"the next file says that blocks go on to {file.end}"
        )
    if file.end is None and has_later_block:
        raise CorruptDataError(
            f"{file.path}: offset {stopped_at}: a damaged block, with a whole one behind it"
        )
