"""Apache's `pulsar-admin` as a process that runs one command line after the other."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.cluster.java_programs import NotInstalledError, classpath

POM: Final = Path(__file__).with_name("admin_pom.xml")
SOURCE: Final = Path(__file__).with_name("AdminLines.java")


@dataclass(frozen=True)
class Done:
    """What a command line came to."""

    is_done: bool
    output: str
    errors: str


class AdminLines:
    """The process; the program is compiled by `java` as it starts."""

    def __init__(self, web_service_url: str, service_url: str) -> None:
        """Raises NotInstalledError: Java, Maven or the jars can't be had here."""
        self._process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m",
             "-cp", classpath(POM), str(SOURCE), web_service_url, service_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, words: Sequence[str]) -> Done:
        """Run one command line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = " ".join(base64.b64encode(word.encode()).decode() for word in words)
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise NotInstalledError(f"java ended with {self._process.wait()}")
        is_done, output, errors = answer.split()
        return Done(is_done == "true", _decoded(output), _decoded(errors))


def _decoded(word: str) -> str:
    return base64.b64decode(word.removeprefix("=")).decode(errors="replace")
