"""Spark's connection to this process: what begins the next task need not wait 40 ms (edge).

Spark sends the beginning of a task in two writes. Nagle's algorithm keeps the second one back until
the first is acknowledged, and as long as a connection looks like a dialogue the system waits 40 ms
with that, in case there is an answer to send it with. A worker that has just sent megabytes and
received nothing says here that it is none. Measured: from the end of one task to the beginning of
the next 18 ms instead of 60.

Source: tcp(7), TCP_QUICKACK; spec section 5.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

_QUICK_ACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
"""Only Linux has it."""
_DESCRIPTORS: Final = Path("/proc/self/fd")


def acknowledge_at_once() -> None:
    """Have what this process's TCP connections receive next acknowledged without delay.

    Those of others, too, for Spark hands nobody its own; they lose nothing by it. It holds until
    something is sent soon after something was received.
    """
    if _QUICK_ACK is None or not _DESCRIPTORS.exists():
        return
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
