"""`WatchedFile`: a file that is read again when it says something else (edge).

Times of files move in ticks: of milliseconds mostly, of two seconds on some systems. A file that is
rewritten in place within the tick in which it was read, with as many bytes as before, looks the
same afterwards. So what is new is not yet trusted to stay: each look reads it once more until one
comes `SETTLED_SECONDS` after the first. Only then do its times and its size speak for it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from pulsar_py.common.loops.clock import Clock, SystemClock

__all__ = ["SETTLED_SECONDS", "WatchedFile"]

SETTLED_SECONDS: Final = 2.0
"""The longest tick of a file system's times (that of FAT)."""


class WatchedFile:
    """One path with what is known of its contents; owned by whoever parses them.

    It keeps a digest, as the contents are mostly secrets and sometimes large.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        """Nothing is read yet; `clock` tells when contents have settled, None: the real one."""
        self.path = path
        self._clock = clock or SystemClock()
        self._mark: tuple[int, ...] | None = None
        self._digest = b""
        self._settles_at: float | None = None
        self._is_gone = False

    def look(self) -> bytes | None:
        """The contents, if they are not those that the last look found; None if they are.

        Raises:
            OSError: It can't be read; said once, until it can be.
        """
        try:
            return self._look()
        except OSError:
            self._mark, self._digest = None, b""
            if self._is_gone:
                return None
            self._is_gone = True
            raise

    def _look(self) -> bytes | None:
        status = self.path.stat()  # first: what changes meanwhile is read again
        mark = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if mark == self._mark and self._settles_at is None:
            return None
        now = self._clock.monotonic_seconds()
        data = self.path.read_bytes()
        if mark != self._mark:
            self._mark, self._settles_at = mark, now + SETTLED_SECONDS
        elif self._settles_at is not None and now >= self._settles_at:
            self._settles_at = None
        self._is_gone = False
        digest = hashlib.sha256(data).digest()
        if digest == self._digest:
            return None
        self._digest = digest
        return data
