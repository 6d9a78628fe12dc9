"""Forwards what Java writes to standard error, line by line (edge).

Java inherits the standard error of the process that starts it. Without this it would write into the
pipeline's progress: into bars, and between lines of JSON that other programs parse.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def lines_handed_on(take: Callable[[str], None]) -> Iterator[int]:
    """Open a pipe whose lines go to `take`; the context's value is the descriptor to write to.

    A thread calls `take` with each line, without its end, until the last process that has the
    descriptor is gone. The context's end closes the descriptor here; child processes keep theirs.
    A line for which `take` raises OSError is dropped, so that a child never blocks on a full pipe.

    Args:
        take: Called with each line, in the thread; may raise OSError.
    """
    reading, writing = os.pipe()
    thread = threading.Thread(target=_hand_on, args=(reading, take), daemon=True)
    thread.name = "pulsar-py output of Java"
    thread.start()
    try:
        yield writing
    finally:
        os.close(writing)


def _hand_on(reading: int, take: Callable[[str], None]) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            with suppress(OSError):
                take(line.rstrip())
