# ruff: noqa: T201 - it talks to whoever runs it
"""`python -m tests.pythons`: the tests of TLS on the oldest and the newest Python here (entry point).

What `ssl` sets by default is each Python's own: 3.13 began to set `VERIFY_X509_STRICT`, which refuses
authorities that users have. So what checks certificates is tested on the oldest Python that
`pyproject.toml` takes and on the newest that this machine has, each in an environment of its own under
`build`. `test_pythons` has a short form of it, which needs two packages.

An interpreter is a `python3.N` of `PATH` or of pyenv. If the oldest one is missing, or there is none
but that, it says so, and the status is 2: nothing was tested there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
NEWEST_LOOKED_FOR: Final = 30
"""The minor version up to which interpreters are looked for."""

TESTS: Final = (
    "tests/unit/common/network/test_tls.py",
    "tests/unit/server/security/test_paced_server.py",
    "tests/unit/server/security/test_tls.py",
    "tests/unit/server/security/test_tls_provider.py",
    "tests/integration/test_expected_by_clients.py",
    "tests/integration/test_tls.py",
)
"""What opens contexts of TLS, and the authority that fails strict checks."""

NOT_TESTED: Final = 2


def oldest_minor() -> int:
    """The minor version that `requires-python` begins with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.fullmatch(r">=3\.(\d+)", project["requires-python"])
    assert found is not None, "requires-python is no longer >=3.N"
    return int(found[1])


def interpreters(oldest: int, places: Sequence[Path]) -> dict[int, Path]:
    """An interpreter that starts, by minor version, from the first place that has one."""
    found: dict[int, Path] = {}
    for minor in range(oldest, NEWEST_LOOKED_FOR):
        for place in places:
            path = place / f"python3.{minor}"
            if os.access(path, os.X_OK) and _is(path, minor):
                found[minor] = path
                break
    return found


def _is(path: Path, minor: int) -> bool:
    """Whether it starts and is what its name says; pyenv's shims often do neither."""
    code = "import sys; print(*sys.version_info[:2])"
    ran = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    return ran.returncode == 0 and ran.stdout.split() == ["3", str(minor)]


def known_places() -> list[Path]:
    """Folders of `PATH`, then pyenv's versions, the newest first."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    versions = sorted(pyenv.glob("3.*/bin"), key=lambda each: _numbers(each.parent.name))
    return [*map(Path, os.get_exec_path()), *reversed(versions)]


def _numbers(name: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", name)]


def chosen(found: dict[int, Path], oldest: int) -> tuple[list[Path], list[str]]:
    """What is tested, and what can't be."""
    missing = []
    if oldest not in found:
        missing.append(f"Python 3.{oldest}, the oldest that is taken, is not on this machine")
    if not any(minor > oldest for minor in found):
        missing.append(f"no Python newer than 3.{oldest} is on this machine")
    return [found[minor] for minor in sorted({min(found), max(found)})] if found else [], missing


def packages(minor: int, place: Path, names: Sequence[str]) -> str:
    """Put packages for that Python into a folder; returns why that can't be, or nothing."""
    ran = subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--only-binary=:all:", "--python-version", f"3.{minor}",
            "--target", place, "-c", ROOT / "constraints.txt", *names,
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ran.stderr if ran.returncode else ""


def passes(python: Path, version: str, arguments: Sequence[str]) -> bool:
    """Make an environment unless it is there, run the tests in it; whether they passed."""
    place = ROOT / "build" / "pythons" / version
    own = place / "bin" / "python"
    pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not own.exists():
        subprocess.run([python, "-m", "venv", place], check=True)
    try:
        subprocess.run([*pip, "-c", ROOT / "constraints.txt", f"{ROOT}[test]"], check=True)
    except subprocess.CalledProcessError:
        shutil.rmtree(place)
        raise
    ran = subprocess.run(
        [own, "-m", "pytest", "-q", "-n", "0", "--timeout", "240", *(arguments or TESTS)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    return ran.returncode == 0


def main() -> int:
    """Run; the status is 1 if a test failed, 2 if an interpreter is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.pythons")
    parser.add_argument("tests", nargs="*", help="instead of those of TLS")
    options = parser.parse_args()
    oldest = oldest_minor()
    found = interpreters(oldest, known_places())
    pythons, missing = chosen(found, oldest)
    results = []
    for python in pythons:
        version = subprocess.run(
            [python, "-V"], capture_output=True, text=True, check=True
        ).stdout.strip()
        print(f"{version} ({python})", flush=True)
        results.append(passes(python, version.removeprefix("Python "), options.tests))
    for each in missing:
        print(f"not tested: {each}")
    if not all(results):
        return 1
    return NOT_TESTED if missing else 0


if __name__ == "__main__":
    sys.exit(main())
