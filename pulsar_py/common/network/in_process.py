"""`connect_in_process`: two asyncio protocols of one process, connected without a socket (edge).

    near = connect_in_process(client_protocol, server_protocol, peername=("192.0.2.1", 40000))

Both get a transport that behaves like TCP's: bytes arrive in their order and once, from a callback
of the loop and never within `write`; `close` sends what is queued, then ends; `abort` loses it.
Whatever a protocol does not read counts as the writer's buffer, which pauses writing at its high
mark: so memory is bounded by what both protocols respect already. Pieces are handed on uncopied,
if they are `bytes`.

Invariant: `_queued_bytes` is the size of all pieces in `_queue`, which the peer has not received.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final, TypeAlias, cast

from pulsar_py.common.buffer import Buffer

__all__ = ["InProcessTransport", "connect_in_process"]

HIGH_WATER_BYTES: Final = 64 * 1024

EitherProtocol: TypeAlias = asyncio.Protocol | asyncio.BufferedProtocol


def connect_in_process(
    near: EitherProtocol, far: EitherProtocol, *, peername: tuple[str, int] | None = None
) -> InProcessTransport:
    """Connect both on the running loop; returns the transport of `near`.

    `peername` is the address that `far` sees at the other end. `far` is told of the connection
    first, as a server would be.
    """
    loop = asyncio.get_running_loop()
    here, there = InProcessTransport(loop, near, None), InProcessTransport(loop, far, peername)
    here.peer, there.peer = there, here
    far.connection_made(there)
    near.connection_made(here)
    return here


class InProcessTransport(asyncio.Transport):
    """One end of a connection within the process. Made by `connect_in_process`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: EitherProtocol,
        peername: tuple[str, int] | None,
    ) -> None:
        super().__init__({"peername": peername})
        self.peer: InProcessTransport = self  # the other end, once there is one
        self._loop = loop
        self._protocol = protocol
        self._queue: deque[bytes] = deque()  # written here, not yet received by the peer
        self._queued_bytes = 0
        self._is_delivery_due = False
        self._is_reading = True
        self._is_closing = False
        self._is_lost = False
        self._is_writing_paused = False
        self._high_bytes, self._low_bytes = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4

    # --- writing ---------------------------------------------------------------------------

    def write(self, data: Buffer) -> None:
        """Queue bytes for the peer, which gets them in a later turn of the loop."""
        if self._is_closing or not data:
            return
        piece = data if isinstance(data, bytes) else bytes(data)
        self._queue.append(piece)
        self._queued_bytes += len(piece)
        self.deliver_soon()
        if self._queued_bytes > self._high_bytes and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        """Write all of them as one."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """False: both directions end together."""
        return False

    def get_write_buffer_size(self) -> int:
        """Bytes that the peer has not received."""
        return self._queued_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the marks as asyncio's transports do."""
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        self._high_bytes, self._low_bytes = high, high // 4 if low is None else low

    def deliver_soon(self) -> None:
        """Hand on what is queued in the next turn: the peer reads, or there is more."""
        if not self._is_delivery_due:
            self._is_delivery_due = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        """Hand the peer what is queued, as long as it reads."""
        self._is_delivery_due = False
        while self._queue and self.peer.is_reading() and not self._is_lost:
            piece = self._queue.popleft()
            self._queued_bytes -= len(piece)
            self.peer.receive(piece)
        if self._is_writing_paused and self._queued_bytes <= self._low_bytes and not self._is_lost:
            self._is_writing_paused = False
            self._protocol.resume_writing()
        if self._is_closing and not self._queue:
            self._lose()

    # --- reading ---------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take a piece that the peer wrote. A protocol with a buffer of its own is filled."""
        protocol = self._protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            protocol.data_received(data)
            return
        rest = memoryview(data)
        while rest and not self._is_closing:
            room = memoryview(cast("bytearray", protocol.get_buffer(len(rest))))
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            rest = rest[count:]
            protocol.buffer_updated(count)

    def is_reading(self) -> bool:
        """Whether the protocol gets what the peer writes."""
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        """Leave what the peer writes in its buffer."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """Receive it, and what comes."""
        self._is_reading = True
        self.peer.deliver_soon()

    # --- closing ---------------------------------------------------------------------------

    def is_closing(self) -> bool:
        """Whether it was closed, by either end."""
        return self._is_closing

    def close(self) -> None:
        """Send what is queued, then end; nothing more is received."""
        if not self._is_closing:
            self._is_closing = True
            self.deliver_soon()

    def abort(self) -> None:
        """End now; what is queued is lost."""
        self._is_closing = True
        self._queue.clear()
        self._queued_bytes = 0
        self.deliver_soon()

    def _lose(self) -> None:
        """End both directions; each protocol is told once."""
        self.end()
        self.peer.end()

    def end(self) -> None:
        """Tell the protocol, once, that the connection is gone."""
        if not self._is_lost:
            self._is_closing = self._is_lost = True
            self._queue.clear()
            self._queued_bytes = 0
            self._loop.call_soon(self._protocol.connection_lost, None)
