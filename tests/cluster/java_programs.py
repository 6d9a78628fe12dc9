"""What real servers need: Java, and their jars, which Maven fetches once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

POM: Final = Path(__file__).with_name("pom.xml")
"""ZooKeeper and BookKeeper."""
BROKER_POM: Final = Path(__file__).with_name("broker_pom.xml")
"""Apache Pulsar's broker, with what it needs of the two others."""
TARGET: Final = Path(__file__).with_name("target")

LOGGING: Final = """<Configuration status="warn"><Appenders>
<Console name="console"><PatternLayout pattern="%d{ISO8601} %-5p %c{1} - %m%n"/></Console>
</Appenders><Loggers><Root level="info"><AppenderRef ref="console"/></Root></Loggers></Configuration>
"""
"""Of log4j: everything to the standard output."""

_OPENED: Final = (
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.zip",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
    "java.base/sun.net",
    "java.base/sun.net.www.protocol.http",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
)
"""Packages of Java's own that these servers look into."""


class NotInstalledError(Exception):
    """Java or Maven is missing, or the jars can't be fetched."""


def java(
    main: str,
    *arguments: object,
    heap: str = "192m",
    direct_memory: str = "192m",
    options: Sequence[str] = (),
    pom: Path = POM,
) -> list[str]:
    """The command that runs a class of the jars that `pom` names.

    Raises:
        NotInstalledError: Java, Maven or the jars can't be had here.
    """
    command = ["java", f"-Xmx{heap}", f"-XX:MaxDirectMemorySize={direct_memory}"]
    command += ["-XX:+UseSerialGC", "-Dio.netty.tryReflectionSetAccessible=true"]
    for package in _OPENED:
        command += ["--add-opens", f"{package}=ALL-UNNAMED"]
    return [*command, *options, "-cp", classpath(pom), main, *map(str, arguments)]


@cache
def classpath(pom: Path = POM) -> str:
    """The jars of a `pom.xml`; kept until that file changes.

    Raises:
        NotInstalledError: They can't be had here.
    """
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise NotInstalledError(f"{program} is missing: Java 17 and Maven start the servers")
    kept = TARGET / f"classpath-{hashlib.sha256(pom.read_bytes()).hexdigest()[:16]}.txt"
    if not kept.exists() or not all(Path(jar).exists() for jar in kept.read_text().split(":")):
        TARGET.mkdir(exist_ok=True)
        made = kept.with_suffix(f".{os.getpid()}.tmp")
        done = subprocess.run(
            [
                "mvn",
                "-q",
                "-B",
                "-f",
                pom,
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
