"""Makes clients unusable in a forked child, without touching the parent's connections (edge).

A forked child has copies of the parent's sockets and of its event loop's epoll set. If it touched
either, the parent would lose its connections. So in the child nothing is closed or unregistered:
each client there is marked, which makes all its parts raise `ForkedProcessError`, and the copies of
the descriptors are pointed at a socket that is connected to nobody, so that brokers see the end of
a connection when the parent closes it.

The one module-level registry of the package: Python can't take back an `os.register_at_fork`, so
there is one registration for all clients, which holds them weakly.
"""

from __future__ import annotations

import os
import socket
from typing import Protocol
from weakref import WeakSet

__all__ = ["watch"]


class ForkAware(Protocol):
    """An object that holds sockets."""

    def detach_after_fork(self) -> list[int]:
        """Become unusable without touching any socket; returns their descriptors."""


_watched: WeakSet[ForkAware] = WeakSet()


def watch(client: ForkAware) -> None:
    """Call its `detach_after_fork` in every child that is forked while it lives."""
    _watched.add(client)


def _in_child() -> None:
    for client in list(_watched):
        numbers = client.detach_after_fork()
        if not numbers:
            continue
        with socket.socket() as nobody:
            for number in numbers:
                os.dup2(nobody.fileno(), number)
    _watched.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
