"""`DirectSocket`: the socket of a connection, for threads that have the turn of its loop (edge).

In an event loop a transport writes, and asks the loop to write what the socket does not take. A
thread that has taken the loop's turn while it waits (`blocking.turn_loop`) can't ask it; it writes
here, into a descriptor of the same socket, and leaves the rest to the loop. So a message that is
sent alone does not wait for a wake-up of the loop: 0.04 of 0.4 ms from `send` to `receive`. Who the
reading is lent to (`lent_reading`) reads here, too.

There is none for TLS, whose state belongs to the transport, and none on other loops.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Final

from pulsar_py.common.buffer import Buffer

__all__ = ["DirectSocket", "direct_socket", "turn_of"]

_NO_SIGNAL: Final = getattr(socket, "MSG_NOSIGNAL", 0)
"""A peer that is gone is an error here, whatever the program does with SIGPIPE."""


def turn_of(loop: asyncio.AbstractEventLoop) -> AbstractContextManager[object] | None:
    """What a loop holds while it works, and threads while they write; None if it has no turns."""
    return getattr(loop, "turn", None)


def direct_socket(transport: asyncio.Transport) -> DirectSocket | None:
    """That of a transport; None where it is not what writes to the socket, or none is left."""
    sock = transport.get_extra_info("socket")
    if sock is None or transport.get_extra_info("ssl_object") is not None:
        return None
    try:
        return DirectSocket(transport, sock.fileno())
    except OSError:  # the process has no descriptor for it: it is not needed
        return None


class DirectSocket:
    """A second descriptor of a transport's socket. Owned by the ClientCnx."""

    __slots__ = ("_socket", "transport")

    def __init__(self, transport: asyncio.Transport, file_number: int) -> None:
        """Of that transport and its socket's descriptor."""
        # Must hold nothing that was written before, when something is sent.
        self.transport = transport
        # Of its own: the loop closes the transport's by itself, and its number may be used again.
        self._socket = socket.socket(fileno=os.dup(file_number))
        self._socket.setblocking(False)

    def send(self, buffers: Sequence[Buffer]) -> bytes:
        """Write what the socket takes; returns the rest, for the transport.

        So the transport is the one that hears of a socket that is broken.
        """
        try:
            sent = self._socket.sendmsg(buffers, (), _NO_SIGNAL)
        except OSError:
            sent = 0
        return b"" if sent == sum(map(len, buffers)) else b"".join(buffers)[sent:]

    @property
    def file_number(self) -> int:
        """The descriptor; -1 once it is closed."""
        return self._socket.fileno()

    def receive_into(self, memory: memoryview) -> int | None:
        """Read what is there; returns how many bytes. None: nothing is there yet.

        0 at the end of the stream, or if it is broken: the transport is the one that hears of that.
        """
        try:
            return self._socket.recv_into(memory)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return 0

    def end_reading(self) -> None:
        """Have who waits for something to read wake up.

        The system keeps a socket, and so the connection, while a thread waits at it, whoever has
        closed it.
        """
        with suppress(OSError):  # it is not connected any more
            self._socket.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        """Close the descriptor: the socket ends with the transport's."""
        self._socket.close()
