"""Cutting streams into frames."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import LocalProtocolError, RemoteProtocolError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSend
from pulsar_py.wire import framing
from pulsar_py.wire.framing import Frame, FrameDecoder

PING = bytes.fromhex("00000009000000050812920100")
LIMIT = 1000


def frame(command: bytes, payload: bytes = b"") -> bytes:
    return framing.encode_message_header(command, len(payload)) + payload


def decode_in_pieces(stream: bytes, size: int, limit: int = LIMIT) -> list[Frame]:
    decoder = FrameDecoder(limit)
    frames: list[Frame] = []
    for start in range(0, len(stream), size):
        frames += decoder.decode(stream[start : start + size])
    assert decoder.is_between_frames
    return frames


def test_a_frame_without_payload() -> None:
    (only,) = FrameDecoder(LIMIT).decode(PING)

    assert only.command.hex() == "0812920100"
    assert only.headers_and_payload is None


def test_a_frame_with_payload() -> None:
    assert FrameDecoder(LIMIT).decode(frame(b"cc", b"payload")) == [Frame(b"cc", b"payload")]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 13, 64, 10_000])
def test_any_cut_gives_the_same_frames(size: int) -> None:
    expected = [
        Frame(b"c" * 5, None),
        Frame(b"d" * 300, b"p" * 400),
        Frame(b"", b"only payload"),
        Frame(b"", None),
        Frame(b"e", b"x"),
    ]
    stream = b"".join(frame(one.command, one.headers_and_payload or b"") for one in expected)

    assert decode_in_pieces(stream * 3, size) == expected * 3


@pytest.mark.parametrize("size", [1, 1000, 4095, 4096, 5000, 70_000, 262_144])
def test_large_frames_over_many_chunks(size: int) -> None:
    payload = bytes(range(256)) * 1000
    stream = frame(b"c" * 5000, payload) + PING

    frames = decode_in_pieces(stream, size, limit=300_000)

    assert frames == [Frame(b"c" * 5000, payload), Frame(PING[8:], None)]
    assert isinstance(frames[0].command, bytes)
    assert isinstance(frames[0].headers_and_payload, bytes)


def test_the_size_field_counts_into_the_limit() -> None:
    longest = frame(b"c", b"p" * (LIMIT - 9))
    assert len(longest) == LIMIT

    assert len(FrameDecoder(LIMIT).decode(longest)) == 1
    with pytest.raises(RemoteProtocolError, match=r"997 bytes .* allowed are 996"):
        FrameDecoder(LIMIT).decode(frame(b"c", b"p" * (LIMIT - 8)))


def test_the_limit_is_that_of_messages_plus_10_kib() -> None:
    assert framing.max_frame_bytes(1_024_000) == 1_034_240


@pytest.mark.parametrize("cut", [4, 5, 8, 13])
def test_a_long_frame_is_refused_as_soon_as_its_size_is_known(cut: int) -> None:
    stream = bytes.fromhex("7fffffff000000050812920100")
    with pytest.raises(RemoteProtocolError, match=r"2147483647 bytes .* allowed are 996"):
        decode_in_pieces(stream[:cut], 3)


def test_a_negative_size_is_named_as_such() -> None:
    with pytest.raises(RemoteProtocolError, match="frame of -1 bytes"):
        FrameDecoder(LIMIT).decode(bytes.fromhex("ffffffff000000050812920100"))


@pytest.mark.parametrize("size", [1, 4, 8, 100])
@pytest.mark.parametrize(
    ("head", "text"),
    [
        ("0000000900000006", "command of 6 bytes does not fit its frame of 9 bytes"),
        ("00000009ffffffff", "command of 4294967295 bytes does not fit its frame of 9 bytes"),
    ],
)
def test_a_command_longer_than_its_frame_is_refused(head: str, text: str, size: int) -> None:
    stream = bytes.fromhex(head) + bytes(5)
    with pytest.raises(RemoteProtocolError, match=text):
        decode_in_pieces(stream, size)


@pytest.mark.parametrize("total", range(4))
def test_a_frame_without_a_command_size_is_refused_at_once(total: int) -> None:
    with pytest.raises(RemoteProtocolError, match=f"frame of {total} bytes"):
        FrameDecoder(LIMIT).decode(total.to_bytes(4, "big"))


def test_what_is_pending_is_counted() -> None:
    decoder = FrameDecoder(LIMIT)
    decoder.decode(PING + PING[:6])

    assert decoder.pending_bytes == 6
    assert not decoder.is_between_frames
    decoder.decode(b"")
    assert decoder.decode(PING[6:]) == [Frame(PING[8:], None)]
    assert decoder.pending_bytes == 0


def test_the_limit_can_follow_the_handshake() -> None:
    decoder = FrameDecoder(16)
    decoder.set_max_frame_bytes(LIMIT)

    assert len(decoder.decode(frame(b"c", b"p" * 900))) == 1


def test_bytes_that_trickle_in_are_gathered() -> None:
    decoder = FrameDecoder(1_000_000)
    for byte in frame(b"c", b"p" * 50_000)[:-1]:
        decoder.decode(bytes((byte,)))

    assert len(decoder._pieces) == 1


def test_a_short_beginning_does_not_pin_the_chunk_it_came_in() -> None:
    decoder = FrameDecoder(1_000_000)
    decoder.decode(PING * 5000 + PING[:5])

    assert isinstance(decoder._pieces[0], bytearray)


def test_encoding_is_the_inverse() -> None:
    command = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=1, sequence_id=2))
    plain = framing.encode_command(command)
    message = framing.encode_message(command, b"payload", max_message_size=100)

    data = command.SerializeToString()
    assert plain == framing.encode_serialized(data)
    assert FrameDecoder(LIMIT).decode(plain + message) == [
        Frame(data, None),
        Frame(data, b"payload"),
    ]


def test_a_frame_the_peer_would_refuse_is_not_sent() -> None:
    command = BaseCommand(type=BaseCommand.SEND)
    with pytest.raises(LocalProtocolError, match="allowed are 10340"):
        framing.encode_message(command, bytes(11_000), max_message_size=100)


@pytest.mark.parametrize(
    ("start", "protocol"),
    [
        (b"\x16\x03\x01\x02", "TLS"),  # 369295618
        (b"\x15\x03\x03\x00", "TLS"),
        (b"GET ", "HTTP"),  # 1195725856
        (b"HTTP", "HTTP"),  # 1213486160
        (b"<!DO", "HTTP"),  # a page without a status line
    ],
)
def test_the_start_of_another_protocol_is_named(start: bytes, protocol: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"the peer seems to speak {protocol}$"):
        FrameDecoder(5_000_000).decode(start + b"rest")
