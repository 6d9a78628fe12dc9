"""Ack sets."""

from __future__ import annotations

import pytest

from pulsar_py.common import ack_set
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.batch_deleted_indexes import BatchDeletedIndexes


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, []), (1, [1]), (3, [7]), (63, [2**63 - 1]), (64, [-1]), (65, [-1, 1]), (128, [-1, -1])],
)
def test_a_fresh_batch_has_a_bit_for_each_message(size: int, words: list[int]) -> None:
    assert ack_set.full_words(size) == words
    assert ack_set.count(words) == size
    assert list(ack_set.indexes(words)) == list(range(size))


def test_acknowledging_index_0_of_3_sends_6() -> None:
    assert ack_set.after_acknowledging(0, 3) == [6]


def test_seeking_to_an_index_keeps_it_and_what_follows() -> None:
    assert ack_set.from_index_on(1, 3) == [6]
    assert ack_set.from_index_on(64, 66) == [0, 3]
    assert ack_set.from_index_on(3, 3) == []


def test_words_may_be_signed_or_unsigned() -> None:
    assert ack_set.to_bits([-1]) == ack_set.to_bits([2**64 - 1]) == 2**64 - 1
    assert ack_set.to_bits([-1, 2**64 - 1]) == 2**128 - 1
    assert ack_set.to_words(2**64 - 1) == [-1]


def test_zero_words_at_the_end_are_left_out() -> None:
    assert ack_set.to_words(ack_set.to_bits([5, 0, 0])) == [5]
    assert ack_set.to_words(0) == []


def test_combining_two_acknowledgements_leaves_what_waits_in_both() -> None:
    assert ack_set.intersect([6], [5]) == [4]
    assert ack_set.intersect([1], [2]) == []
    assert ack_set.intersect([-1, 1], [2]) == [2]


def test_a_batch_is_done_when_no_bit_is_set() -> None:
    assert ack_set.is_empty([])
    assert ack_set.is_empty([0, 0])
    assert not ack_set.is_empty([0, 1])


def test_indexes_and_words_are_the_same() -> None:
    assert ack_set.from_indexes([0, 63, 64]) == [1 - 2**63, 1]
    assert list(ack_set.indexes([1 - 2**63, 1])) == [0, 63, 64]


def test_longest_ack_set_has_a_place_in_a_stored_cursor() -> None:
    bits = ack_set.to_bits([-1] * ack_set.MAX_WORDS)
    batches = BatchDeletedIndexes()
    batches.put(Position(1, 1), bits)
    again = BatchDeletedIndexes()
    again.merge_page((1, 0), batches.encode_page((1, 0))[0])
    assert again.get(Position(1, 1)) == bits
