from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.metadata.documents import equal_boundaries
from pulsar_py.server.namespaces.bundles import FULL_UPPER, Bundles, topic_hash

FOUR = Bundles(equal_boundaries(4))


@pytest.mark.parametrize(
    ("local_name", "hash_value", "index"),
    [
        ("my-topic", 0x2BAD45F7, 0),
        ("my-topic-partition-1", 0x4A4C72A3, 1),
        ("orders", 0xB135B9DC, 2),
    ],
)
def test_vectors_of_the_sheet(local_name: str, hash_value: int, index: int) -> None:
    name = f"persistent://public/default/{local_name}"
    assert topic_hash(name) == hash_value
    assert FOUR.bundle_of(name) == FOUR.names[index]


def test_names_and_ends() -> None:
    assert FOUR.names == [
        "0x00000000_0x40000000",
        "0x40000000_0x80000000",
        "0x80000000_0xc0000000",
        "0xc0000000_0xffffffff",
    ]
    assert FOUR.bundle_at(0x3FFFFFFF) == FOUR.names[0]
    assert FOUR.bundle_at(0x40000000) == FOUR.names[1]
    assert FOUR.bundle_at(0xFFFFFFFF) == FOUR.names[3]


@given(st.integers(0, 0xFFFFFFFF), st.integers(1, 128))
def test_each_hash_is_in_exactly_one_bundle(hash_value: int, count: int) -> None:
    bundles = Bundles(equal_boundaries(count))
    name = bundles.bundle_at(hash_value)
    lower, upper = (int(part, 16) for part in name.split("_"))
    assert lower <= hash_value < upper or hash_value == upper == 0xFFFFFFFF
    assert name in bundles.names


@pytest.mark.parametrize("numbers", [(), (0,), (0, 5), (1, 0xFFFFFFFF), (0, 7, 7, 0xFFFFFFFF)])
def test_boundaries_that_leave_gaps_are_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not cover"):
        Bundles(numbers)


def test_one_bundle_is_cut_and_the_others_stay() -> None:
    whole = Bundles((0, 0x80000000, FULL_UPPER))
    parts = whole.split("0x80000000_0xffffffff", [0xC0000000, 0xA0000000])
    assert parts.boundaries == (0, 0x80000000, 0xA0000000, 0xC0000000, FULL_UPPER)
    for name, place in (("0x00000000_0x40000000", 1), ("0x00000000_0x80000000", 0x80000000)):
        with pytest.raises(ValueError, match="bundle"):
            whole.split(name, [place])
    with pytest.raises(ValueError, match="not places"):
        whole.split("0x80000000_0xffffffff", [FULL_UPPER])
