# ruff: noqa: T201 - it talks to whoever runs it
"""`python -m tests.fuzz.guided`: inputs that atheris makes by the code that they reach (entry point).

For each target a process of its own: atheris instruments the package while it is imported, begins
with the good inputs and the kept ones, changes them as `inputs` does and by libFuzzer's own ways,
and goes on from those that reach something new. The shortest of these go into
`corpus/<target>.reached`; then `coverage` runs all good and kept inputs and counts lines.

Needs the packages of the extra `fuzz`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.fuzz.kept import CORPUS, keep_reached, keep_wrong, kept, reached

ROOT: Final = CORPUS.parents[2]
MEASURED: Final = {
    "frames": ("pulsar_py/wire/framing.py", "pulsar_py/wire/commands.py"),
    "commands": ("pulsar_py/wire/*", "pulsar_py/server/*"),
    "rest": ("pulsar_py/admin/*",),
}
"""The code that each target is about, whose lines are counted."""

INSTRUMENTED: Final = {
    "frames": ["pulsar_py.wire", "pulsar_py.server.connection", "pulsar_py.server.handlers"],
    "commands": ["pulsar_py.common", "pulsar_py.wire", "pulsar_py.server"],
    "rest": ["pulsar_py.common", "pulsar_py.admin", "pulsar_py.web"],
}
"""The code by which inputs are judged; the rest runs as quickly as it does elsewhere."""

MAX_BYTES: Final = 4096
BATCH_COUNT: Final = 250
KEPT_COUNT: Final = 400


def one_target(name: str, directory: str, arguments: list[str]) -> None:
    """Fuzz in this process; does not return."""
    import atheris  # noqa: PLC0415 - before the package, which it instruments

    with atheris.instrument_imports(include=INSTRUMENTED[name]):
        from tests.fuzz.run import LogWatch, Report, Watched  # noqa: PLC0415
        from tests.fuzz.targets import KINDS  # noqa: PLC0415

        kind = next(each for each in KINDS if each.name == name)
        logging.getLogger("pulsar_py").setLevel(logging.ERROR)
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        report, log = Report(), LogWatch()
        logging.getLogger().addHandler(log)
        target = loop.run_until_complete(kind.opened().__aenter__())
        if not any(Path(directory).iterdir()):
            for at, data in enumerate([*target.seeds(), *kept(name)]):
                (Path(directory) / f"seed-{at}").write_bytes(data)
        # Instrumented code is slow: time is looked at by the runs without it, and asking for it costs
        # as much as half of an input.
        watched = Watched(target, report, log, cpu_seconds=lambda: 0.0)
        gc.collect()
        gc.freeze()  # a collection looks at what inputs left, not at the whole package

        def one_input(data: bytes) -> None:
            loop.run_until_complete(watched.feed(data))
            if report.inputs_count % BATCH_COUNT == 0:
                loop.run_until_complete(watched.check())
            for finding in report.findings:
                print(f"{keep_wrong(name, finding)}: {finding.problem}", flush=True)
            report.findings.clear()

        def mutated(data: bytes, max_bytes: int, seed: int) -> bytes:
            chance = random.Random(seed)
            if chance.random() < 0.3:
                return bytes(atheris.Mutate(data, max_bytes))
            return kind.mutate(chance, data)[:max_bytes]

        atheris.Setup([sys.argv[0], *arguments], one_input, custom_mutator=mutated)
        atheris.Fuzz()


def replay(name: str) -> None:
    """Feed what is kept, which `coverage` watches."""
    from tests.fuzz.run import fuzz  # noqa: PLC0415 - not in the process that instruments
    from tests.fuzz.targets import KINDS  # noqa: PLC0415

    logging.getLogger("pulsar_py").setLevel(logging.CRITICAL)
    kind = next(each for each in KINDS if each.name == name)
    # The kept ones come first, then all good ones, and some changed ones.
    asyncio.run(fuzz(kind, inputs_count=3_000, seed=0, kept=kept(name), limit=3_000))


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )


def fuzzed(name: str, inputs_count: int, seconds: int) -> bool:
    """Fuzz one target, keep what reaches much, print what was reached; whether all went well."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        found = Path(place) / "found"
        found.mkdir()
        own = ("-m", "tests.fuzz.guided", "--one", name)
        limits = (f"-max_len={MAX_BYTES}", "-timeout=60", "-rss_limit_mb=1024")
        ran = _python(
            *own, str(found), *limits, f"-runs={inputs_count}", f"-max_total_time={seconds}",
            str(found),
        )  # fmt: skip
        wrong = [line for line in ran.stdout.splitlines() if line.startswith(str(CORPUS))]
        last = next((each for each in reversed(ran.stderr.splitlines()) if "cov:" in each), "")
        # Each reached something that none before it had.
        new = [each.read_bytes() for each in found.iterdir() if not each.name.startswith("seed-")]
        inputs = sorted({*reached(name), *new}, key=lambda each: (len(each), each))[:KEPT_COUNT]
        is_well = ran.returncode == 0 and not wrong
        keep_reached(name, inputs)
        print(f"{name}: {last.strip()}; {len(inputs)} inputs kept, {len(wrong)} went wrong")
        if not is_well:
            print("\n".join([*wrong, ran.stderr[-3000:]]))
        data = f"--data-file={place}/coverage"
        _python("-m", "coverage", "run", data, "--source", "pulsar_py", "-m", "tests.fuzz.guided", "--replay", name)  # fmt: skip
        report = _python("-m", "coverage", "report", data, f"--include={','.join(MEASURED[name])}")
        total = next(
            (e for e in report.stdout.splitlines() if e.startswith("TOTAL")), report.stderr
        )
        print(
            f"    lines of {', '.join(MEASURED[name])} (all, missed, reached): {total}", flush=True
        )
    return is_well


def main() -> int:
    """Run; the status is 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of each target")
    parser.add_argument("--seconds", type=int, default=0, help="for each target at most; 0: any")
    parser.add_argument("--target", choices=list(MEASURED), action="append")
    parser.add_argument("--one", nargs=2, metavar=("TARGET", "DIRECTORY"), help=argparse.SUPPRESS)
    parser.add_argument("--replay", metavar="TARGET", help=argparse.SUPPRESS)
    options, further = parser.parse_known_args()
    if options.one:
        one_target(*options.one, further)
    elif options.replay:
        replay(options.replay)
    else:
        names = options.target or list(MEASURED)
        well = [fuzzed(each, options.inputs, options.seconds) for each in names]
        return 0 if all(well) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
