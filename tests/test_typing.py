"""Type checkers see in programs what the client takes, and what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.package_source import ROOT


def strict(*paths: Path) -> list[str]:
    """What mypy has to say, without its notes and last line."""
    command = [sys.executable, "-m", "mypy", "--strict", *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def test_uses_are_understood_and_mistakes_found() -> None:
    assert strict(ROOT / "tests" / "typing" / "client_uses.py") == []


def test_the_examples_have_only_the_mistake_that_one_shows() -> None:
    (error,) = strict(*sorted((ROOT / "examples" / "client").glob("*.py")))
    assert error.startswith("examples/client/errors.py:")
    assert "batching_max_mesages" in error
