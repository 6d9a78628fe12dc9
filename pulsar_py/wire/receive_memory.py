"""`ReceiveMemory`: what the connections of one loop receive into, one read after the other (pure).

A transport that reads into its own memory makes a new object of each read, which is a copy more,
and for large reads memory that the system has to map. Here a read goes into a piece of memory that
is used again at once; the decoder takes from it what has to stay. Where it keeps a view, such as
the beginning of a large frame, the piece is used again when that view is gone.

    buffer() -> the transport fills it -> received(size) -> a view of what came

A connection that is within a frame of 16 KB and more reads four times as much at once: eight
entries of 128 KB are published together, or sixty of 16 KB, and what is done once for a run is a
quarter. No view of less than half of that memory is kept (`FrameDecoder`).

What always holds: between `buffer` and `received` nothing else is received in the loop. Loops that
wait for a socket to be readable, and only then read, keep that.

Source: the pooled buffers of Netty, which count references by hand.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.common.disks.reused_memory import ReusedMemory

READ_BYTES: Final = 256 * 1024
"""The most that one read takes: more would not stay in the processor's cache until it is used."""
LARGE_READ_BYTES: Final = 1024 * 1024
"""... within a frame of `LARGE_READ_FRAMES`: 128 KB to bookies take 0.8 of the processor so, 16 KB
0.65."""
LARGE_READ_FRAMES: Final = range(16 * 1024, LARGE_READ_BYTES // 2 + 1)
"""The lengths of such frames: of longer ones a larger read would not hold many."""

KEPT_BYTES: Final = 8 * 1024 * 1024
"""The most memory that is kept: so many connections can be within a large frame without cost."""
_KEPT_LARGE_BYTES: Final = 2 * LARGE_READ_BYTES
"""The part of it for large reads, of which a decoder hardly ever keeps a view."""


class ReceiveMemory:
    """Lends memory for one read at a time. Owned by the `Connections`."""

    __slots__ = ("_given", "_large_pieces", "_pieces")

    def __init__(self) -> None:
        self._pieces = ReusedMemory(KEPT_BYTES - _KEPT_LARGE_BYTES)
        self._large_pieces = ReusedMemory(_KEPT_LARGE_BYTES)
        self._given: memoryview | None = None  # to a read that has not ended yet

    @property
    def kept_bytes(self) -> int:
        """Bytes of all memory that is kept, in use or not."""
        return self._pieces.kept_bytes + self._large_pieces.kept_bytes

    def buffer(self, unfinished_frame_bytes: int = 0) -> memoryview:
        """The memory for the next read, of a connection within a frame of that length."""
        # Hot path: publish-1k and "128 KB" of `make bench-cluster`, once a read.
        is_large = unfinished_frame_bytes in LARGE_READ_FRAMES
        size = LARGE_READ_BYTES if is_large else READ_BYTES
        given = self._given
        if given is None or len(given) != size:
            pieces = self._large_pieces if is_large else self._pieces
            given = self._given = pieces.take(size)
        return given

    def is_filled_by(self, size: int) -> bool:
        """Whether a read that has ended with `size` bytes took all that it could."""
        return self._given is not None and len(self._given) == size

    def received(self, size: int) -> memoryview:
        """The bytes of the read that has ended, with which their object begins.

        They stay as long as there is a view of them.
        """
        # Hot path: publish-1k, once a read.
        given, self._given = self._given, None
        assert given is not None, "nothing was lent to read into"
        return given[:size]
