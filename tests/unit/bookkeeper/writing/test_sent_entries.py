from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.bookkeeper.writing.sent_entries import (
    ENTRY_OVERHEAD_BYTES,
    SentEntries,
    SentRun,
)

HEAD = b"head"


def run(first: int, payloads: Sequence[bytes], before_bytes: int, *, is_joined: bool) -> SentRun:
    pieces = [piece for payload in payloads for piece in (HEAD, payload)]
    lengths = list(accumulate(map(len, payloads), initial=before_bytes))[1:]
    return SentRun(
        first,
        [b"".join(pieces)] if is_joined else pieces,
        before_bytes=before_bytes,
        lengths_bytes=lengths,
        payload_bytes=lengths[-1] - before_bytes,
    )


def filled(runs: Sequence[Sequence[bytes]], *, is_joined: bool) -> SentEntries:
    """Runs with these payloads, from entry 10 of a ledger of 1,000 bytes on."""
    entries, first, before_bytes = SentEntries(len(HEAD)), 10, 1000
    for payloads in runs:
        entries.append(run(first, payloads, before_bytes, is_joined=is_joined))
        first += len(payloads)
        before_bytes += sum(map(len, payloads))
    return entries


@pytest.mark.parametrize("is_joined", [True, False])
def test_each_entry_of_a_run_has_its_frame(is_joined: bool) -> None:  # noqa: FBT001
    runs = [[b"a", b"", b"ccc"], [b"dd"], [b"ee", b"ff"]]
    entries = filled(runs, is_joined=is_joined)
    payloads = [payload for each in runs for payload in each]
    for entry_id, payload in enumerate(payloads, 10):
        assert b"".join(entries.frame(entry_id)) == HEAD + payload
        assert entries.payload(entry_id) == payload
    assert [entries.length_bytes(each) for each in range(10, 16)] == [
        1001, 1001, 1004, 1006, 1008, 1010
    ]  # fmt: skip
    assert entries.payload(9) is None
    assert entries.payload(16) is None


def test_a_run_is_held_until_its_last_entry_is_released() -> None:
    entries = filled([[b"a", b"bb"], [b"ccc"], [b"d", b"e"]], is_joined=True)
    assert entries.held_bytes == 8 + 5 * ENTRY_OVERHEAD_BYTES
    assert entries.release(range(10, 11)) == 0
    assert entries.payload(10) == b"a"
    assert entries.release(range(11, 14)) == 6 + 3 * ENTRY_OVERHEAD_BYTES
    assert entries.payload(11) is None
    assert entries.payload(13) == b"d"
    assert entries.release([]) == entries.release(range(0)) == 0
    assert entries.release([14]) == 2 + 2 * ENTRY_OVERHEAD_BYTES
    assert not entries.held_bytes


@given(
    counts=st.lists(st.integers(1, 4), max_size=6),
    steps=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), max_size=20),
)
def test_entries_may_be_released_in_any_order(
    counts: list[int], steps: list[tuple[int, int]]
) -> None:
    entries = filled([[b"xy"] * count for count in counts], is_joined=True)
    left = list(range(10, 10 + sum(counts)))
    given_back, all_bytes = 0, entries.held_bytes
    for place, count in steps:
        chosen = left[place : place + count]
        is_run = bool(chosen) and chosen[-1] - chosen[0] + 1 == len(chosen)
        given_back += entries.release(range(chosen[0], chosen[-1] + 1) if is_run else chosen)
        del left[place : place + count]
        assert all(entries.payload(each) == b"xy" for each in left)
        assert given_back + entries.held_bytes == all_bytes
    given_back += entries.release(left[::-1])
    assert (given_back, entries.held_bytes) == (all_bytes, 0)
