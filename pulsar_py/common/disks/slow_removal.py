"""`SlowRemoval`: removes large files, and gives their space back a piece at a time (edge).

With its last name a file's blocks are free all at once. Where the file system tells the device of
them (the mount option `discard`), that takes 13 to 23 ms for 64 MB, and syncs wait for it. So the
name is removed at once, as always, and a thread cuts the nameless file from its end, with rests.

That must not be seen by anybody. So it is done only if no other name is left, such as a backup's,
and nobody else has the file open, such as a reader here or a process that it was lent to. The
system knows: it grants a lease for writing (`fcntl(2)`) to the only one who has a file open. If
somebody still has it after `PATIENCE_SECONDS`, the last one to close it frees it whole.

It knows only who came through the same file system. An overlay's or a network's file may be open
below or elsewhere, so only files of the `FILE_SYSTEMS` are cut.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import threading
from collections import deque
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

DESCRIPTORS_PER_WAITING: Final = 16
"""And no more than one for so many descriptors that the process may have."""

FILE_SYSTEMS: Final = frozenset({"btrfs", "ext4", "f2fs", "xfs"})
"""Those where a file has nobody who is not known here, and that tell a device of freed blocks."""

HAS_LEASES: Final = hasattr(fcntl, "F_SETLEASE")


class SlowRemoval:
    """Owns a thread while there is something to free. Its methods are for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Files without a name, to be cut and closed, and how often somebody else had them.
        self._waiting: deque[tuple[int, int]] = deque()
        self._thread: threading.Thread | None = None
        # There is no time for pieces and rests.
        self._hurry = threading.Event()
        self._is_stopped = False

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
            if descriptor >= 0 and _may_be_cut(descriptor) and self._take(descriptor):
                descriptor = -1
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def free_now(self) -> None:
        """Free at once what is left, and return when that is done; one call at a time."""
        self._hurry.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        self._hurry.clear()

    def stop(self) -> None:
        """As `free_now`; what is removed from now on is freed by its remover."""
        with self._lock:
            self._is_stopped = True
        self.free_now()

    def _take(self, descriptor: int) -> bool:
        """Have the thread cut and close it; returns whether it will."""
        with self._lock:
            if self._is_stopped or len(self._waiting) >= _most_waiting_count():
                return False
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="pulsar-free", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system starts no more threads
                    return False
                self._thread = thread
            self._waiting.append((descriptor, 0))
        return True

    def _run(self) -> None:
        while True:
            with self._lock:
                count = len(self._waiting)
                if not count:
                    self._thread = None
                    return
            # First of all a rest: somebody who has found a name may be about to open the file.
            self._hurry.wait(ASK_EVERY_SECONDS)
            for _ in range(count):
                with self._lock:
                    descriptor, refused_count = self._waiting.popleft()
                if not self._free(descriptor, is_last_try=refused_count + 1 >= _tries_count()):
                    with self._lock:
                        self._waiting.append((descriptor, refused_count + 1))

    def _free(self, descriptor: int, *, is_last_try: bool) -> bool:
        """Cut the file if nobody else has it, and close it; False if it has to wait."""
        try:
            if not self._hurry.is_set():
                if _is_ours_alone(descriptor):
                    self._cut(descriptor)
                elif not is_last_try:
                    return False
        except OSError:
            pass  # closing frees it
        os.close(descriptor)
        return True

    def _cut(self, descriptor: int) -> None:
        size_bytes = os.fstat(descriptor).st_size
        while size_bytes > PIECE_BYTES and not self._hurry.is_set():
            size_bytes -= PIECE_BYTES
            os.ftruncate(descriptor, size_bytes)
            self._hurry.wait(REST_SECONDS)


def _tries_count() -> int:
    return round(PATIENCE_SECONDS / ASK_EVERY_SECONDS)


def _most_waiting_count() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_WAITING_COUNT
    return min(MOST_WAITING_COUNT, soft // DESCRIPTORS_PER_WAITING)


def _open_large(path: str) -> int:
    """A descriptor of a file that is worth it; -1 if it is not, or can't be opened."""
    if not HAS_LEASES:
        return -1
    try:
        if Path(path).stat().st_size < 2 * PIECE_BYTES:
            return -1
        # Not waiting, up to 45 s, for another process that has a lease on the file.
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return -1


def _may_be_cut(descriptor: int) -> bool:
    """Whether the file has no name left, and lies where the system knows who has it."""
    return not os.fstat(descriptor).st_nlink and _file_system(descriptor) in FILE_SYSTEMS


def _file_system(descriptor: int) -> str:
    """The kind of the file system that a file was opened in; empty where that can't be told."""
    try:
        about = Path(f"/proc/self/fdinfo/{descriptor}").read_bytes()
        mounts = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return ""
    mount_id = about.partition(b"mnt_id:")[2].split(maxsplit=1)[:1]
    for line in mounts.splitlines():
        # id parent device root place options [more options ...] - kind source options
        mount, _, kind = line.partition(b" - ")
        if mount.split(maxsplit=1)[:1] == mount_id:
            return kind.split(maxsplit=1)[0].decode()
    return ""


def _is_ours_alone(descriptor: int) -> bool:
    """Whether no other description of the file is open, in any process."""
    # Who opens it in `/proc` just now sends a signal to the one with the lease: by default SIGIO,
    # which ends a process. This one is ignored where nobody handles it.
    fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except BlockingIOError:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True
