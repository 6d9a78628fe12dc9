"""`FrameReceiver`: receives frames, large ones without a copy and into reused memory (pure).

    socket --> small buffer --> FrameDecoder --> small frames, as bytes
                    |
                    +-- a large frame has begun --> its own buffer <-- socket, until it is whole
                                                        ^
    socket, as long as large frames follow each other --+

A large frame is received into its final buffer, which belongs to a `ReusedMemory`, and handed out
as a view. Behind a large frame the next one is expected to be like it, so that its beginning is
received there, too, and not copied. If it is another one, what came goes the way of small frames.

What always holds: any cut of a stream gives the frames that `FrameDecoder` gives; at most one frame
is held; a frame that is too long is refused as soon as its size field has been received.

Source: PulsarDecoder in Pulsar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulsar_py.common.disks.reused_memory import ReusedMemory
from pulsar_py.wire.framing import SIZES, SIZES_SIZE, FrameDecoder, refuse_frame

__all__ = [
    "KEPT_BYTES_LIMIT",
    "LARGE_FRAME_BYTES",
    "FrameReceiver",
    "ReceivedFrame",
]

ReceivedFrame = tuple[bytes, bytes | memoryview | None]
"""A serialized BaseCommand; and everything after it, None where there is nothing."""

LARGE_FRAME_BYTES: Final = 64 * 1024
"""A frame of at least this size that does not come in one piece gets a buffer of its own."""
KEPT_BYTES_LIMIT: Final = 8 * 1024 * 1024
"""The most memory that a connection keeps for later frames."""

_SMALL_BUFFER_BYTES: Final = 128 * 1024
_PIECE_BYTES: Final = 16 * 1024
"""A longer piece holds more than a message that comes alone, most likely."""
_EXPECTED_MORE_BYTES: Final = 32 * 1024
"""How much longer than the last large frame the next one may be, to be received in its place."""


class FrameReceiver:
    """Gives one connection memory to receive into, and returns complete frames.

    Invariant: the decoder holds nothing while a large frame is under way or expected.
    """

    __slots__ = (
        "_buffers",
        "_decoder",
        "_expected",
        "_expected_bytes",
        "_filled_bytes",
        "_large",
        "_max_total_size",
        "_small",
    )

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_total_size = max_frame_bytes - 4
        self._decoder = FrameDecoder(max_frame_bytes)
        self._buffers = ReusedMemory(KEPT_BYTES_LIMIT)
        self._small = memoryview(bytearray(_SMALL_BUFFER_BYTES))
        # The buffer of the large frame that has begun, and how many of its bytes are received.
        self._large: memoryview | None = None
        self._filled_bytes = 0
        # The length of the last frame if that was large, else 0; and memory for one like it, from
        # when somebody asks where to receive until something was received.
        self._expected_bytes = 0
        self._expected: memoryview | None = None

    def set_max_frame_bytes(self, max_frame_bytes: int) -> None:
        """Follow a limit that the handshake announced; frames already begun keep the old one."""
        self._max_total_size = max_frame_bytes - 4
        self._decoder.set_max_frame_bytes(max_frame_bytes)

    def buffer(self) -> memoryview:
        """The memory that the next bytes of the stream have to be received into; never empty."""
        # Hot path: consume in `make bench-client`.
        if self._large is not None:
            return self._large[self._filled_bytes :]
        if not self._expected_bytes or self._decoder.pending_bytes:
            return self._small
        if self._expected is None:
            # A bit more than the last one took, for the next may be longer.
            room = self._expected_bytes + _EXPECTED_MORE_BYTES
            self._expected = self._buffers.take(min(room, self._max_total_size + 4))
        # Not more than the last one, lest the beginning of the next frame comes with it.
        return self._expected[: self._expected_bytes]

    def piece(self, size: int) -> bytes | None:
        """The `size` bytes received into `buffer`, if they are few and begin with a frame.

        What is not handled as it is has to go through `decode`. None: `received` has to know.
        """
        # Hot path: latency in `make bench-client`.
        if (
            size > _PIECE_BYTES
            or size > self._max_total_size
            or self._large is not None
            or self._expected is not None
            or self._decoder.pending_bytes
        ):
            return None
        return self._small[:size].tobytes()

    def received(self, size: int) -> Sequence[ReceivedFrame]:
        """Take note of `size` bytes received into `buffer`; returns the frames that they complete.

        Raises:
            RemoteProtocolError: A size is out of bounds; the connection has to be closed.
        """
        # Hot path: consume in `make bench-client`.
        if self._large is not None:
            return self._received_large(size)
        if self._expected is None:
            return self.decode(self._small[:size].tobytes())
        expected, self._expected = self._expected, None
        total_bytes = 4 + SIZES.unpack_from(expected)[0] if size >= SIZES_SIZE else 0
        if not LARGE_FRAME_BYTES <= total_bytes <= len(expected):
            self._expected_bytes = 0
            return self.decode(expected[:size].tobytes())
        self._large = expected[:total_bytes]
        self._filled_bytes = 0
        rest = expected[total_bytes:size].tobytes()  # of the next frame, if this one is shorter
        frames = self._received_large(size - len(rest))
        return (*frames, *self.decode(rest)) if rest else frames

    def decode(self, data: bytes) -> Sequence[ReceivedFrame]:
        """The frames that a `piece` completes; raises as `received`. There is no large one then."""
        frames = self._decoder.decode(data)
        if self._decoder.unfinished_frame_bytes >= LARGE_FRAME_BYTES:
            self._begin_large()
        return frames

    def _received_large(self, size: int) -> Sequence[ReceivedFrame]:
        """The large frame, if it is complete now."""
        large = self._large
        assert large is not None, "a large frame is under way"
        self._filled_bytes += size
        if self._filled_bytes < len(large):
            return ()
        self._large = None
        self._expected_bytes = len(large)
        return (self._cut(large),)

    def _begin_large(self) -> None:
        self._large = large = self._buffers.take(self._decoder.unfinished_frame_bytes)
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
        return command, frame[split:] if split < len(frame) else None
