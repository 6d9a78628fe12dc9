from __future__ import annotations

import pytest

from pulsar_py.bookkeeper.placement.ensemble_sizing import fitting
from pulsar_py.ledgers.store import LedgerOptions

Sizes = tuple[int, int, int]


def sizes(policy: Sizes, there: int, steady: int = 0, *, is_reduced: bool = False) -> Sizes | None:
    options = LedgerOptions(*policy, password=b"kept")
    found = fitting(options, there=there, steady=steady, is_reduced=is_reduced)
    if found is None:
        return None
    assert found.password == b"kept"
    return found.ensemble_size, found.write_quorum_size, found.ack_quorum_size


@pytest.mark.parametrize(
    ("policy", "by_count"),
    [
        ((3, 3, 2), [None, None, (2, 2, 2), (3, 3, 2), (3, 3, 2)]),
        ((3, 2, 2), [None, None, (2, 2, 2), (3, 2, 2), (3, 2, 2)]),
        ((4, 3, 1), [None, (1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 3, 1)]),
        ((2, 2, 2), [None, None, (2, 2, 2), (2, 2, 2), (2, 2, 2)]),
        ((1, 1, 1), [None, (1, 1, 1)]),
    ],
)
def test_an_ensemble_is_as_large_as_there_are_bookies_down_to_the_ack_quorum(
    policy: Sizes, by_count: list[Sizes | None]
) -> None:
    assert [sizes(policy, there) for there in range(len(by_count))] == by_count


def test_a_policy_that_was_not_kept_waits_for_steady_bookies() -> None:
    policy = (4, 3, 2)
    assert sizes(policy, 5, steady=3, is_reduced=True) == (3, 3, 2)
    assert sizes(policy, 5, steady=4, is_reduced=True) == policy
    assert sizes(policy, 5, steady=3) == policy, "it was kept the last time"


def test_without_steady_bookies_the_ack_quorum_is_taken_from_those_there_are() -> None:
    assert sizes((3, 3, 2), 3, steady=0, is_reduced=True) == (2, 2, 2)
    assert sizes((3, 3, 2), 1, steady=1, is_reduced=True) is None
