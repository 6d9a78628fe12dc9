"""Files and directories that tools write as a whole, durably, and put in place last (edge).

Under another name beside its place, `.NAME.partial`, everything is written and synced; it gets its
own name last. So what was cut short never has that name, whether by an error or a power cut.
"""

# ruff: noqa: TID251 - this writes and syncs files.

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["put_in_place", "sync_directories", "write_file"]


@contextmanager
def put_in_place(place: Path) -> Iterator[Path]:
    """Another name to write under; it becomes `place` if nothing was raised, else it is removed.

    What an earlier attempt left under that name is removed first. `place` may be an empty directory
    if what was written is a directory.
    """
    place = place.absolute()
    partial = place.with_name(f".{place.name}.partial")
    _remove(partial)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield partial
        partial.rename(place)
        _sync_directory(place.parent)
    except BaseException:  # also an interruption leaves nothing
        _remove(partial)
        raise


def write_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a new file that its owner alone can read, and sync it; its name is not durable yet."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def sync_directories(top: Path) -> None:
    """Make the names of all files in a directory and below it durable."""
    for path in (top, *(each for each in top.rglob("*") if each.is_dir())):
        _sync_directory(path)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        import shutil  # noqa: PLC0415 - at first use: it brings bzip2 and LZMA along

        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
