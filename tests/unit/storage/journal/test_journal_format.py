from __future__ import annotations

from array import array

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.journal.journal_format import (
    BLOCK_HEADER_BYTES,
    FILE_HEADER_BYTES,
    FileHeader,
    Section,
    block_length,
    decode_block,
    decode_file_header,
    encode_block,
)
from pulsar_py.storage.shared.ledger_record import TOMBSTONE, LedgerRecord


def section(ledger_id: int, first: int, entries: list[bytes]) -> Section:
    lengths = array("I", map(len, entries))
    return Section(ledger_id, first, entries, lengths, sum(lengths))


SECTIONS = [
    section(1, 0, [b"a", b"", b"ccc"]),
    section(2, 5, [b"x" * 5000, b"y" * 3000]),
]
RECORDS = [(3, LedgerRecord(custom_metadata={"k": b"v"})), (4, TOMBSTONE)]


def block(file_id: int = 7, offset: int = 40) -> bytes:
    buffers, length = encode_block(file_id, offset, SECTIONS, RECORDS)
    data = b"".join(buffers)
    assert len(data) == length
    return data


def test_a_block_is_read_back() -> None:
    decoded = decode_block(block())

    assert decoded is not None
    assert [(s.ledger_id, s.first_entry_id, s.entries) for s in decoded.sections] == [
        (s.ledger_id, s.first_entry_id, s.entries) for s in SECTIONS
    ]
    assert list(decoded.records) == RECORDS
    assert decoded.sections[1].last_entry_id == 6


def test_large_entries_are_written_without_a_copy() -> None:
    buffers, _ = encode_block(1, 40, SECTIONS, [])

    assert [b for b in buffers if b is SECTIONS[1].entries[0]]


def test_any_flipped_byte_fails_the_checksum() -> None:
    data = block()
    for at in range(0, len(data), 13):
        damaged = bytearray(data)
        damaged[at] ^= 1
        # What stands before the checksum is checked by whoever looks for blocks.
        assert at < 4 or decode_block(bytes(damaged)) is None


def test_a_block_belongs_to_its_file_and_offset() -> None:
    data = b"junk" + block(7, 40)

    assert block_length(data, 4, 7, 40) == len(data) - 4
    assert block_length(data, 4, 8, 40) is None
    assert block_length(data, 4, 7, 44) is None
    assert block_length(data, 3, 7, 40) is None
    assert block_length(data[: 4 + BLOCK_HEADER_BYTES - 1], 4, 7, 40) is None


def test_the_file_header_is_read_back_and_checked() -> None:
    data = FileHeader(3, 2, 1234).encode()

    assert len(data) == FILE_HEADER_BYTES
    assert decode_file_header(data + b"more", "j") == FileHeader(3, 2, 1234)
    assert decode_file_header(data[:-1], "j") is None
    assert decode_file_header(bytes(FILE_HEADER_BYTES), "j") is None
    assert decode_file_header(data[:-9] + b"x" + data[-8:], "j") is None


def test_another_version_is_refused() -> None:
    data = bytearray(FileHeader(3, 3, 0).encode())
    data[11] = 2

    with pytest.raises(
        CorruptDataError,
        match="journal/1: journal has format version 2, this pulsar_py reads version 1",
    ):
        decode_file_header(bytes(data), "journal/1")
