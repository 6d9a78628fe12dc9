"""Bare loops of writes and syncs: what the disk takes for them, with nothing else to do.

One writes and syncs 4 KB a thousand times a second; one does what a journal and flushes do to the
disk at a load's rate. Both are measured beside the latencies of a broker on the same disk.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
import time
from pathlib import Path

BARE_PER_SECOND = 1000
BARE_BLOCK_BYTES = 4096
BARE_GROUP_BYTES = 4 << 20
"""Of the bare loop of groups: the most of one group, as in the journal."""
BARE_FILE_BYTES = 64 << 20
"""Of a journal file, and of a generation of the write cache."""
BARE_SYNC_BYTES = 2 << 20


def bare_syncs(directory: Path, seconds: float) -> list[float]:
    """The milliseconds of each write with its sync, of a loop that does nothing else.

    It ends with the time, however few a slow disk has done by then.
    """
    block, millis = os.urandom(BARE_BLOCK_BYTES), []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        file.write(block * BARE_PER_SECOND)
        os.fsync(file.fileno())
        begun = time.perf_counter()
        for number in range(int(seconds * BARE_PER_SECOND)):
            due = begun + number / BARE_PER_SECOND
            if (now := time.perf_counter()) < due:
                time.sleep(due - now)
            start = time.perf_counter()
            os.pwrite(file.fileno(), block, number % BARE_PER_SECOND * len(block))
            os.fdatasync(file.fileno())
            end = time.perf_counter()
            millis.append((end - start) * 1e3)
            if end > begun + seconds:
                break
    return millis


def bare_groups(directory: Path, rate: int, seconds: float) -> list[float]:
    """The milliseconds of each group of a loop that writes and syncs what has come meanwhile.

    So many messages of 1 KB come a second; the groups go past the page cache into a file that was
    written before, and beside them, every 64 MB, as many bytes go through it into another one, with
    a sync after each 2 MB: what a journal and a flush do to the disk, and nothing else.
    """
    millis: list[float] = []
    room = mmap.mmap(-1, BARE_GROUP_BYTES)
    room.write(os.urandom(BARE_GROUP_BYTES))
    with tempfile.NamedTemporaryFile(dir=directory, buffering=0) as file:
        for at in range(0, BARE_FILE_BYTES, BARE_GROUP_BYTES):
            os.pwrite(file.fileno(), room, at)
        os.fsync(file.fileno())
        try:
            descriptor = os.open(file.name, os.O_WRONLY | os.O_DIRECT)
        except OSError:  # a file system without
            descriptor = os.open(file.name, os.O_WRONLY)
        ended = threading.Event()
        flushing = threading.Thread(target=_bare_flushes, args=(directory, rate, ended))
        flushing.start()
        try:
            begun = since = time.perf_counter()
            offset = 0
            while since < begun + seconds:
                start = time.perf_counter()
                due_bytes = int((start - since) * rate) * 1024
                if due_bytes < BARE_BLOCK_BYTES:
                    time.sleep(0.0002)
                    continue
                since = start
                due_bytes = min(due_bytes - due_bytes % BARE_BLOCK_BYTES, BARE_GROUP_BYTES)
                if offset + due_bytes > BARE_FILE_BYTES:
                    offset = 0
                with memoryview(room)[:due_bytes] as group:
                    os.pwritev(descriptor, [group], offset, os.RWF_DSYNC)
                offset += due_bytes
                millis.append((time.perf_counter() - start) * 1e3)
        finally:
            ended.set()
            flushing.join()
            os.close(descriptor)
    return millis


def _bare_flushes(directory: Path, rate: int, ended: threading.Event) -> None:
    piece = os.urandom(BARE_SYNC_BYTES)
    period = BARE_FILE_BYTES / (rate * 1024)
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        while not ended.is_set():
            begun = time.perf_counter()
            for _ in range(BARE_FILE_BYTES // BARE_SYNC_BYTES):
                if ended.is_set():
                    return
                file.write(piece)
                os.fdatasync(file.fileno())
            ended.wait(max(begun + period - time.perf_counter(), 0))
