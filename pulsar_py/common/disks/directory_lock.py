"""A lock on a directory that tells whether the process that made it still runs (edge).

The lock is `flock` on the directory itself, without a file in it: the system releases it with the
process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class DirectoryLock:
    """A lock that is held until `release`, or as long as the process lives."""

    def __init__(self, descriptor: int) -> None:
        """Use `take`."""
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path) -> DirectoryLock | None:
        """Lock a directory, waiting for who looks at it; None where the system has no such locks.

        Raises:
            FileNotFoundError: It is gone, or went while it was waited for.
        """
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            os.close(descriptor)
            return None
        if not path.exists():
            os.close(descriptor)
            raise FileNotFoundError(f"{path} was removed")
        return cls(descriptor)

    def release(self) -> None:
        """Give it up; may be called again."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether somebody has a lock on a directory, or that can't be told."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
