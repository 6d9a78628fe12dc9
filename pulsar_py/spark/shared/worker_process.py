"""Settings of Spark's Python workers that make tasks start and run faster (edge).

Spark sends the beginning of a task in two writes. Nagle's algorithm keeps the second one back until
the first is acknowledged, and Linux delays that acknowledgement by 40 ms on a connection that looks
interactive, in the hope of an answer to send it with. Objects of ours are in the first write, and
have it acknowledged as soon as they are unpickled. Measured: 2 to 4 ms from there to the first row
instead of 41, in reads, writes and micro-batches.

Python's cyclic garbage collector searched all modules of Spark, Arrow and ours again and again: a
twelfth of a worker's CPU while it read.

Source: tcp(7), TCP_QUICKACK.
"""

from __future__ import annotations

import gc
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

_QUICK_ACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
"""The socket option; None where the system is not Linux."""
_DESCRIPTORS: Final = Path("/proc/self/fd")


def acknowledge_at_once() -> None:
    """Acknowledge without delay what the TCP connections of this process have received.

    And what they receive next, until something is sent soon after something was received. This is
    done for all connections, since Spark does not hand out its own; the others lose nothing by it.
    Never fails.
    """
    # With a default time-out, Python would make each socket non-blocking that it opens by number.
    if _QUICK_ACK is None or socket.getdefaulttimeout() is not None:
        return
    with suppress(OSError):  # no such directory, or no descriptor left to read it
        for path in _DESCRIPTORS.iterdir():
            with suppress(OSError):  # closed meanwhile, or not TCP
                if path.is_socket():
                    _set_quick_ack(int(path.name), _QUICK_ACK)


def _set_quick_ack(descriptor: int, option: int) -> None:
    borrowed = socket.socket(fileno=descriptor)
    try:
        borrowed.setsockopt(socket.IPPROTO_TCP, option, 1)
    finally:
        borrowed.detach()


class SentToWorkers:
    """Base of the objects that Spark pickles into the first write of a task: see the module."""

    def __setstate__(self, state: dict[str, Any]) -> None:  # Any: as pickle has it
        """Take over the pickled state, and acknowledge the rest of the task."""
        self.__dict__.update(state)
        acknowledge_at_once()


@cache
def spare_the_collector() -> None:
    """Take all objects that are loaded by now out of garbage collection, once a process.

    For workers alone: cycles among these objects stay in memory until the process ends.
    """
    gc.collect()
    gc.freeze()
