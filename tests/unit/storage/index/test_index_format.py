from __future__ import annotations

import pytest
from msgspec.structs import replace
from pyroaring import BitMap64

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.index.index_format import (
    PAGE_BYTES,
    SPARSE_BYTES,
    Footer,
    Page,
    SparseIndex,
    cut_pages,
    decode_ledger_set,
    encode_ledger_set,
    encode_page,
    record_key,
    run_key,
    sparse_entry,
    split_key,
)
from pulsar_py.storage.shared.location import Location

ITEMS = [
    (run_key(ledger, entry), b"%d/%d" % (ledger, entry))
    for ledger in (1, 300)
    for entry in (0, 7, 2**40)
]


def test_keys_sort_by_ledger_then_record_then_entry() -> None:
    keys = [
        record_key(1),
        run_key(1, 0),
        run_key(1, 255),
        run_key(1, 256),
        record_key(2),
        record_key(256),
    ]

    assert sorted(keys) == keys
    assert split_key(run_key(5, 9)) == (5, 9)
    assert split_key(record_key(5)) == (5, -1)


def test_a_location_is_read_back() -> None:
    location = Location(3, 2**40, 1000, 17)
    assert Location.decode(location.encode()) == location
    assert len(location.encode()) == 20


def test_a_page_finds_the_last_key_not_above() -> None:
    page = Page(encode_page(ITEMS, 64), "p", 64)

    assert list(page.items()) == ITEMS
    assert page.floor(record_key(0)) == -1
    for index, (key, value) in enumerate(ITEMS):
        assert page.floor(key) == index
        assert page.floor(key + b"x") == index
        assert (page.key(index), page.value(index)) == (key, value)


def test_a_damaged_or_misplaced_page_is_reported() -> None:
    data = encode_page(ITEMS, 64)
    for damaged, offset in ((data[:-1], 64), (b"x" + data[1:], 64), (data, 128), (b"", 64)):
        with pytest.raises(CorruptDataError, match=f"index/1: offset {offset}: "):
            Page(damaged, "index/1", offset)


def test_pages_are_cut_at_their_size_and_take_what_is_bigger() -> None:
    small = [(run_key(1, entry), bytes(20)) for entry in range(300)]
    big = [(run_key(2, 0), bytes(PAGE_BYTES * 2)), (run_key(2, 1), b"")]

    pages = list(cut_pages(small + big))

    assert [item for page in pages for item in page] == small + big
    assert all(len(encode_page(page, 0)) <= PAGE_BYTES for page in pages if big[0] not in page)


def test_the_sparse_index_finds_pages_and_their_extent() -> None:
    sparse = SparseIndex(
        b"".join(sparse_entry(record_key(k), o) for k, o in ((5, 0), (9, 100))), 250
    )

    assert [sparse.page_for(record_key(k)) for k in (4, 5, 8, 9, 100)] == [-1, 0, 0, 1, 1]
    assert (sparse.extent(0), sparse.extent(1)) == ((0, 100), (100, 150))


def test_the_footer_is_read_back_and_checked() -> None:
    footer = Footer(table_id=3, sparse_offset=8192, pages_count=2, keys_count=99, sparse_checksum=7)
    data = footer.encode()

    assert Footer.decode(data, "p") == footer
    with pytest.raises(CorruptDataError, match="end is missing"):
        Footer.decode(data[1:], "p")
    with pytest.raises(CorruptDataError, match="checksum"):
        Footer.decode(data[:20] + b"\xff" + data[21:], "p")
    with pytest.raises(CorruptDataError, match="version 2, this pulsar_py reads version 1"):
        Footer.decode(data[:11] + b"\x02" + data[12:], "p")


def test_a_set_of_ledgers_is_read_back_and_checked() -> None:
    ledger_ids = BitMap64([1, 2, 3, 2**40])
    data = encode_ledger_set(ledger_ids)

    assert decode_ledger_set(data, "p", 7) == ledger_ids
    for damaged in (data[:-1], b"\0" * 3, b"x" + data[1:]):
        with pytest.raises(CorruptDataError, match="p: offset 7: the set of ledgers"):
            decode_ledger_set(damaged, "p", 7)


def test_the_footer_says_where_the_set_of_ledgers_is() -> None:
    footer = Footer(3, sparse_offset=8192, pages_count=2, keys_count=9, sparse_checksum=7)

    assert Footer.decode(footer.encode(), "p").ledger_set_bytes == 0
    longer = replace(footer, ledger_set_bytes=50)
    assert Footer.decode(longer.encode(), "p") == longer
    assert longer.ledger_set_offset == 8192 + 2 * SPARSE_BYTES
