"""Receiving frames into memory that is used again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.wire import framing
from pulsar_py.wire.frame_receiver import (
    LARGE_FRAME_BYTES,
    FrameReceiver,
    ReceivedFrame,
)

LIMIT = 1024 * 1024


def frame(command: bytes, payload: bytes = b"") -> bytes:
    return framing.encode_message_header(command, len(payload)) + payload


def receive(
    receiver: FrameReceiver, stream: bytes, sizes: list[int], *, by_pieces: bool = False
) -> list[ReceivedFrame]:
    """Feed a stream as a socket does: at most so many bytes at once, in turn."""
    frames: list[ReceivedFrame] = []
    position = turn = 0
    while position < len(stream):
        buffer = receiver.buffer()
        assert len(buffer) > 0
        piece = stream[position : position + min(len(buffer), sizes[turn % len(sizes)])]
        buffer[: len(piece)] = piece
        whole = receiver.piece(len(piece)) if by_pieces else None
        assert whole in {None, piece}
        frames += receiver.received(len(piece)) if whole is None else receiver.decode(whole)
        position += len(piece)
        turn += 1
    return frames


SMALL, LARGE = b"s" * 300, b"l" * (3 * LARGE_FRAME_BYTES)


@given(
    st.lists(st.sampled_from([b"", b"x", SMALL, LARGE, LARGE + b"x"]), min_size=1, max_size=8),
    st.lists(st.integers(1, 200_000), min_size=1, max_size=5),
    st.sampled_from([[], [1, 3, 5]]),
    st.booleans(),
)
def test_any_cut_gives_the_same_frames(
    payloads: list[bytes],
    sizes: list[int],
    tiny_sizes: list[int],
    by_pieces: bool,  # noqa: FBT001 - a value of hypothesis
) -> None:
    stream = b"".join(frame(b"c%d" % index, each) for index, each in enumerate(payloads))

    frames = receive(FrameReceiver(LIMIT), stream, sizes + tiny_sizes, by_pieces=by_pieces)

    assert [command for command, _ in frames] == [b"c%d" % i for i in range(len(payloads))]
    assert [payload or b"" for _, payload in frames] == payloads


def test_a_piece_begins_with_a_frame_and_is_no_longer_than_one_may_be() -> None:
    receiver, small = FrameReceiver(LIMIT), frame(b"c", SMALL)
    receiver.buffer()[: len(small)] = small
    assert receiver.piece(len(small)) == small
    receiver.set_max_frame_bytes(len(small) + 3)
    assert receiver.piece(len(small)) is None
    receiver.set_max_frame_bytes(LIMIT)
    assert receiver.decode(small[:9]) == []
    assert receiver.piece(5) is None  # the rest of a frame
    assert receive(receiver, small[9:], [LIMIT], by_pieces=True) == [(b"c", SMALL)]
    assert receive(receiver, frame(b"c", LARGE), [LIMIT], by_pieces=True) == [(b"c", LARGE)]
    receiver.buffer()
    assert receiver.piece(9) is None  # in the place of another large one


def test_what_somebody_holds_is_not_written_over() -> None:
    receiver = FrameReceiver(LIMIT)
    payloads = [bytes((value,)) * LARGE_FRAME_BYTES * 2 for value in range(20)]
    held = [
        payload
        for each in payloads
        for _, payload in receive(receiver, frame(b"c", each), [50_000])
    ]
    assert held == payloads


def test_a_frame_that_is_too_long_is_refused_with_its_first_bytes() -> None:
    with pytest.raises(RemoteProtocolError, match="allowed are"):
        receive(FrameReceiver(LIMIT), framing.SIZES.pack(LIMIT, 2), [8])


def test_a_large_frame_whose_command_does_not_fit_it_is_refused() -> None:
    size = 2 * LARGE_FRAME_BYTES
    stream = framing.SIZES.pack(size, size) + bytes(size)
    with pytest.raises(RemoteProtocolError, match="does not fit its frame"):
        receive(FrameReceiver(LIMIT), stream, [1000])


def test_a_higher_limit_is_followed() -> None:
    receiver = FrameReceiver(1000)
    receiver.set_max_frame_bytes(LIMIT)
    ((_, payload),) = receive(receiver, frame(b"c", LARGE), [70_000])
    assert payload == LARGE


def test_a_large_frame_behind_one_like_it_is_received_where_it_stays() -> None:
    receiver = FrameReceiver(LIMIT)
    receive(receiver, frame(b"c", LARGE), [50_000])
    next_frame = frame(b"d", LARGE)
    buffer = receiver.buffer()
    assert len(buffer) == len(next_frame)

    buffer[:] = next_frame
    ((command, payload),) = receiver.received(len(next_frame))

    assert (command, payload) == (b"d", LARGE)
    assert isinstance(payload, memoryview)
    assert payload.obj is buffer.obj


def test_small_frames_behind_a_large_one_leave_its_memory() -> None:
    receiver = FrameReceiver(LIMIT)
    receive(receiver, frame(b"c", LARGE), [50_000])

    assert receive(receiver, frame(b"d") + frame(b"e", SMALL), [50_000]) == [
        (b"d", None),
        (b"e", SMALL),
    ]
    assert len(receiver.buffer()) < len(LARGE)
