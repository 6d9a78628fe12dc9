"""A few seeds of two brokers over hostile stores; `python -m tests.simulation --brokers 0 5000`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.simulation.brokers_model import INVARIANTS
from tests.simulation.brokers_run import MINIMA, run_seed

SEEDS_COUNT = 5


def test_seeds_hold_and_have_enough_of_everything() -> None:
    held: Counter[str] = Counter()
    for seed in range(SEEDS_COUNT):
        outcome = run_seed(seed)
        assert all(outcome.met[name] >= least for name, least in MINIMA.items())
        held += outcome.held
    assert all(held[name] for name in INVARIANTS)


def digest(seed: int, salt: int) -> str:
    command = [sys.executable, "-m", "tests.simulation", "--brokers", str(seed), "1"]
    return subprocess.run(
        [*command, "--processes", "1"],
        env={**os.environ, "PYTHONHASHSEED": str(salt)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()[0]


def test_a_seed_replays_exactly_in_another_process() -> None:
    first = digest(5, 1)
    assert first.startswith("seed 5: ")
    assert digest(5, 2) == first


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 600, 20))
def test_many_seeds_hold(first: int) -> None:
    for seed in range(first, first + 20):
        run_seed(seed)
