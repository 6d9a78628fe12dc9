"""`SlowRemoval`: removes large files, and gives their space back a piece at a time (edge).

With its last name a file's blocks are free all at once. Where the file system tells the device of
them (the mount option `discard`), that takes 13 to 23 ms for 64 MB, and syncs wait for it. So the
name is removed at once, as always, and a thread cuts the nameless file from its end, with rests.

That must not be seen by anybody. So it is done only if no other name is left, such as a backup's,
and nobody else has the file open, such as a reader here or a process that it was lent to. The
system knows: it grants a lease for writing (`fcntl(2)`) to the only one who has a file open. If
somebody still has it after `PATIENCE_SECONDS`, the last one to close it frees it whole.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final

PIECE_BYTES: Final = 2 * 1024 * 1024
"""What is cut at once; a file of less than two pieces is removed as usual. It takes 0.6 ms."""

REST_SECONDS: Final = 0.003
"""The rest between two pieces: with what cutting takes, about 500 MB are freed in a second."""

PATIENCE_SECONDS: Final = 0.2
"""How long a reader is waited for. Those here close a file as soon as it was removed."""

ASK_EVERY_SECONDS: Final = 0.02

MOST_WAITING_COUNT: Final = 64
"""The most files that wait, each with a descriptor; those beyond are freed whole, at once."""

HAS_LEASES: Final = hasattr(fcntl, "F_SETLEASE")


class SlowRemoval:
    """Owns a thread while there is something to free. `remove` and `stop` are for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Files without a name, to be cut and closed.
        self._descriptors: deque[int] = deque()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    @property
    def is_under_way(self) -> bool:
        """Whether there is something left to free."""
        return self._thread is not None

    def remove(self, path: str) -> None:
        """Remove a file's name, if it is there; its space follows soon.

        Raises:
            OSError: The name can't be removed.
        """
        descriptor = _open_large(path)
        try:
            Path(path).unlink(missing_ok=True)
            if descriptor >= 0 and not os.fstat(descriptor).st_nlink and self._take(descriptor):
                descriptor = -1
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def stop(self) -> None:
        """Free at once what is left, and return when that is done."""
        self._stopping.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        self._stopping.clear()

    def _take(self, descriptor: int) -> bool:
        """Have the thread cut and close it; returns whether it will."""
        with self._lock:
            if len(self._descriptors) >= MOST_WAITING_COUNT:
                return False
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="pulsar-free", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system starts no more threads
                    return False
                self._thread = thread
            self._descriptors.append(descriptor)
        return True

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._descriptors:
                    self._thread = None
                    return
                descriptor = self._descriptors.popleft()
            try:
                with suppress(OSError):  # closing frees it
                    self._cut(descriptor)
            finally:
                os.close(descriptor)

    def _cut(self, descriptor: int) -> None:
        for _ in range(round(PATIENCE_SECONDS / ASK_EVERY_SECONDS)):
            if _is_ours_alone(descriptor) or self._stopping.wait(ASK_EVERY_SECONDS):
                break
        else:
            return
        size_bytes = os.fstat(descriptor).st_size
        while size_bytes > PIECE_BYTES and not self._stopping.is_set():
            size_bytes -= PIECE_BYTES
            os.ftruncate(descriptor, size_bytes)
            self._stopping.wait(REST_SECONDS)


def _open_large(path: str) -> int:
    """A descriptor of a file that is worth it; -1 if it is not, or can't be opened."""
    if not HAS_LEASES:
        return -1
    try:
        if Path(path).stat().st_size < 2 * PIECE_BYTES:
            return -1
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return -1


def _is_ours_alone(descriptor: int) -> bool:
    """Whether no other description of the file is open, in any process."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except BlockingIOError:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True
