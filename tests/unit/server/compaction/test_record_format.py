"""Records of compacted ledgers: bytes there and back, and damaged ones."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.position import EARLIEST, MAX_LONG, Position
from pulsar_py.server.compaction.record_format import (
    decode_record,
    encode_compacted_to,
    encode_record,
    split_record,
    with_id,
)

RECORD = encode_record(Position(3, 4), -1, b"message")


def test_a_record_byte_for_byte() -> None:
    message_id = bytes.fromhex("0803 1004 18ffffffffffffffffff01")
    expected = b"\0\0\0\x0f" + message_id + b"\0\0\0\x07message"
    assert encode_record(Position(3, 4), -1, b"message") == expected


@pytest.mark.parametrize("position", [EARLIEST, Position(0, 0), Position(MAX_LONG, MAX_LONG)])
@pytest.mark.parametrize("message", [b"", b"x" * 300])
def test_records_there_and_back(position: Position, message: bytes) -> None:
    record = encode_record(position, 7, message)
    assert decode_record(record) == (position, message)
    assert decode_record(memoryview(record)) == (position, message)


@pytest.mark.parametrize("size", range(len(RECORD)))
def test_a_record_that_is_cut_short_is_refused(size: int) -> None:
    with pytest.raises(CorruptDataError, match="entry of a compacted ledger"):
        decode_record(RECORD[:size])


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff" + RECORD[4:],  # a size below 0
        b"\x7f\xff\xff\xff" + RECORD[4:],
        b"\0\0\0\x02\xff\xff\0\0\0\0",  # no protobuf message
        b"\0\0\0\x02\x08\x03\0\0\0\0",  # an id without its entry
    ],
)
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptDataError):
        decode_record(data)


def test_the_label_names_a_partition_only_where_there_is_one() -> None:
    label = encode_compacted_to(Position(3, 4), -1)
    assert label == bytes.fromhex("0803 1004 3000")
    found = MessageId.parse(encode_compacted_to(Position(3, 4), 0))
    assert (found.position, found.partition_index) == (Position(3, 4), 0)
    assert b"\x18" not in label


def test_a_record_gets_another_id_and_keeps_its_message() -> None:
    data = encode_record(Position(3, 4), 2, b"message")
    own, end = split_record(data)
    own.ledgerId = 1 << 40
    assert with_id(own, data, end) == encode_record(Position(1 << 40, 4), 2, b"message")
