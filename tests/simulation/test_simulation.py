"""Some hundred seeds; `python -m tests.simulation --seeds 10000` runs as many as wanted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.simulation.machine import METADATA_FAULTS
from tests.simulation.model import INVARIANTS
from tests.simulation.run import run_seed

FAST_SEEDS_COUNT = 150
PIECES_COUNT = 8


def held_in(seeds: range) -> tuple[Counter[str], Counter[str]]:
    held: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for seed in seeds:
        outcome = run_seed(seed)
        held += outcome.held
        faults += outcome.faults
    return held, faults


def test_every_invariant_holds_under_every_fault() -> None:
    held, faults = held_in(range(FAST_SEEDS_COUNT))

    print("held:", dict(held), "met:", dict(faults))  # noqa: T201 - shown when it fails
    assert all(held[name] >= 20 for name in INVARIANTS), held
    kinds = ("crash", "full", "damage", "short read", "slow sync", "failed sync", *METADATA_FAULTS)
    for name in kinds:
        assert faults[name] >= 3, faults


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES_COUNT))
def test_every_invariant_holds_for_thousands_of_seeds(piece: int) -> None:
    first = 100_000 + 1_000 * piece
    held_in(range(first, first + 1_000))


def test_a_seed_replays_exactly() -> None:
    for seed in range(20):
        assert run_seed(seed).digest == run_seed(seed).digest


def test_a_seed_replays_exactly_in_another_process() -> None:
    script = (
        "from tests.simulation.run import run_seed; print([run_seed(s).digest for s in range(20)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1
