"""Receiving into memory that all connections use, one read after the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.wire import framing
from pulsar_py.wire.framing import (
    LARGE_FRAME_BYTES,
    AlikeFrames,
    Frame,
    FrameDecoder,
    single_frames,
)
from pulsar_py.wire.receive_memory import (
    LARGE_READ_BYTES,
    LARGE_READ_FRAMES,
    READ_BYTES,
    ReceiveMemory,
)

LIMIT = 2 * 1024 * 1024
SMALL, LARGE, LARGEST = b"s" * 300, b"l" * (3 * LARGE_FRAME_BYTES), b"L" * 400_000


def frame(command: bytes, payload: bytes = b"") -> bytes:
    return framing.encode_message_header(command, len(payload)) + payload


def read(memory: ReceiveMemory, decoder: FrameDecoder, data: bytes) -> list[Frame]:
    """One read of a socket; what it was read into is overwritten if it may be used again."""
    within_bytes = decoder.unfinished_frame_bytes
    memory.buffer(within_bytes)[: len(data)] = data
    parts = decoder.decode_lent(memory.received(len(data)))
    again = memory.buffer(within_bytes)
    again[:] = b"\xff" * len(again)
    return single_frames(parts)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"", b"x", SMALL, LARGE, LARGEST]), st.sampled_from([1, 2, 4, 15, 40])
        ),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.integers(20_000, LARGE_READ_BYTES), min_size=1, max_size=5),
    st.sampled_from([[], [1, 3, 5]]),
)
def test_any_cut_gives_the_same_frames(
    runs: list[tuple[bytes, int]], sizes: list[int], tiny_sizes: list[int]
) -> None:
    memory, decoder = ReceiveMemory(), FrameDecoder(LIMIT)
    payloads = [payload for payload, count in runs for _ in range(count)]
    stream = b"".join(frame(b"c%d" % index, each) for index, each in enumerate(payloads))
    frames: list[Frame] = []
    position = turn = 0
    while position < len(stream):
        size = (sizes + tiny_sizes)[turn % len(sizes + tiny_sizes)]
        size = min(size, len(memory.buffer(decoder.unfinished_frame_bytes)))
        frames += read(memory, decoder, stream[position : position + size])
        position += size
        turn += 1

    assert [(each.command, each.headers_and_payload or b"") for each in frames] == [
        (b"c%d" % index, payload) for index, payload in enumerate(payloads)
    ]
    assert all(type(part) is bytes for each in frames for part in each if part is not None)


def test_frames_of_one_size_end_where_another_size_begins() -> None:
    frames = [(b"c%d" % index, b"p%d" % index) for index in range(10)]
    frames[4:4] = [(b"", b"abcd"), (b"c123", b""), (b"c1", b"longer")]
    stream = b"".join(frame(command, payload) for command, payload in frames)

    parts = FrameDecoder(LIMIT).decode_lent(memoryview(stream + frame(b"c0", b"p0")[:-1]))

    cut = [(each.command, each.headers_and_payload or b"") for each in single_frames(parts)]
    assert cut == frames


def test_many_frames_of_one_size_are_one_part_until_another_size_begins() -> None:
    memory, decoder = ReceiveMemory(), FrameDecoder(LIMIT)
    some = [frame(b"a%d1" % (index // 10 % 2), b"%03d" % index) for index in range(20)]
    others = [frame(b"bb", b"%05d" % index) for index in range(100, 130)]
    read(memory, decoder, some[0][:-1])
    stream = b"".join([some[0][-1:], *some, *others, *some[:15]])
    memory.buffer()[: len(stream)] = stream

    first, alike, others_alike, rest = decoder.decode_lent(memory.received(len(stream)))

    assert first == [Frame(b"a01", b"000")]
    rests = [b"%03d" % index for index in range(20)]
    tens = b"0" * 10 + b"1" * 10
    assert alike == AlikeFrames(b"a01", {1: tens}, rests, len(some[0]))
    rests = [b"%05d" % index for index in range(100, 130)]
    assert others_alike == AlikeFrames(b"bb", {}, rests, len(others[0]))
    assert single_frames([alike]) == [
        Frame(b"a%c1" % ten, b"%03d" % index) for index, ten in enumerate(tens)
    ]
    assert rest == [Frame(b"a%d1" % (index // 10), b"%03d" % index) for index in range(15)]


def test_many_frames_of_a_size_beyond_the_limit_are_refused() -> None:
    with pytest.raises(RemoteProtocolError, match=r"frame of 31 bytes .* allowed are 16"):
        FrameDecoder(20).decode_lent(memoryview(frame(b"c", bytes(26)) * 20))
    with pytest.raises(RemoteProtocolError, match="command of 9 bytes does not fit"):
        FrameDecoder(LIMIT).decode_lent(memoryview(bytes((0, 0, 0, 6, 0, 0, 0, 9, 1, 1)) * 20))


def test_two_connections_within_a_frame_do_not_overwrite_each_other() -> None:
    memory, decoders = ReceiveMemory(), [FrameDecoder(LIMIT), FrameDecoder(LIMIT)]
    payloads = [b"a" * 200_000, b"b" * 200_000]
    streams = [frame(b"c", payload) for payload in payloads]
    for decoder, stream in zip(decoders, streams, strict=True):
        assert not read(memory, decoder, stream[:100_000])

    for decoder, stream, payload in zip(decoders, streams, payloads, strict=True):
        assert read(memory, decoder, stream[100_000:]) == [Frame(b"c", payload)]


def test_memory_of_a_read_that_brought_nothing_is_given_again() -> None:
    memory = ReceiveMemory()
    first = memory.buffer()

    assert memory.buffer() is first


def test_one_piece_serves_all_reads_while_nobody_is_within_a_large_frame() -> None:
    memory, decoder = ReceiveMemory(), FrameDecoder(LIMIT)
    for _ in range(50):
        read(memory, decoder, frame(b"c", LARGE) + frame(b"c", SMALL))
        read(memory, decoder, frame(b"c", SMALL)[:100])
        read(memory, decoder, frame(b"c", SMALL)[100:])

    assert memory.kept_bytes == READ_BYTES


def test_a_large_frame_that_trickles_in_keeps_no_more_than_its_beginning_alive() -> None:
    memory, decoder = ReceiveMemory(), FrameDecoder(LIMIT)
    stream = frame(b"c", LARGEST)
    for position in range(0, len(stream) - 5000, 5000):
        assert not read(memory, decoder, stream[position : position + 5000])

    assert memory.kept_bytes == 2 * READ_BYTES + LARGE_READ_BYTES


def test_within_a_frame_of_some_size_much_is_read_at_once() -> None:
    memory = ReceiveMemory()
    sizes = [0, LARGE_READ_FRAMES[0] - 1, LARGE_READ_FRAMES[0], LARGE_READ_FRAMES[-1], LIMIT]

    assert [len(memory.buffer(size)) for size in sizes] == [
        READ_BYTES, READ_BYTES, LARGE_READ_BYTES, LARGE_READ_BYTES, READ_BYTES,
    ]  # fmt: skip


def test_a_read_is_full_only_if_it_took_all_that_was_lent_for_it() -> None:
    memory = ReceiveMemory()
    assert not memory.is_filled_by(READ_BYTES)  # nothing is lent
    memory.buffer()
    assert memory.is_filled_by(READ_BYTES)
    assert not memory.is_filled_by(READ_BYTES - 1)
    memory.buffer(LARGE_READ_FRAMES[0])
    assert memory.is_filled_by(LARGE_READ_BYTES)
    assert not memory.is_filled_by(READ_BYTES)


def test_connections_within_a_frame_share_the_memory_of_large_reads() -> None:
    memory, decoders = ReceiveMemory(), [FrameDecoder(LIMIT) for _ in range(50)]
    stream = frame(b"c", b"p" * 130_000) * 9
    for decoder in decoders:
        assert not read(memory, decoder, stream[:3000])
        assert len(read(memory, decoder, stream[3000:1_000_000])) == 7

    assert memory.kept_bytes == READ_BYTES + LARGE_READ_BYTES
    for decoder in decoders:
        assert len(read(memory, decoder, stream[1_000_000:])) == 2


def test_a_large_frame_beyond_the_limit_is_refused_with_its_size() -> None:
    decoder = FrameDecoder(LARGE_FRAME_BYTES + 100)

    with pytest.raises(RemoteProtocolError, match=r"frame of 49157 bytes .* allowed are 16480"):
        decoder.decode_lent(memoryview(frame(b"c", LARGE)))
    with pytest.raises(RemoteProtocolError, match="command of 65536 bytes does not fit"):
        decoder.decode_lent(memoryview(b"\x00\x00\x40\x00\x00\x01\x00\x00"))
