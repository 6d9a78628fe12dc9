"""An older version of the brokers, installed into an environment of its own from this repository.

`FIRST_TOGETHER` is the first commit whose brokers register, look up and hand over bundles; the tag
`brokers-together-1` names it, and a clone without tags has the commit. Dependencies are those of
this environment.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tests.cluster.our_broker import OurBroker

FIRST_TOGETHER: Final = "e55908a0"
ROOT: Final = Path(__file__).parents[2]


class NoHistoryError(Exception):
    """The repository does not have the commit: it is a shallow clone, or none."""


def install(directory: Path, commit: str = FIRST_TOGETHER) -> Path:
    """Install the package of a commit; returns its `pulsar-py`.

    Raises:
        NoHistoryError: The commit is not there.
    """
    source, environment = directory / "source", directory / "environment"
    source.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "pulsar_py", "pyproject.toml", "README.md"],
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        raise NoHistoryError(archive.stderr.decode().strip())
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive.stdout, check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    # What this environment has besides the package itself comes after what is installed there.
    (found,) = environment.glob("lib/python*/site-packages")
    (found / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
            "--no-build-isolation", "--target", str(found), str(source),
        ],
        check=True,
    )  # fmt: skip
    script = environment / "bin" / "pulsar-py"
    script.write_text(
        f"#!{environment}/bin/python\nimport sys\nfrom pulsar_py.cli.main import main\n"
        "sys.exit(main())\n"
    )
    script.chmod(0o755)
    return script


class OlderBroker(OurBroker):
    """A broker of that version, in the place of one of this version."""

    executable: Path

    def command(self) -> list[str]:
        """The command line; the package of this version is not in its path."""
        return ["env", "-u", "PYTHONPATH", str(self.executable), *super().command()[1:]]
