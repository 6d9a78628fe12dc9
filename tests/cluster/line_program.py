"""A program as a process that answers each line of its input with one of its output."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self


class LineProgram:
    """The process, until the end of the `with` block."""

    def __init__(self, command: Sequence[str | Path], *, stderr: int | None = None) -> None:
        """`stderr` is as `subprocess.Popen` has it."""
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
        )

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

    def answer(self, line: str) -> str:
        """The answer to one line; empty if the program has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def wait(self) -> int:
        """Wait for its end; returns its exit code."""
        return self._process.wait()
