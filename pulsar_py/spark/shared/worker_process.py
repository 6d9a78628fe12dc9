"""What makes Spark's Python worker, a process that serves many tasks, quicker at them (edge).

Spark sends the beginning of a task in two writes. Nagle's algorithm keeps the second one back until
the first is acknowledged, and as long as a connection looks like a dialogue the system waits 40 ms
with that, in case there is an answer to send it with. What a task is given of ours is in the first
piece, and has it acknowledged as soon as it is unpickled. Measured: from there to the first row 2
to 4 ms instead of 41, in reads, writes and micro-batches.

The search for cycles went through all modules of Spark, Arrow and ours again and again: a twelfth
of a worker's CPU while it read.

Source: tcp(7), TCP_QUICKACK; spec section 5.
"""

from __future__ import annotations

import gc
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

_QUICK_ACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
"""Only Linux has it."""
_DESCRIPTORS: Final = Path("/proc/self/fd")


def acknowledge_at_once() -> None:
    """Have what this process's TCP connections receive next acknowledged without delay.

    So is what waits to be acknowledged. Those of others, too, for Spark hands nobody its own; they
    lose nothing by it. It holds until something is sent soon after something was received. Never
    fails.
    """
    # Python makes any socket non-blocking that it touches where there is a default timeout.
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
    """What Spark pickles into the first piece of a task, which is acknowledged with its arrival."""

    def __setstate__(self, state: dict[str, Any]) -> None:  # Any: as pickle has it
        """Be what was pickled."""
        self.__dict__.update(state)
        acknowledge_at_once()


@cache
def spare_the_collector() -> None:
    """Leave what is loaded by now out of the search for cycles, once a process.

    For workers alone: what is alive now, and a cycle that nobody uses later, stays in memory.
    """
    gc.collect()
    gc.freeze()
