"""Batches."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import PayloadError
from pulsar_py.proto.PulsarApi_pb2 import SingleMessageMetadata
from pulsar_py.wire.batch import join_batch, split_batch

MESSAGES = [
    (SingleMessageMetadata(partition_key="k"), b"one"),
    (SingleMessageMetadata(null_value=True), b""),
    (SingleMessageMetadata(sequence_id=3), b"three" * 100),
]
BODY = join_batch(MESSAGES)


def test_a_batch_reads_back() -> None:
    messages = split_batch(BODY, 3)

    assert [message.batch_index for message in messages] == [0, 1, 2]
    assert [message.payload for message in messages] == [b"one", b"", b"three" * 100]
    assert messages[0].metadata.partition_key == "k"
    assert messages[0].metadata.payload_size == 3


def test_a_compacted_batch_keeps_the_original_indexes() -> None:
    messages = split_batch(BODY, 10, [2, 5, 9])

    assert [message.batch_index for message in messages] == [2, 5, 9]


def test_messages_that_were_compacted_out_are_skipped() -> None:
    body = join_batch([(SingleMessageMetadata(compacted_out=True), b""), *MESSAGES])

    assert [message.batch_index for message in split_batch(body, 4)] == [1, 2, 3]


@pytest.mark.parametrize("cut", [0, 1, 4, 6, 10, len(BODY) - 1])
def test_a_cut_batch_is_refused(cut: int) -> None:
    with pytest.raises(PayloadError, match="batch"):
        split_batch(BODY[:cut], 3)


def test_a_count_that_is_too_high_is_refused() -> None:
    with pytest.raises(PayloadError, match="ends before message 3"):
        split_batch(BODY, 2**31 - 1)


@pytest.mark.parametrize(
    "body",
    [
        bytes.fromhex("00000002ffff"),
        bytes.fromhex("00000000"),
        bytes.fromhex("0000000b18ffffffffffffffffff01"),
    ],
    ids=["unreadable", "without size", "negative size"],
)
def test_a_damaged_message_is_refused(body: bytes) -> None:
    with pytest.raises(PayloadError, match="message 0"):
        split_batch(body, 1)


def test_a_batch_may_hold_what_was_compacted_away_without_payload() -> None:
    """Apache Pulsar 4.2 writes `00000004 1800 2001` in its place."""
    gone = bytes.fromhex("0000000418002001")
    kept = join_batch([(SingleMessageMetadata(payload_size=0, partition_key="k"), b"kept")])
    for body in (gone + kept + gone, kept):
        (message,) = split_batch(body, 3, [1])
        assert (message.batch_index, message.payload) == (1, b"kept")
