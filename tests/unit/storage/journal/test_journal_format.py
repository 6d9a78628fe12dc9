from __future__ import annotations

from array import array

from pulsar_py.common.hashing import crc32c
from pulsar_py.storage.journal.file_header import FileHeader
from pulsar_py.storage.journal.journal_format import (
    BLOCK_HEADER_BYTES,
    Section,
    block_length,
    decode_block,
    encode_block,
)
from pulsar_py.storage.shared.ledger_record import TOMBSTONE, LedgerRecord
from pulsar_py.storage.shared.location import Location


def section(ledger_id: int, first: int, entries: list[bytes]) -> Section:
    lengths = array("I", map(len, entries))
    return Section(ledger_id, first, entries, lengths, sum(lengths))


SECTIONS = [
    section(1, 0, [b"a", b"", b"ccc"]),
    section(2, 5, [b"x" * 5000, b"y" * 3000]),
]
RECORDS = [(3, LedgerRecord(custom_metadata={"k": b"v"})), (4, TOMBSTONE)]


LIFE = FileHeader(7, generation=99)


def block(life: FileHeader = LIFE, offset: int = 64) -> bytes:
    records = [(ledger_id, record.encode()) for ledger_id, record in RECORDS]
    buffers, length = encode_block(life, offset, SECTIONS, records)
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
    buffers, _ = encode_block(LIFE, 64, SECTIONS, [])

    assert [b for b in buffers if b is SECTIONS[1].entries[0]]


def test_any_flipped_byte_fails_the_checksum() -> None:
    data = block()
    for at in range(0, len(data), 13):
        damaged = bytearray(data)
        damaged[at] ^= 1
        # What stands before the checksum is checked by whoever looks for blocks.
        assert at < 4 or decode_block(bytes(damaged)) is None


def test_a_block_belongs_to_its_life_and_offset() -> None:
    data = b"junk" + block()

    assert block_length(data, 4, LIFE, 64) == len(data) - 4
    assert block_length(data, 4, FileHeader(8, generation=99), 64) is None
    assert block_length(data, 4, FileHeader(7, generation=98), 64) is None
    assert block_length(data, 4, FileHeader(7, generation=None), 64) == len(data) - 4
    assert block_length(data, 4, LIFE, 68) is None
    assert block_length(data, 3, LIFE, 64) is None
    assert block_length(data[: 4 + BLOCK_HEADER_BYTES - 1], 4, LIFE, 64) is None


def test_zeros_fill_up_what_is_before_the_next_block() -> None:
    life = FileHeader(7, generation=99, block_bytes=4096)
    data = block(life)
    length = block_length(data, 0, life, 64)

    assert length is not None
    assert (64 + len(data)) % 4096 == 0
    assert length > len(data) - 4096
    assert not any(data[length:])
    assert decode_block(data[:length]) is not None


def test_the_checksum_begins_with_the_generation() -> None:
    one, other = block(), block(FileHeader(7, generation=100))

    # The same bytes of another life fail: what one has behind its generation, the other has, too.
    assert one[16:] == other[16:]
    assert decode_block(one[:8] + other[8:]) is None
    assert one[4:8] != other[4:8]


def test_blocks_of_the_former_version_are_read() -> None:
    whole = block()
    rest = whole[16:]  # without the generation
    data = b"JBLK" + crc32c(rest).to_bytes(4, "big") + rest
    former = FileHeader(7, version=1)

    assert block_length(data, 0, former, 64) == len(data)
    assert block_length(data, 0, LIFE, 64) is None
    assert block_length(whole, 0, former, 64) is None
    decoded = decode_block(data)
    assert decoded is not None
    assert [s.entries for s in decoded.sections] == [s.entries for s in SECTIONS]
    assert list(decoded.records) == RECORDS


def test_a_section_in_entry_logs_has_its_places_in_the_block_and_not_its_bytes() -> None:
    places = [Location(9, 1 << 33, 5100, 1), Location(9, 1 << 34, 3100, 1)]
    large = section(2, 5, [b"x" * 5000, b"y" * 3000])
    large.runs = places
    buffers, length = encode_block(LIFE, 64, [SECTIONS[0], large], [])
    decoded = decode_block(b"".join(buffers))

    assert length < 300
    assert decoded is not None
    small, found = decoded.sections
    assert small.entries == SECTIONS[0].entries
    assert (found.entries, found.runs, found.size_bytes) == ([], places, 8000)
    assert found.last_entry_id == 6
    assert list(found.placed_runs()) == [(5, places[0]), (6, places[1])]
