from __future__ import annotations

import tracemalloc
from array import array
from collections.abc import Sequence

import pytest

from pulsar_py.storage.packed_entries import PackedEntries
from pulsar_py.storage.read_cache import ENTRY_OVERHEAD_BYTES
from pulsar_py.storage.write_cache import cut

SAME = [b"%03d" % number for number in range(10)]
DIFFERENT = [b"", b"a", b"bb", b"", b"cccc", b"d"]


def packed(entries: Sequence[bytes]) -> PackedEntries:
    return PackedEntries(b"head" + b"".join(entries) + b"tail", 4, array("I", map(len, entries)))


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


def test_tiny_entries_cost_what_the_cache_counts() -> None:
    lengths = array("I", [0, 1] * 50_000)
    data = bytes(sum(lengths))
    tracemalloc.start()
    try:
        found = PackedEntries(data, 0, lengths)
        cost, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 100_000
    assert cost < 1.2 * ENTRY_OVERHEAD_BYTES * len(found)


@pytest.mark.parametrize("place", [10, -11])
def test_a_place_outside_is_refused(place: int) -> None:
    with pytest.raises(IndexError):
        packed(SAME)[place]
