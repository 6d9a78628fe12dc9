# ruff: noqa: T201 - it talks to whoever runs it
"""`python -m tests.fuzz`: the targets, one after the other, for so many inputs each (entry point).

What went wrong is printed, and kept in `tests/fuzz/corpus/<target>/`, which later runs, and the suite,
feed first.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time

from tests.fuzz.kept import keep_wrong, kept
from tests.fuzz.run import Kind, Report, fuzz
from tests.fuzz.targets import KINDS


def keep(kind: Kind, report: Report) -> None:
    """Write the inputs that went wrong, and say what they did."""
    for finding in report.findings:
        path = keep_wrong(kind.name, finding)
        print(f"{path}: {finding.data[:200]!r}\n  {finding.problem}")


def main() -> int:
    """Run; the status is 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=[each.name for each in KINDS], action="append")
    options = parser.parse_args()
    logging.getLogger("pulsar_py").setLevel(logging.ERROR)
    is_well = True
    for kind in KINDS:
        if options.target and kind.name not in options.target:
            continue
        began = time.process_time()
        work = fuzz(kind, inputs_count=options.inputs, seed=options.seed, kept=kept(kind.name))
        report = asyncio.run(work)
        keep(kind, report)
        print(
            f"{kind.name}: {report.inputs_count} inputs in {time.process_time() - began:.0f} s of "
            f"CPU time, worst {report.worst_seconds * 1000:.0f} ms "
            f"({report.slow_once_count} took longer once, and not again), "
            f"{len(report.findings)} went wrong"
        )
        is_well = is_well and not report.findings
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
