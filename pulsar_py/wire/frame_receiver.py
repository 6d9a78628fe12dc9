"""`FrameReceiver`: receives frames, large ones without a copy (pure).

    socket --> landing --> FrameDecoder --> small frames, as bytes
                  |
                  +-- a large frame has begun --> its own memory <-- socket, until it is whole

A large frame is received into memory of its own, and handed out as a read-only view of it, which
whoever gets it may keep: that memory is not written to again while a view exists.

What always holds: any cut of a stream gives the frames that `FrameDecoder` gives; at most one frame
is held; a frame that is too long is refused as soon as its size field has been received.

Source: PulsarDecoder in Pulsar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulsar_py.wire.framing import SIZES, SIZES_SIZE, FrameDecoder, refuse_frame
from pulsar_py.wire.receive_memory import ReceiveMemory

__all__ = [
    "LARGE_FRAME_BYTES",
    "FrameReceiver",
    "ReceivedFrame",
]

ReceivedFrame = tuple[bytes, bytes | memoryview | None]
"""A serialized BaseCommand; and everything after it, None where there is nothing."""

LARGE_FRAME_BYTES: Final = 64 * 1024
"""A frame of at least this size that does not come in one piece gets a buffer of its own."""


class FrameReceiver:
    """Gives one connection memory to receive into, and returns complete frames.

    Invariant: the decoder holds nothing while a large frame is under way.
    """

    __slots__ = ("_decoder", "_filled_bytes", "_large", "_max_total_size", "_memory")

    def __init__(self, max_frame_bytes: int, memory: ReceiveMemory) -> None:
        """`memory` may be that of other connections, too."""
        self._max_total_size = max_frame_bytes - 4
        self._decoder = FrameDecoder(max_frame_bytes)
        self._memory = memory
        # The memory of the large frame that has begun, and how many of its bytes are received.
        self._large: memoryview | None = None
        self._filled_bytes = 0

    def set_max_frame_bytes(self, max_frame_bytes: int) -> None:
        """Follow a limit that the handshake announced; frames already begun keep the old one."""
        self._max_total_size = max_frame_bytes - 4
        self._decoder.set_max_frame_bytes(max_frame_bytes)

    @property
    def pending_bytes(self) -> int:
        """Bytes of an unfinished frame that are held."""
        return self._decoder.pending_bytes if self._large is None else self._filled_bytes

    def buffer(self) -> memoryview:
        """The memory that the next bytes of the stream have to be received into; never empty."""
        # Hot path: consume in `make bench-client`, publish-1k once a read.
        return self._memory.landing if self._large is None else self._large[self._filled_bytes :]

    def received(self, size: int) -> Sequence[ReceivedFrame]:
        """Take note of `size` bytes received into `buffer`; returns the frames that they complete.

        Raises:
            RemoteProtocolError: A size is out of bounds; the connection has to be closed.
        """
        # Hot path: consume in `make bench-client`, publish-1k once a read.
        if self._large is None:
            decoder = self._decoder
            frames = decoder.decode(self._memory.landing[:size].tobytes())
            if decoder.unfinished_frame_bytes >= LARGE_FRAME_BYTES:
                self._begin_large()
            return frames
        self._filled_bytes += size
        if self._filled_bytes < len(self._large):
            return ()
        large, self._large = self._large, None
        self._memory.end(len(large))
        return (self._cut(large),)

    def drop(self) -> None:
        """Give up the frame under way: nothing more will be received."""
        if self._large is not None:
            self._memory.end(len(self._large))
            self._large = None

    def _begin_large(self) -> None:
        large = self._memory.begin(self._decoder.unfinished_frame_bytes)
        if large is None:
            return
        self._large = large
        position = 0
        for piece in self._decoder.take_unfinished():
            large[position : position + len(piece)] = piece
            position += len(piece)
        self._filled_bytes = position

    def _cut(self, frame: memoryview) -> ReceivedFrame:
        total_size, command_size = SIZES.unpack_from(frame)
        if command_size > total_size - 4:
            refuse_frame(total_size, command_size, self._max_total_size)
        split = SIZES_SIZE + command_size
        command = bytes(frame[SIZES_SIZE:split])
        return command, frame[split:].toreadonly() if split < len(frame) else None
