"""`python -m tests.simulation --seeds 1000 --first 0`: run seeds, print what was checked.

`--brokers FIRST COUNT` runs seeds of two brokers over hostile stores, `--ledgers FIRST COUNT` those
of managed ledgers alone over the same stores; else they are of one store over a disk.
"""

# ruff: noqa: T201 - it prints what it found.

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from tests.simulation import brokers_model, brokers_run, ledger_judge, ledger_run, model, run

Attempt = Callable[[int], tuple[Counter[str], Counter[str], str] | str]
"""Runs a seed: what held, what it met, its digest; or why it failed, and how to repeat that."""


def attempt(seed: int) -> tuple[Counter[str], Counter[str], str] | str:
    _collect(seed)
    try:
        outcome = run.run_seed(seed)
    except run.SeedError as error:
        return str(error)
    return outcome.held, outcome.faults, outcome.digest


def attempt_brokers(seed: int) -> tuple[Counter[str], Counter[str], str] | str:
    try:
        outcome = brokers_run.run_seed(seed)
    except brokers_run.SeedError as error:
        return str(error)
    return outcome.held, outcome.met, outcome.digest


def attempt_ledgers(seed: int) -> tuple[Counter[str], Counter[str], str] | str:
    _collect(seed)
    try:
        outcome = ledger_run.run_ledger_seed(seed)
    except run.SeedError as error:
        return str(error)
    return outcome.held, outcome.faults, outcome.digest


def _collect(seed: int) -> None:
    """Collect what former seeds left: a world is sealed against the collector, which else waits."""
    if not seed % 50:
        gc.collect()


def _expect_unread_futures() -> None:
    """Nobody reads the futures of a process that was killed, which asyncio logs as errors."""
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


def main() -> int:
    """Returns 1 if a seed failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--brokers", type=int, nargs=2, metavar=("FIRST", "COUNT"))
    parser.add_argument("--ledgers", type=int, nargs=2, metavar=("FIRST", "COUNT"))
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.ledgers is not None:
        first, count = arguments.ledgers
        seeds = range(first, first + count)
        return play(attempt_ledgers, seeds, ledger_judge.INVARIANTS, arguments.processes)
    if arguments.brokers is None:
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        return play(attempt, seeds, model.INVARIANTS, arguments.processes)
    first, count = arguments.brokers
    seeds = range(first, first + count)
    return play(attempt_brokers, seeds, brokers_model.INVARIANTS, arguments.processes)


def play(attempts: Attempt, seeds: range, invariants: tuple[str, ...], processes: int) -> int:
    """Run seeds; returns 1 if one failed."""
    held: Counter[str] = Counter(dict.fromkeys(invariants, 0))
    met: Counter[str] = Counter()
    failed = 0
    begun = time.perf_counter()
    with ProcessPoolExecutor(processes, initializer=_expect_unread_futures) as pool:
        for seed, outcome in zip(seeds, pool.map(attempts, seeds, chunksize=10), strict=True):
            if isinstance(outcome, str):
                failed += 1
                print(outcome, flush=True)
                continue
            held.update(outcome[0])
            met.update(outcome[1])
            if len(seeds) == 1:
                print(f"seed {seed}: {outcome[2]}")
    for title, counts in (("held", held), ("met", met)):
        for name, count in counts.items():
            print(f"{title} {count:>10,}  {name}")
    seconds = time.perf_counter() - begun
    print(f"seeds {seeds.start} to {seeds.stop - 1}: {failed} failed, {seconds:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
