"""Cutting messages into chunks, as recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.client.producing.chunking import chunk_size, cut
from pulsar_py.common.errors import MessageTooBigError
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.wire.framing import FrameDecoder
from pulsar_py.wire.payload import split_entry

VECTORS = {
    each["name"]: bytes.fromhex(each["hex"])
    for each in json.loads((Path(__file__).parents[3] / "recordings" / "vectors.json").read_text())[
        "vectors"
    ]
    if each["name"].startswith("send_chunk")
}


def test_chunks_are_those_of_the_official_client() -> None:
    recorded = []
    for name in ("send_chunk_0", "send_chunk_1"):
        (frame,) = FrameDecoder(10_000).decode(VECTORS[name])
        assert frame.headers_and_payload is not None
        recorded.append(split_entry(frame.headers_and_payload))
    metadata = MessageMetadata()
    metadata.CopyFrom(recorded[0].metadata)
    for field in ("uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id"):
        metadata.ClearField(field)

    size = chunk_size(18, max_message_size=300)
    chunks = list(cut(metadata, bytes(range(256)) * 2, size))

    assert [len(payload) for _, payload in chunks] == [282, 230]
    assert [(made, payload) for made, payload in chunks] == [
        (each.metadata, each.payload) for each in recorded
    ]


def test_the_user_may_want_smaller_chunks_but_not_larger_ones() -> None:
    assert chunk_size(10, max_message_size=100, chunk_max_message_size=20) == 20
    assert chunk_size(10, max_message_size=100, chunk_max_message_size=200) == 90


def test_metadata_that_fills_an_entry_is_refused() -> None:
    with pytest.raises(MessageTooBigError, match="100"):
        chunk_size(100, max_message_size=100)


@given(st.binary(min_size=2, max_size=200), st.integers(1, 100))
def test_chunks_are_the_payload(payload: bytes, size: int) -> None:
    if len(payload) <= size:
        return
    metadata = MessageMetadata(producer_name="p", sequence_id=7, publish_time=1)
    chunks = list(cut(metadata, payload, size))
    assert b"".join(each for _, each in chunks) == payload
    assert all(len(each) == size for _, each in chunks[:-1])
    assert [each.chunk_id for each, _ in chunks] == list(range(len(chunks)))
    assert {
        (each.uuid, each.num_chunks_from_msg, each.total_chunk_msg_size) for each, _ in chunks
    } == {("p-7", len(chunks), len(payload))}
