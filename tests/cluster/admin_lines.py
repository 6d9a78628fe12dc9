"""Apache's `pulsar-admin` as a process that runs one command line after the other."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.java_programs import NotInstalledError, classpath
from tests.cluster.line_program import LineProgram

POM: Final = Path(__file__).with_name("admin_pom.xml")
SOURCE: Final = Path(__file__).with_name("AdminLines.java")


@dataclass(frozen=True)
class Done:
    """What a command line came to."""

    is_done: bool
    output: str
    errors: str


class AdminLines(LineProgram):
    """The process; the program is compiled by `java` as it starts."""

    def __init__(self, web_service_url: str, service_url: str) -> None:
        """Raises NotInstalledError: Java, Maven or the jars can't be had here."""
        super().__init__(
            ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m",
             "-cp", classpath(POM), str(SOURCE), web_service_url, service_url],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def run(self, words: Sequence[str]) -> Done:
        """Run one command line."""
        line = " ".join(base64.b64encode(word.encode()).decode() for word in words)
        answer = self.answer(line)
        if not answer:
            raise NotInstalledError(f"java ended with {self.wait()}")
        is_done, output, errors = answer.split()
        return Done(is_done == "true", _decoded(output), _decoded(errors))


def _decoded(word: str) -> str:
    return base64.b64decode(word.removeprefix("=")).decode(errors="replace")
