"""Directories of tables and checkpoints, which may be on any file system (edge)."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from pulsar_py.common import local_disk

_NOT_THERE: Final = frozenset({errno.EINVAL, errno.ENOTSUP})
"""What a system says that can't do it."""


def sync_directory(path: Path) -> None:
    """Make creations and removals in a directory durable, where that can be asked for; blocks.

    Some file systems of other machines, and of hosts of virtual ones, keep names in their own way.

    Raises:
        OSError: It is not there, or can't be stored.
    """
    try:
        local_disk.sync_directory(path)
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
