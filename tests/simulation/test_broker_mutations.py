"""Two brokers over hostile stores show each bug of a list; the seed that was seen to comes first."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.simulation.broker_mutations import MUTATIONS
from tests.simulation.brokers_run import SeedError, run_seed

FOUND_WITHIN_SEEDS = 500

FIRST_SEEDS = {
    "owned_until_given_up": 2,
}
"""Where it is not 0. They move with every change of what brokers do; then others are found."""

QUICK = ("owned_until_given_up", "owners_are_deleted_without_version")


def first_failure(name: str) -> int | None:
    hint = FIRST_SEEDS.get(name, 0)
    for seed in chain((hint,), range(FOUND_WITHIN_SEEDS)):
        try:
            with MUTATIONS[name]():
                run_seed(seed)
        except SeedError:
            return seed
    return None


@pytest.mark.parametrize("name", QUICK)
def test_a_mutation_is_found(name: str) -> None:
    assert first_failure(name) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MUTATIONS if name not in QUICK])
def test_each_mutation_is_found(name: str) -> None:
    assert first_failure(name) is not None
