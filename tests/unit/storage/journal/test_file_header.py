from __future__ import annotations

import struct

import pytest

from pulsar_py.common.errors import FormatVersionError
from pulsar_py.common.hashing import crc32c
from pulsar_py.storage.journal.file_header import (
    FILE_HEADER_BYTES,
    FileHeader,
    decode_file_header,
    lost_headers,
)

HEADER = FileHeader(
    3, 2, 1234, generation=1 << 63, block_bytes=4096, largest_block_bytes=9000, is_used_again=True
)


def test_the_header_is_read_back_and_checked() -> None:
    data = HEADER.encode()

    assert len(data) == FILE_HEADER_BYTES
    assert decode_file_header(data + b"more", "j") == HEADER
    assert decode_file_header(data[:-1], "j") is None
    assert decode_file_header(bytes(FILE_HEADER_BYTES), "j") is None
    for at in (*range(8), *range(12, FILE_HEADER_BYTES)):
        damaged = bytearray(data)
        damaged[at] ^= 1
        assert decode_file_header(bytes(damaged), "j") is None


def test_the_bytes_are_those_of_the_table() -> None:
    rest = struct.pack(">QQQQIIII", 3, 1 << 63, 2, 1234, 4096, 9000, 3, 0)

    assert HEADER.encode() == struct.pack(">8sII", b"PLSRJRNL", 3, crc32c(rest)) + rest


def test_a_file_that_was_created_ahead_is_begun_later() -> None:
    ahead = FileHeader(5, generation=9, block_bytes=512, is_begun=False)
    read = decode_file_header(ahead.encode(), "j")

    assert read == ahead
    begun = ahead.begun((4, 8192))
    assert (begun.is_begun, begun.previous_id, begun.previous_end) == (True, 4, 8192)
    assert (begun.generation, begun.file_id, begun.block_bytes) == (9, 5, 512)


def test_blocks_stand_at_multiples_but_for_the_first() -> None:
    header = FileHeader(1, block_bytes=512)

    assert header.first_offset == FILE_HEADER_BYTES
    assert [header.after(end) for end in (0, 1, 511, 512, 513)] == [0, 512, 512, 512, 1024]


def test_the_former_version_is_read() -> None:
    rest = struct.pack(">QQQ", 3, 2, 1234)
    data = struct.pack(">8sII", b"PLSRJRNL", 1, crc32c(rest)) + rest

    header = decode_file_header(data, "j")
    assert header == FileHeader(3, 2, 1234, version=1)
    assert (header.first_offset, header.after(77)) == (40, 77)
    assert decode_file_header(data[:-1] + b"x", "j") is None


def test_version_2_is_read_as_the_same_bytes() -> None:
    data = bytearray(HEADER.encode())
    data[8:12] = (2).to_bytes(4, "big")

    assert decode_file_header(bytes(data), "j") == HEADER


@pytest.mark.parametrize("version", [0, 4, 1 << 20])
def test_another_version_is_refused(version: int) -> None:
    rest = struct.pack(">QQQ", 3, 2, 1234)
    former = struct.pack(">8sII", b"PLSRJRNL", version, crc32c(rest)) + rest
    data = bytearray(HEADER.encode())
    data[8:12] = version.to_bytes(4, "big")

    for each in (former + bytes(30), bytes(data)):
        with pytest.raises(
            FormatVersionError,
            match=f"journal/1: journal has format version {version}, "
            "this pulsar_py reads version 3",
        ):
            decode_file_header(each, "journal/1")


def test_a_lost_header_is_stood_in_for_by_one_of_each_version() -> None:
    assert [(each.file_id, each.generation, each.version) for each in lost_headers(7)] == [
        (7, None, 3),
        (7, None, 1),
    ]
