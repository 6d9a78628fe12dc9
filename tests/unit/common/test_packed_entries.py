from __future__ import annotations

import tracemalloc
from array import array
from collections.abc import Sequence

import pytest

from pulsar_py.common.packed_entries import LENT_BYTES, PackedEntries
from pulsar_py.storage.entry_logs.read_cache import ENTRY_OVERHEAD_BYTES
from pulsar_py.storage.shared.write_cache import cut

SAME = [b"%03d" % number for number in range(10)]
DIFFERENT = [b"", b"a", b"bb", b"", b"cccc", b"d"]


def packed(entries: Sequence[bytes]) -> PackedEntries:
    return PackedEntries.of(b"head" + b"".join(entries) + b"tail", 4, array("I", map(len, entries)))


@pytest.mark.parametrize("entries", [SAME, DIFFERENT, [b""] * 3, [b"one"], []])
def test_it_is_a_sequence_of_its_entries(entries: list[bytes]) -> None:
    found = packed(entries)
    places = [None, *range(-len(entries) - 1, len(entries) + 2)]

    assert len(found) == len(entries)
    assert [*found] == entries
    assert [found[place] for place in range(-len(entries), len(entries))] == entries * 2
    for start in places:
        for stop in places:
            for step in (None, 2, -1):
                assert found[start:stop:step] == entries[start:stop:step]


@pytest.mark.parametrize("entries", [SAME, DIFFERENT, [b""] * 3, [b"one"]])
def test_what_fits_is_what_fits_of_a_list(entries: list[bytes]) -> None:
    found = packed(entries)
    for place in range(len(entries)):
        for count in range(1, len(entries) + 2):
            for max_bytes in range(40):
                expected = cut(entries, place, count, max_bytes)
                assert cut(found, place, count, max_bytes) == expected, (place, count, max_bytes)


@pytest.mark.parametrize("entries", [SAME, DIFFERENT, [b""] * 3, [b"one"], []])
def test_a_slice_is_one_too(entries: list[bytes]) -> None:
    for start in range(len(entries) + 1):
        for stop in range(start, len(entries) + 1):
            part, expected = packed(entries)[start:stop], entries[start:stop]
            assert isinstance(part, PackedEntries)
            assert part.size_bytes == sum(map(len, expected))
            assert part[1:3] == expected[1:3]
            assert part[0:0] == []
            for length in range(6):
                assert part.heads(length) == [entry[:length] for entry in expected]
            if expected:
                assert part.up_to(0, 2, 100) == expected[:2]
                assert part[-1] == expected[-1]


def test_it_is_equal_to_the_same_entries_alone() -> None:
    assert packed(SAME) == packed(SAME)
    assert packed(SAME) == SAME
    assert packed(SAME) != packed(SAME)[1:]
    assert packed(SAME) != packed([b"x", *SAME[1:]])
    assert packed(SAME) != 3


def test_tiny_entries_cost_what_the_cache_counts() -> None:
    lengths = array("I", [0, 1] * 50_000)
    data = bytes(sum(lengths))
    tracemalloc.start()
    try:
        found = PackedEntries.of(data, 0, lengths)
        cost, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 100_000
    assert cost < 1.2 * ENTRY_OVERHEAD_BYTES * len(found)


@pytest.mark.parametrize("place", [10, -11])
def test_a_place_outside_is_refused(place: int) -> None:
    with pytest.raises(IndexError):
        packed(SAME)[place]


@pytest.mark.parametrize("kind", [bytes, memoryview])
@pytest.mark.parametrize("sizes", [(LENT_BYTES,) * 3, (LENT_BYTES - 1, LENT_BYTES, 5)], ids=len)
def test_large_entries_are_views_of_what_was_read(kind, sizes: tuple[int, ...]) -> None:
    entries = [bytes((number,)) * size for number, size in enumerate(sizes)]
    data = kind(b"head" + b"".join(entries))
    found = PackedEntries.of(data, 4, array("I", sizes))

    assert [*found] == entries
    assert found[1] == entries[1]
    assert found.heads(9) == [entry[:9] for entry in entries]
    assert all(isinstance(head, bytes) for head in found.heads(9))
    if kind is memoryview or len(set(sizes)) == 1:
        is_view = [isinstance(entry, memoryview) for entry in found]
        assert is_view == [size >= LENT_BYTES for size in sizes]
