"""What to do with the journal files a start finds: replay, cut off, or refuse. Pure.

A file without a header was reserved and never confirmed anything. Each file's header says where the
one before it ends, so only the last file has an end to be found out: there the first block that
isn't whole is a torn write and is cut off, unless a whole block stands behind it. Then it was
confirmed once and is damaged now, and so is a file that stops short of what its successor says.
Nothing confirmed is ever skipped: the start is refused with the file and offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.journal_format import FILE_HEADER_BYTES, FileHeader


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A journal file as a start finds it."""

    file_id: int
    path: str
    header: FileHeader | None
    has_blocks: bool
    """Whether there is a whole block of this file; only asked where the header is missing."""


@dataclass(frozen=True, slots=True)
class ReplayFile:
    """A file to replay from `start`, up to `end` or, if that is None, to its last whole block."""

    file_id: int
    path: str
    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What to replay, in order, and which files to remove."""

    files: tuple[ReplayFile, ...]
    leftovers: tuple[str, ...]
    last_file_id: int
    """Id after which the journal goes on; its end, if nothing is replayed, is the mark."""


def plan_replay(found: Sequence[FoundFile], mark: tuple[int, int]) -> ReplayPlan:
    """What a start has to do with the files of the journal, given the checkpoint's mark.

    Raises:
        CorruptDataError: A file is missing or has lost its header.
    """
    marked_id, marked_offset = mark
    leftovers = [file.path for file in found if file.file_id < marked_id]
    current = sorted(
        (file for file in found if file.file_id >= marked_id), key=lambda file: file.file_id
    )
    used = []
    for file in current:
        if file.header is not None:
            used.append((file, file.header))
        elif file.has_blocks:
            raise CorruptDataError(f"{file.path}: offset 0: the file header is damaged")
        else:
            leftovers.append(file.path)
    for place, (file, header) in enumerate(used):
        if file.file_id != marked_id + place or header.file_id != file.file_id:
            raise CorruptDataError(
                f"{file.path}: found where journal file {marked_id + place} should be"
            )
    if not used and marked_offset:
        raise CorruptDataError(f"journal file {marked_id} of the checkpoint is missing")
    files = []
    for place, (file, _) in enumerate(used):
        start = max(marked_offset, FILE_HEADER_BYTES) if place == 0 else FILE_HEADER_BYTES
        end = used[place + 1][1].previous_end if place + 1 < len(used) else None
        files.append(ReplayFile(file.file_id, file.path, start, end))
    last = used[-1][0].file_id if used else marked_id - 1
    return ReplayPlan(tuple(files), tuple(leftovers), last)


def check_end(file: ReplayFile, stopped_at: int, *, has_later_block: bool) -> None:
    """Decide about the place where whole blocks end.

    Raises:
        CorruptDataError: It can't be a torn write: something confirmed is damaged.
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
