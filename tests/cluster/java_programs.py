"""What real servers need: Java, and their jars, which Maven fetches once."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from functools import cache
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
TARGET = Path(__file__).with_name("target")


class NotInstalledError(Exception):
    """Java or Maven is missing, or the jars can't be fetched."""


@cache
def classpath() -> str:
    """The jars of `pom.xml`; kept until that file changes.

    Raises:
        NotInstalledError: They can't be had here.
    """
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise NotInstalledError(f"{program} is missing: Java 17 and Maven start the servers")
    kept = TARGET / f"classpath-{hashlib.sha256(POM.read_bytes()).hexdigest()[:16]}.txt"
    if not kept.exists() or not all(Path(jar).exists() for jar in kept.read_text().split(":")):
        TARGET.mkdir(exist_ok=True)
        made = kept.with_suffix(f".{id(object())}.tmp")
        done = subprocess.run(
            [
                "mvn",
                "-q",
                "-B",
                "-f",
                POM,
                "dependency:build-classpath",
                f"-Dmdep.outputFile={made}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NotInstalledError(f"Maven fetched no servers: {done.stdout[-2000:]}")
        made.replace(kept)
    return kept.read_text().strip()
