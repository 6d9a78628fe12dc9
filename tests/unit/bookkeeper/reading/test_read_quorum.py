from __future__ import annotations

from itertools import product

import pytest

from pulsar_py.bookkeeper.metadata.ledger_metadata import write_set
from pulsar_py.bookkeeper.reading.read_quorum import Coverage, EntryFate, EntrySearch

QUORUMS = [(e, w, a) for e in range(1, 6) for w in range(1, e + 1) for a in range(1, w + 1)]


@pytest.mark.parametrize(
    ("quorums", "known", "is_covered"),
    [
        ((3, 3, 2), (0, 1), True),  # one of three is down
        ((3, 3, 2), (0,), False),
        ((3, 3, 3), (0,), True),
        ((2, 2, 2), (1,), True),
        ((2, 2, 1), (1,), False),
        ((3, 2, 2), (0, 1), True),
        ((3, 2, 2), (0,), False),  # 1 and 2 could confirm an entry
        ((3, 2, 1), (0, 1), False),
        ((4, 2, 2), (0, 2), True),
        ((4, 2, 2), (0, 1), False),
        ((1, 1, 1), (), False),
        ((1, 1, 1), (0,), True),
    ],
)
def test_coverage(
    quorums: tuple[int, int, int], known: tuple[int, ...], *, is_covered: bool
) -> None:
    ensemble_size, write_quorum_size, ack_quorum_size = quorums
    coverage = Coverage(
        ensemble_size=ensemble_size,
        write_quorum_size=write_quorum_size,
        ack_quorum_size=ack_quorum_size,
    )
    for index in known:
        coverage.on_answer(index, is_known=True)
    assert coverage.is_covered == is_covered
    for index in set(range(ensemble_size)) - set(known):
        assert not coverage.is_over
        coverage.on_answer(index, is_known=False)
    assert coverage.is_over
    assert coverage.is_covered == is_covered


@pytest.mark.parametrize("quorums", QUORUMS, ids=str)
def test_what_is_covered_has_seen_everything_that_was_confirmed(
    quorums: tuple[int, int, int],
) -> None:
    """By brute force: wherever an ack quorum of any write set lies, one of those known is in it."""
    size, write_quorum_size, ack_quorum_size = quorums
    for known in product([False, True], repeat=size):
        coverage = Coverage(
            ensemble_size=size,
            write_quorum_size=write_quorum_size,
            ack_quorum_size=ack_quorum_size,
        )
        for index, is_known in enumerate(known):
            coverage.on_answer(index, is_known=is_known)
        unseen = any(
            sum(not known[index] for index in write_set(first, size, write_quorum_size))
            >= ack_quorum_size
            for first in range(size)
        )
        assert coverage.is_covered == (not unseen)


@pytest.mark.parametrize(
    ("ack_quorum_size", "answers", "fate"),
    [
        (2, "", EntryFate.UNDECIDED),
        (2, "+", EntryFate.FOUND),
        (2, "-", EntryFate.UNDECIDED),
        (2, "--", EntryFate.ABSENT),  # Qw - Qa + 1 = 2 of three
        (2, "-?", EntryFate.UNDECIDED),
        (2, "-?-", EntryFate.ABSENT),
        (2, "-??", EntryFate.UNKNOWN),
        (2, "???", EntryFate.UNKNOWN),
        (2, "-?+", EntryFate.FOUND),
        (3, "-", EntryFate.ABSENT),
        (3, "??-", EntryFate.ABSENT),
        (1, "--", EntryFate.UNDECIDED),
        (1, "--?", EntryFate.UNKNOWN),
        (1, "---", EntryFate.ABSENT),
    ],
)
def test_a_search_in_a_write_set_of_three(
    ack_quorum_size: int, answers: str, fate: EntryFate
) -> None:
    search = EntrySearch((2, 0, 1), ack_quorum_size=ack_quorum_size)
    asked = []
    for each in answers:
        assert search.fate is EntryFate.UNDECIDED
        asked.append(search.next_place())
        if each == "+":
            search.on_found()
        elif each == "-":
            search.on_absent()
    assert search.fate is fate
    assert asked == [2, 0, 1][: len(answers)]
