"""Run the session that the README shows, and draw what it printed: `python -m docs.make_recording`.

The processes are real: a broker on a data directory of its own, then the two example programs,
each with what it wrote to standard output. The picture is `docs/recording.svg`. It is
not part of `make docs`, since ports and times of a session are never those of the one before.
"""  # noqa: INP001 - tools of the checkout, no package

from __future__ import annotations

import io
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "recording.svg"
COLUMNS = 100
WAIT_SECONDS = 120
STANDALONE = ("pulsar-py", "standalone", "--data-dir", "data")
PROGRAMS = (
    ("python", "examples/first_program.py"),
    ("python", "examples/file_through_a_killed_broker.py"),
)
"""What the session runs while that broker serves."""


@dataclass(frozen=True, slots=True)
class Said:
    """One command of the session and what it printed."""

    command: str
    output: str


def drawn(session: list[Said]) -> str:
    """The session as SVG; no font is fetched from anywhere."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for said in session:
        console.print(Text.assemble(("$ ", "bold green"), (said.command, "bold")))
        if said.output:
            console.print(Text(said.output))
    svg = console.export_svg(title="pulsar_py", unique_id="recording")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def program(name: str) -> str:
    """A program beside this interpreter."""
    return str(Path(sys.executable).with_name(name))


def play() -> list[Said]:
    """Run broker and programs.

    Raises:
        RuntimeError: The broker said nothing in time, or a program failed.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    directory = Path(tempfile.mkdtemp())
    broker = subprocess.Popen(
        [program(STANDALONE[0]), *STANDALONE[1:]],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        if broker.stdout is None or not select.select([broker.stdout], [], [], WAIT_SECONDS)[0]:
            raise RuntimeError(f"the broker was not ready within {WAIT_SECONDS} s")
        session = [
            Said(f"{' '.join(STANDALONE)} 2>broker.log &", broker.stdout.readline().rstrip())
        ]
        session += [_run(words, environment) for words in PROGRAMS]
        broker.send_signal(signal.SIGTERM)
        code = broker.wait(WAIT_SECONDS)
        return [*session, Said("kill %1; wait %1; echo $?", str(code))]
    finally:
        broker.kill()
        broker.wait()
        shutil.rmtree(directory)


def _run(words: tuple[str, ...], environment: dict[str, str]) -> Said:
    """One program's output, without what it and its broker log to standard error."""
    done = subprocess.run(
        [program(words[0]), *words[1:]],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}")
    # The official client logs to standard output.
    lines = [line for line in done.stdout.splitlines() if not re.match(r"\d{4}-\d\d-\d\d ", line)]
    return Said(f"{' '.join(words)} 2>errors.log", "\n".join(lines))


if __name__ == "__main__":
    PICTURE.write_text(drawn(play()))
