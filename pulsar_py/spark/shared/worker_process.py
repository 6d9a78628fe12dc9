"""Settings of Spark's Python workers that make tasks start and run faster (edge).

Spark sends the beginning of a task in two writes. Nagle's algorithm keeps the second one back until
the first is acknowledged, and Linux delays that acknowledgement by 40 ms on a connection that looks
interactive, so that it may travel with an answer. The first write contains objects of ours: when
they are unpickled, they make Linux acknowledge at once. Measured: 2 to 4 ms from there to the first
row instead of 41, in reads, writes and micro-batches.

A task's own last bytes meet the same algorithm: they fill no segment, so they wait until Spark has
acknowledged those before, and where it has nothing left to do but wait for them, that takes 40 ms,
too. Nearly half of the tasks ended so where rows came no faster than Spark takes them. TCP_NODELAY
sends at once; small writes are collected by Spark's workers themselves, 64 KB at a time.

Python's cyclic garbage collector would search all objects of Spark's, Arrow's and our modules again
and again, which cost a twelfth of a worker's CPU while it read.

Source: tcp(7), TCP_QUICKACK and TCP_NODELAY; pyspark.daemon for the environment of a worker.
"""

from __future__ import annotations

import gc
import os
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

_QUICK_ACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
"""The socket option; None where the system is not Linux."""
_DESCRIPTORS: Final = Path("/proc/self/fd")
_UNIX_SOCKET: Final = "PYTHON_UNIX_DOMAIN_ENABLED"
"""What Spark tells its workers of `spark.python.unix.domain.socket.enabled`."""


def send_and_acknowledge_at_once() -> None:
    """Let the TCP connections of this process send and acknowledge without delay.

    What they send never waits from now on. That they acknowledge at once lasts until they answer
    quickly again, by which Linux takes them for interactive. This is done for all connections,
    since Spark does not hand out its own; it does no harm to the others. Never fails.
    """
    # If a default time-out is set, Python makes each socket that it opens by number non-blocking,
    # and with it Spark's own.
    if _QUICK_ACK is None or socket.getdefaulttimeout() is not None:
        return
    with suppress(OSError):  # no such directory, or no descriptor left to read it
        for path in _DESCRIPTORS.iterdir():
            with suppress(OSError):  # closed meanwhile, or not TCP
                if path.is_socket():
                    _set_at_once(int(path.name), _QUICK_ACK)


def _set_at_once(descriptor: int, quick_ack: int) -> None:
    borrowed = socket.socket(fileno=descriptor)
    try:
        for option in (quick_ack, socket.TCP_NODELAY):
            borrowed.setsockopt(socket.IPPROTO_TCP, option, 1)
    finally:
        borrowed.detach()


class SentToWorkers:
    """Base class of objects that Spark pickles into the first write of a task; see the module."""

    def __setstate__(self, state: dict[str, Any]) -> None:  # Any: as pickle has it
        """Restore the pickled state, and spare the task's connection all delays of TCP."""
        self.__dict__.update(state)
        send_and_acknowledge_at_once()


def has_small_buffers() -> bool:
    """Whether Spark takes rows through a Unix domain socket, whose buffers hold some 200 KB.

    Those of its TCP connections grow to several megabytes.
    """
    return os.environ.get(_UNIX_SOCKET, "").lower() == "true"


@cache
def spare_the_collector() -> None:
    """Exclude all objects that exist now from garbage collection, once a process.

    For workers alone: cycles among these objects stay in memory until the process ends.
    """
    gc.collect()
    gc.freeze()
