# ruff: noqa: T201 - it talks to whoever runs it
"""`python -m tests.fuzz`: the targets, one after the other, for so many inputs each (entry point).

What went wrong is printed, and kept in `tests/fuzz/corpus/<target>/`, which later runs, and the suite,
feed first. The process may have a gigabyte more than it has when it begins: what asks for memory by a
number that an input names gets none, and fails.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import resource
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

from google.protobuf.internal import api_implementation

from tests.fuzz.kept import keep_wrong, kept
from tests.fuzz.run import Kind, Report, fuzz
from tests.fuzz.targets import KINDS

ROOM_BYTES: Final = 1 << 30


def bound_memory() -> None:
    """Refuse the process more than `ROOM_BYTES` beyond what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def tell(kind: Kind, at: int, report: Report) -> None:
    """Print how far a run is."""
    print(
        f"{kind.name}: {at} inputs, {report.resident_mebibytes[-1]} MB, worst "
        f"{report.worst_seconds * 1000:.0f} ms, {len(report.findings)} went wrong",
        flush=True,
    )


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
    parser.add_argument(
        "--first", type=int, default=0, help="go on at this input, a multiple of 250"
    )
    parser.add_argument("--target", choices=[each.name for each in KINDS], action="append")
    options = parser.parse_args()
    logging.getLogger("pulsar_py").setLevel(logging.ERROR)
    bound_memory()
    print(f"protobuf: {api_implementation.Type()}")
    is_well = True
    for kind in KINDS:
        if options.target and kind.name not in options.target:
            continue
        began = time.process_time()
        work = fuzz(
            kind,
            inputs_count=options.inputs,
            seed=options.seed,
            kept=kept(kind.name),
            first_input=options.first,
            progress=partial(tell, kind),
        )
        report = asyncio.run(work)
        keep(kind, report)
        print(
            f"{kind.name}: {report.inputs_count} inputs in {time.process_time() - began:.0f} s of "
            f"CPU time, worst {report.worst_seconds * 1000:.0f} ms "
            f"({report.slow_once_count} took longer once, and not again), "
            f"memory grew by {report.grown_mebibytes()} MB over the second half, "
            f"the worst was {report.worst[:200]!r}, {len(report.findings)} went wrong"
        )
        is_well = is_well and not report.findings
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
