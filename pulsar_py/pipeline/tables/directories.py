"""Syncs directories of tables and checkpoints, which may be on any file system (edge)."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from pulsar_py.common.disks import local_disk

_NOT_THERE: Final = frozenset({errno.EINVAL, errno.ENOTSUP})
"""Errors of file systems that have no sync of directories."""


def sync_directory(path: Path) -> None:
    """Make creations and removals in a directory durable; blocks.

    Some network file systems, and some that virtual machines share with their hosts, offer no such
    sync and refuse it; there this does nothing.

    Raises:
        OSError: The directory is missing, or the sync failed.
    """
    try:
        local_disk.sync_directory(path)
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
