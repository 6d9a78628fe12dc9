"""`LentReading`: lets a thread that waits for messages read a connection's socket (edge).

A message that comes alone wakes the loop, which wakes the thread that waits for it. While messages
come like that, one at a time and each awaited, the transport reads no more, and the socket is read
by whoever waits for it:

    transport reads --(messages alone)--> loop watches, and reads <-> a thread that waits reads
           ^                                    |
           +---------(anything else)------------+

The loop watches an epoll of its own with the socket in it, which any thread may switch off and on:
it does not wake up for what a thread will read. How a thread reads is in `thread_reads`.

What always holds: bytes are read by one at a time, in order, and each read is handled to its end
before the next one. If a thread was interrupted within one, nothing more is read.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from threading import Lock
from typing import Final

from pulsar_py.client.brokers.direct_socket import DirectSocket

__all__ = ["LentReading", "can_lend"]

can_lend: Final = hasattr(select, "epoll")
"""Whether this system has what it takes."""

_ALONE_COUNT: Final = 8
"""So many messages alone, one after the other, and the reading is lent."""
_MOST_ALONE_COUNT: Final = 1024
"""The most that this grows to, twofold each time that it was lent for too little."""
_WORTH_COUNT: Final = 16
"""A lending that so many reads of threads came of was worth it."""
_ELSE_COUNT: Final = 3
"""So many other reads, with none of a thread between them, and it is lent no more."""


class LentReading:
    """Who reads one connection's socket. Owned by the ClientCnx."""

    __slots__ = (
        "_alone_count",
        "_direct",
        "_else_count",
        "_epoll",
        "_lock",
        "_loop",
        "_needed_count",
        "_read",
        "_reader",
        "_served_count",
        "_transport",
        "is_lent",
        "is_reading",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        direct: DirectSocket,
        read: Callable[[], None],
    ) -> None:
        """Of a transport that reads; `read` is called by the loop where it has to."""
        self._loop = loop
        self._transport = transport
        self._direct = direct
        self._read = read
        # What the loop watches in place of the socket; None while the transport reads.
        self._epoll: select.epoll | None = None
        # Whether threads may have it.
        self.is_lent = False
        # Whether a thread has begun to read, and not handled that to its end.
        self.is_reading = False
        # Guards the next one, and with it whether the epoll is on; held for a moment.
        self._lock = Lock()
        # Whose turn it is to read; None: the loop's.
        self._reader: object | None = None
        # Messages alone in a row; how many are needed; reads by threads since it is lent.
        self._alone_count = 0
        self._needed_count = _ALONE_COUNT
        self._served_count = 0
        # Other reads since the last one of a thread.
        self._else_count = 0

    # --- called by the loop --------------------------------------------------------------------

    def came_alone(self) -> None:
        """The loop has read a message that comes alone, for which a thread waits."""
        # Hot path: latency in `make bench-client`, blocking.
        self._alone_count += 1
        if self._alone_count >= self._needed_count and not self.is_lent:
            self._begin()

    def came_else(self) -> None:
        """It has read anything else but a receipt."""
        self._alone_count = 0
        if self.is_lent:
            self._else_count += 1
            if self._else_count >= _ELSE_COUNT:
                self.end()

    def _begin(self) -> None:
        if self._transport.is_closing() or self._direct.file_number < 0:
            return
        try:
            epoll = select.epoll()
            epoll.register(self._direct.file_number, select.EPOLLIN)
        except OSError:  # the system has no descriptor, or no room, for it: it is not needed
            self._alone_count = 0
            return
        self._epoll = epoll
        self._transport.pause_reading()
        self._loop.add_reader(self._epoll.fileno(), self._on_readable)
        self.is_lent = True

    def _on_readable(self) -> None:
        with self._lock:
            if self._reader is not None:  # it was there before that one had it
                self._switch(0)
                return
        self._read()

    def end(self) -> None:
        """Have the transport read again; by the loop, when it has read."""
        if self._epoll is None:
            return
        is_worth_it = self._served_count >= _WORTH_COUNT
        self._needed_count = (
            _ALONE_COUNT if is_worth_it else min(self._needed_count * 2, _MOST_ALONE_COUNT)
        )
        self._served_count = self._alone_count = self._else_count = 0
        self._close()
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """The connection is closed: nobody reads any more."""
        if self._epoll is not None:
            self._close()

    def forget(self) -> None:
        """In a forked child: touch nothing that the parent uses."""
        self.is_lent = False
        self._epoll = None

    def _close(self) -> None:
        assert self._epoll is not None, "closed once"
        self.is_lent = False
        with self._lock:  # a thread may be giving it back
            epoll, self._epoll = self._epoll, None
            self._loop.remove_reader(epoll.fileno())
            epoll.close()

    # --- called by threads ---------------------------------------------------------------------

    @property
    def file_number(self) -> int:
        """The socket's descriptor, for a thread that waits until there is something to read."""
        return self._direct.file_number

    def take(self, reader: object) -> bool:
        """Have it be that reader's turn, until `give_back`; in the loop's turn. False: it is not.

        `reader` is an object that nobody else gives.
        """
        # Hot path: latency in `make bench-client`, blocking.
        with self._lock:
            if not self.is_lent or self._reader is not None or self.is_reading:
                return False
            self._reader = reader
            self._switch(0)
            return True

    def is_for(self, reader: object) -> bool:
        """Whether it is that reader's turn, and there is something to read from."""
        return self._reader is reader and self.is_lent

    def served(self) -> None:
        """A thread has read, and handled, a message."""
        self._served_count += 1
        self._else_count = 0

    def give_back(self, reader: object) -> None:
        """Have the loop read again, if it is that reader's turn; called by any thread."""
        # Hot path: latency in `make bench-client`, blocking.
        with self._lock:
            if self._reader is reader and not self.is_reading:
                self._reader = None
                self._switch(select.EPOLLIN)

    def _switch(self, events: int) -> None:
        epoll, file_number = self._epoll, self._direct.file_number
        if epoll is not None and file_number >= 0:
            epoll.modify(file_number, events)
