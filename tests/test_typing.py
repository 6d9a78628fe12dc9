"""Type checkers see in programs what the client takes, and what it does not."""

from __future__ import annotations

import json
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


def pyright(folder: Path) -> list[str]:
    """What pyright has to say of a folder with a `pyrightconfig.json`."""
    command = [sys.executable, "-m", "pyright", "--project", str(folder), "--outputjson"]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"], done.stderr
    return [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}"
        for each in report["generalDiagnostics"]
    ]


def test_uses_are_understood_and_mistakes_found() -> None:
    assert strict(*sorted((ROOT / "tests" / "typing").glob("*.py"))) == []


def test_pyright_understands_the_same_uses_and_finds_the_same_mistakes() -> None:
    assert pyright(ROOT / "tests" / "typing") == []


def test_the_examples_have_only_the_mistake_that_one_shows() -> None:
    errors = strict(*sorted((ROOT / "examples" / "client").glob("*.py")))
    (place,) = {error.partition(": error: ")[0] for error in errors}
    assert place.startswith("examples/client/errors.py:")
    assert "batching_max_mesages" in errors[0]
