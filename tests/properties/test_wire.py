"""Framing, payloads, batches and commands under any cut and any bytes."""

from __future__ import annotations

from array import array
from contextlib import suppress
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.errors import PayloadError, RemoteProtocolError
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    CompressionType,
    MessageMetadata,
    SingleMessageMetadata,
)
from pulsar_py.wire.batch import join_batch, split_batch
from pulsar_py.wire.commands import read_command
from pulsar_py.wire.compression import compress, decompress
from pulsar_py.wire.entry_summary import sticky_key, summarize_entry
from pulsar_py.wire.framing import Frame, FrameDecoder, encode_message_header
from pulsar_py.wire.payload import (
    ChecksumStatus,
    add_broker_entry_metadata,
    encode_entry,
    split_entry,
    strip_broker_entry_metadata,
    strip_checksum,
    verify_checksum,
)
from pulsar_py.wire.short_circuit import (
    MAX_ADDRESSES,
    MAX_NEW_FILES,
    AnswerDecoder,
    FromBroker,
    LendingBroker,
    LentRun,
    PlacesAnswer,
    PlacesRefusal,
    PlacesRequest,
    RequestDecoder,
    encode_answer,
    encode_greeting,
    encode_refusal,
    encode_request,
)

LIMIT = 20_000
SIZED = st.one_of(st.binary(max_size=20), st.integers(0, 9000).map(lambda size: b"x" * size))
FRAMES = st.lists(
    st.builds(Frame, st.binary(max_size=40), st.one_of(st.none(), SIZED.filter(bool))), max_size=12
)
METADATA = st.builds(
    MessageMetadata,
    producer_name=st.text(max_size=10),
    sequence_id=st.integers(0, 2**64 - 1),
    publish_time=st.integers(0, 2**64 - 1),
    num_messages_in_batch=st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
    partition_key=st.one_of(st.none(), st.text(max_size=10)),
    partition_key_b64_encoded=st.one_of(st.none(), st.booleans()),
    ordering_key=st.one_of(st.none(), st.binary(max_size=10)),
    deliver_at_time=st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
)
CODECS = st.sampled_from([1, 2, 3, 4])


def encode(frames: list[Frame]) -> bytes:
    return b"".join(
        encode_message_header(frame.command, len(frame.headers_and_payload or b""))
        + (frame.headers_and_payload or b"")
        for frame in frames
    )


@given(FRAMES, st.lists(st.integers(0, 9000), max_size=30))
def test_any_cut_of_a_stream_gives_the_same_frames(frames: list[Frame], sizes: list[int]) -> None:
    stream = encode(frames)
    decoder = FrameDecoder(LIMIT)
    found: list[Frame] = []
    position = 0
    for size in sizes:
        found += decoder.decode(stream[position : position + size])
        position += size
        position = min(position, len(stream))
    found += decoder.decode(stream[position:])

    assert found == frames
    assert decoder.is_between_frames


@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_bytes_give_frames_or_one_error_and_the_cut_does_not_matter(
    stream: bytes, size: int
) -> None:
    def run(cut: int) -> list[Frame] | str:
        decoder = FrameDecoder(100)
        frames: list[Frame] = []
        try:
            for start in range(0, len(stream), cut):
                frames += decoder.decode(stream[start : start + cut])
        except RemoteProtocolError:
            return "refused"
        return frames

    assert run(size) == run(1)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_command_or_refused(data: bytes) -> None:
    try:
        command = read_command(data)
    except RemoteProtocolError:
        return
    assert command.IsInitialized()


@given(
    metadata=METADATA,
    body=st.binary(max_size=100),
    has_checksum=st.booleans(),
    has_broker_metadata=st.booleans(),
)
def test_an_entry_is_what_it_was_made_of(
    metadata: MessageMetadata, body: bytes, *, has_checksum: bool, has_broker_metadata: bool
) -> None:
    entry = encode_entry(metadata, body, has_checksum=has_checksum)
    block = BrokerEntryMetadata(broker_timestamp=5, index=6)
    stored = add_broker_entry_metadata(entry, block) if has_broker_metadata else entry

    parts = split_entry(stored)

    assert parts.metadata == metadata
    assert parts.payload == body
    assert (parts.checksum is not None) is has_checksum
    assert parts.broker_entry_metadata == (block if has_broker_metadata else None)
    assert strip_broker_entry_metadata(stored) == entry
    assert strip_checksum(stored) == encode_entry(metadata, body, has_checksum=False)
    expected = ChecksumStatus.VALID if has_checksum else ChecksumStatus.ABSENT
    assert verify_checksum(stored) is expected
    summary = summarize_entry(stored)
    assert summary.is_readable
    assert summary.sequence_id == metadata.sequence_id
    assert summary.payload_size == len(body)
    assert sticky_key(summary) is not None


@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda b: b"\x0e\x02" + b)))
def test_any_bytes_have_a_summary(data: bytes) -> None:
    summary = summarize_entry(data)

    assert summary.messages_count >= 1
    assert isinstance(sticky_key(summary), bytes)
    verify_checksum(data)
    strip_checksum(data)


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_a_batch_is_what_it_was_made_of(payloads: list[bytes]) -> None:
    body = join_batch((SingleMessageMetadata(), payload) for payload in payloads)

    assert [message.payload for message in split_batch(body, len(payloads))] == payloads


@given(st.binary(max_size=60), st.integers(1, 4))
def test_any_bytes_are_a_batch_or_refused(body: bytes, count: int) -> None:
    try:
        messages = split_batch(body, count)
    except PayloadError:
        return
    assert len(messages) <= count


@given(CODECS, st.binary(max_size=500))
def test_what_was_compressed_reads_back(codec: CompressionType.ValueType, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), len(data)) == data


@given(CODECS, st.binary(max_size=60), st.integers(0, 1000))
def test_any_bytes_inflate_to_the_size_asked_for_or_are_refused(
    codec: CompressionType.ValueType, data: bytes, size: int
) -> None:
    try:
        result = decompress(codec, data, size)
    except PayloadError:
        return
    assert len(result) == size


def test_the_generators_make_frames() -> None:
    with pytest.raises(RemoteProtocolError):
        FrameDecoder(100).decode(b"\xff" * 8)


IDS = st.integers(0, 2**63 - 1)
RUNS = st.builds(
    LentRun,
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**62),
    st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=9).map(lambda some: array("I", some)),
)
ANSWERS = st.builds(
    PlacesAnswer,
    IDS,
    IDS,
    st.lists(RUNS, max_size=5),
    st.lists(st.integers(0, 2**64 - 1), max_size=MAX_NEW_FILES),
)
REFUSALS = st.builds(PlacesRefusal, st.text(max_size=30))
ADDRESSES = st.tuples(st.ip_addresses().map(str), st.integers(0, 65_535))
GREETINGS = st.builds(
    LendingBroker, st.integers(0, 2**64 - 1), st.lists(ADDRESSES, max_size=MAX_ADDRESSES)
)
SENT = st.lists(st.one_of(ANSWERS, REFUSALS, GREETINGS), max_size=5)


def encode_sent(message: FromBroker) -> bytes:
    if isinstance(message, PlacesAnswer):
        return encode_answer(message)
    if isinstance(message, PlacesRefusal):
        return encode_refusal(message.reason)
    return encode_greeting(message)


@given(SENT, st.lists(st.integers(1, 200), min_size=1))
def test_what_lenders_send_is_read_whatever_the_cut(
    sent: list[FromBroker], sizes: list[int]
) -> None:
    assert received(AnswerDecoder(), b"".join(map(encode_sent, sent)), sizes) == sent


@given(SENT, st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=4))))
def test_changed_bytes_of_lenders_are_read_or_refused(
    sent: list[FromBroker], changes: list[tuple[int, bytes]]
) -> None:
    data = bytearray(b"".join(map(encode_sent, sent)))
    for at, new in changes:
        data[at : at + len(new)] = new
    with suppress(RemoteProtocolError):
        for message in AnswerDecoder().feed(bytes(data)):
            if isinstance(message, PlacesAnswer):
                assert all(run.lengths and run.offset >= 0 for run in message.runs)


@given(st.binary(max_size=200))
def test_any_bytes_are_requests_or_refused(data: bytes) -> None:
    request = encode_request(PlacesRequest(1, 2, 3, 4))
    assert RequestDecoder().feed(request + request) == [PlacesRequest(1, 2, 3, 4)] * 2
    for each in (data, request[:8] + data, request + data):
        with suppress(RemoteProtocolError):
            for found in RequestDecoder().feed(each):
                assert 0 <= found.first_entry_id <= found.last_entry_id
                assert found.limit_bytes


def received(decoder: AnswerDecoder, data: bytes, sizes: list[int]) -> list[FromBroker]:
    """What is read of data that comes in pieces of these sizes, which are repeated."""
    found: list[FromBroker] = []
    at = 0
    for size in cycle(sizes):
        if at >= len(data):
            return found
        found += decoder.feed(data[at : at + size])
        at += size
    return found
