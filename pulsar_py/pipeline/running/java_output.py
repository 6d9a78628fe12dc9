"""What Java writes to standard error, line by line (edge).

Java inherits the standard error of the process that starts it, and would write among a pipeline's
progress: into bars, and between lines of JSON that programs read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def lines_handed_on(take: Callable[[str], None]) -> Iterator[int]:
    """A file descriptor for a child process to write to.

    Each line goes to `take`, without its end and in a thread of its own, until the last process
    that has the descriptor is gone. Here it is closed with the context; children keep theirs.
    Lines that `take` can't write are dropped: the child must never wait for a reader that is gone.

    Args:
        take: Takes a line; may raise OSError.
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
