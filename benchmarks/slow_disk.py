"""Limits the rate at which this process and its children read from a disk, by the kernel.

It uses the `blkio` controller of control groups (version 1) or `io` (version 2); both need root and
a file system on a block device. Meanwhile the read-ahead is Linux's default, however the machine is
set. Reads through the page cache count when they go to disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_NAME = "pulsar_py-bench"
_READ_AHEAD_KILOBYTES = 128


class CannotLimitError(Exception):
    """The system has no such limits, or this process may not set them."""


@contextmanager
def reads_limited(directory: Path, megabytes_per_second: int) -> Iterator[None]:
    """Limit reads of the disk that has `directory` for as long as the context lasts.

    Raises:
        CannotLimitError: The system has no such limits, or this process may not set them.
    """
    parent, limit_name, form = _controller()
    group = parent / _NAME
    disk, limit = _disk(directory), megabytes_per_second * 1_000_000
    device = (disk / "dev").read_text().strip()
    read_ahead = disk / "queue" / "read_ahead_kb"
    read_ahead_before = read_ahead.read_text()
    with ExitStack() as undo:
        try:
            group.mkdir(exist_ok=True)
            undo.callback(group.rmdir)
            (group / limit_name).write_text(form.format(device=device, limit=limit))
            read_ahead.write_text(str(_READ_AHEAD_KILOBYTES))
            undo.callback(read_ahead.write_text, read_ahead_before)
            (group / "cgroup.procs").write_text(str(os.getpid()))
            undo.callback((parent / "cgroup.procs").write_text, str(os.getpid()))
        except OSError as error:
            raise CannotLimitError(f"{group}: {error.strerror}") from error
        yield


def _controller() -> tuple[Path, str, str]:
    """The directory of groups, the name of the limit's file, and the form of its content."""
    if (_GROUPS / "blkio").is_dir():
        return _GROUPS / "blkio", "blkio.throttle.read_bps_device", "{device} {limit}"
    controllers = _GROUPS / "cgroup.subtree_control"
    if controllers.exists() and "io" in controllers.read_text().split():
        return _GROUPS, "io.max", "{device} rbps={limit}"
    raise CannotLimitError(f"{_GROUPS}: no controller of block devices")


def _disk(directory: Path) -> Path:
    """The kernel's directory about the whole disk."""
    number = directory.stat().st_dev
    disk = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not disk.exists():
        raise CannotLimitError(f"{directory}: not on a block device of its own")
    return disk.resolve().parent if (disk / "partition").exists() else disk
