"""The simulation finds bugs: each of a list is found, and so is each left-out sync."""

from __future__ import annotations

import pytest

from tests.crash.storage.sync_mutations import SYNC_MUTATIONS
from tests.simulation.findings import is_finding
from tests.simulation.mutations import MUTATIONS
from tests.simulation.run import SeedError, run_seed

FOUND_WITHIN_SEEDS = 400


def first_failure(ignored_syncs: frozenset[str] = frozenset()) -> int | None:
    for seed in range(FOUND_WITHIN_SEEDS):
        try:
            run_seed(seed, ignored_syncs=ignored_syncs)
        except SeedError as error:
            if is_finding(error):
                return seed
    return None


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_found(name: str) -> None:
    with MUTATIONS[name]():
        assert first_failure() is not None


@pytest.mark.parametrize("name", SYNC_MUTATIONS)
def test_a_missing_sync_is_found(name: str) -> None:
    assert first_failure(frozenset({name})) is not None
