"""The simulation of ledgers over hostile stores finds each bug that is put back."""

from __future__ import annotations

import pytest

from tests.simulation.findings import is_finding
from tests.simulation.ledger_mutations import FOUND_BY, MUTATIONS
from tests.simulation.ledger_run import run_ledger_seed
from tests.simulation.run import SeedError

FOUND_WITHIN_SEEDS = 500


def is_found(name: str, seed: int) -> bool:
    with MUTATIONS[name]():
        try:
            run_ledger_seed(seed)
        except SeedError as error:
            return is_finding(error)
    return False


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_found(name: str) -> None:
    """By the seed that is known to; where calls changed since, by another."""
    seeds = (FOUND_BY[name], *range(FOUND_WITHIN_SEEDS))

    assert any(is_found(name, seed) for seed in seeds)


def test_without_a_mutation_these_seeds_find_nothing() -> None:
    for seed in sorted(set(FOUND_BY.values())):
        run_ledger_seed(seed)
