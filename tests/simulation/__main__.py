"""`python -m tests.simulation --seeds 1000 --first 0`: run seeds, print what was checked.

`--ledgers FIRST COUNT` runs seeds of stores and managed ledgers over the hostile stores.
"""

# ruff: noqa: T201 - it prints what it found.

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.ledger_judge import INVARIANTS as LEDGER_INVARIANTS
from tests.simulation.ledger_run import run_ledger_seed
from tests.simulation.model import INVARIANTS
from tests.simulation.run import Outcome, SeedError, run_seed


def attempt(seed: int) -> Outcome | str:
    try:
        return run_seed(seed)
    except SeedError as error:
        return str(error)


def attempt_ledgers(seed: int) -> Outcome | str:
    try:
        return run_ledger_seed(seed)
    except SeedError as error:
        return str(error)


def main() -> int:
    """Returns 1 if a seed failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--ledgers", nargs=2, type=int, metavar=("FIRST", "COUNT"))
    arguments = parser.parse_args()
    work, names = attempt, INVARIANTS
    if arguments.ledgers:
        work, names = attempt_ledgers, LEDGER_INVARIANTS
        arguments.first, arguments.seeds = arguments.ledgers
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    held: Counter[str] = Counter(dict.fromkeys(names, 0))
    faults: Counter[str] = Counter()
    failed = 0
    begun = time.perf_counter()
    with ProcessPoolExecutor(arguments.processes) as pool:
        for seed, outcome in zip(seeds, pool.map(work, seeds, chunksize=10), strict=True):
            if isinstance(outcome, str):
                failed += 1
                print(outcome, flush=True)
                continue
            held.update(outcome.held)
            faults.update(outcome.faults)
            if arguments.seeds == 1:
                print(f"seed {seed}: {outcome.digest}")
    for title, counts in (("held", held), ("met", faults)):
        for name, count in counts.items():
            print(f"{title} {count:>10,}  {name}")
    seconds = time.perf_counter() - begun
    print(f"seeds {seeds.start} to {seeds.stop - 1}: {failed} failed, {seconds:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
