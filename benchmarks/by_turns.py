"""Compare two versions of the broker: `python -m benchmarks.by_turns --before TREE`.

TREE is a checkout of the version before, such as `git worktree add ../before COMMIT` makes. For
each load both brokers run, and take turns for some rounds; who begins changes from round to round.
Each round gives one ratio, after / before. Printed are the median of the ratios and the interval
that holds it in 95 of 100 resamplings, so that the drift of a machine and single bad rounds do not
pass for a difference. Run it on a machine that does nothing else.

With `--megabytes-before` both get so much before the first round, so that they use what a broker
uses that has run for a while: journal files that were written before, tables and entry logs.

A load that goes by the rate that a broker reaches has the same one for both: half of what a
consumer of the version before has just kept up with.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.__main__ import LOADS, Load, run_load
from benchmarks.limited_rows import say_how_it_ends, those_named
from benchmarks.loads import Figures, durable_publish, half_rate
from benchmarks.targets import Target, start_ours

_RESAMPLINGS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio after / before of one figure over all rounds."""

    median: float
    low: float
    """Lower end of the interval of 95 %."""
    high: float
    """Upper end."""
    before: float
    """The median of the version before, in the figure's own unit."""
    after: float
    """That of this version."""


def ratio_of(before: Sequence[float], after: Sequence[float], *, seed: int = 0) -> Ratio:
    """The median of the rounds' ratios, and its interval by resampling the rounds.

    Raises:
        ValueError: The two differ in length, or are empty.
    """
    if len(before) != len(after) or not before:
        raise ValueError(
            f"{len(before)} rounds before and {len(after)} after: as many of both, at least one"
        )
    ratios = [late / early for early, late in zip(before, after, strict=True)]
    resampler = random.Random(seed)
    medians = sorted(
        statistics.median(resampler.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLINGS)
    )
    return Ratio(
        statistics.median(ratios),
        medians[_RESAMPLINGS * 25 // 1000],
        medians[_RESAMPLINGS * 975 // 1000],
        statistics.median(before),
        statistics.median(after),
    )


def measure(
    load: Load, before: Target, after: Target, rounds: int, seconds: float
) -> dict[str, Ratio]:
    """The ratio of each figure of a load."""
    taken: dict[str, list[Figures]] = {"before": [], "after": []}
    order = [("before", before), ("after", after)]
    for _ in range(rounds):
        for name, target in order:
            taken[name].append(run_load(load, target, seconds))
        order.reverse()
    rows = {name: [figures.as_dict() for figures in found] for name, found in taken.items()}
    return {
        figure: ratio_of(
            [row[figure] for row in rows["before"]], [row[figure] for row in rows["after"]]
        )
        for figure in rows["before"][0]
        if all(row.get(figure) for row in rows["before"] + rows["after"])
    }


def fill(target: Target, megabytes: int) -> None:
    """Publish so much, in entries of 1 KB."""
    total_bytes = megabytes << 20
    uvloop.run(
        durable_publish(target, size_bytes=1024, connections=1, seconds=0, total_bytes=total_bytes)
    )


def at_one_rate(load: Load, before: Target) -> Load:
    """The load at half of what the version before takes, if its rate depends on the broker."""
    run_at = load.run_at
    if run_at is None:
        return load
    rate = uvloop.run(half_rate(before))
    return replace(load, run=lambda target, seconds: run_at(target, seconds, rate))


def main() -> None:
    """Measure what the arguments ask for, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.by_turns", description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="a checkout of that version")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=3.0, help="a load's time in a round")
    parser.add_argument("--loads", default="", help="only loads whose name contains this")
    parser.add_argument(
        "--megabytes-before", type=int, default=0, help="what is published before the rounds"
    )
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    arguments = parser.parse_args()
    say_how_it_ends()
    chosen = those_named("--loads", arguments.loads, LOADS, lambda load: load.name)
    found: dict[str, dict[str, Ratio]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        for load in chosen:
            settings = dict(load.settings)
            is_tls = load.is_tls
            before = start_ours(directory, settings, tree=arguments.before, is_tls=is_tls)
            after = start_ours(directory, settings, is_tls=is_tls)
            try:
                if arguments.megabytes_before:
                    fill(before, arguments.megabytes_before)
                    fill(after, arguments.megabytes_before)
                found[load.name] = measure(
                    at_one_rate(load, before), before, after, arguments.rounds, arguments.seconds
                )
            finally:
                before.stop()
                after.stop()
            print(load.name)
            for figure, ratio in found[load.name].items():
                print(
                    f"    {figure:<26} {ratio.before:12.2f} -> {ratio.after:12.2f}   "
                    f"{ratio.median:.3f} ({ratio.low:.3f} to {ratio.high:.3f})",
                    flush=True,
                )
    if arguments.json is not None:
        rows = {
            load: {name: asdict(ratio) for name, ratio in ratios.items()}
            for load, ratios in found.items()
        }
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
