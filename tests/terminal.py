"""A program in a pseudo-terminal, and what it writes there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from pulsar_py.common.loops.clock import SystemClock

DEADLINE_SECONDS: Final = 60.0
"""Longest wait for what a program is to write, on a loaded machine."""

_CLOCK: Final = SystemClock()
_AS_TERMINAL: Final = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Makes it the terminal of the session, whose keys are signals; then the program runs."""
_CONTROLS: Final = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]")


class Terminal:
    """Runs a program that believes it talks to a person; `with` ends it."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], *, size: tuple[int, int] = (24, 100)
    ) -> None:
        """`size` is lines and columns, whatever size the environment speaks of."""
        self.output = b""
        self._descriptor, other = pty.openpty()
        self.resize(*size)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AS_TERMINAL, *command],
            stdin=other,
            stdout=other,
            stderr=other,
            env={name: value for name, value in env.items() if name not in {"LINES", "COLUMNS"}},
            start_new_session=True,
        )
        os.close(other)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._descriptor)

    def resize(self, lines: int, columns: int) -> None:
        """Make it another size, of which the program is told."""
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._descriptor, text.encode())

    def until(self, *texts: str) -> str:
        """Wait until all of them were written, in that order, since the last call; what was.

        Raises:
            AssertionError: They were not.
        """
        pattern = re.compile(b".*?".join(re.escape(each.encode()) for each in texts), re.DOTALL)
        end = _CLOCK.monotonic_seconds() + DEADLINE_SECONDS
        while True:
            plain = _CONTROLS.sub(b"", self.output)
            if found := pattern.search(plain):
                self.output = b""
                return plain[found.start() :].decode(errors="replace")
            assert _CLOCK.monotonic_seconds() < end, (
                f"{texts} were not written: {self.output[-2000:]!r}"
            )
            assert self._read(), f"{texts} were not written, and it ended: {self.output[-2000:]!r}"

    def end(self) -> tuple[int, bytes]:
        """Wait for the end: the exit code, and the bytes written since the last `until`."""
        end = _CLOCK.monotonic_seconds() + DEADLINE_SECONDS
        while self._read():
            assert _CLOCK.monotonic_seconds() < end, f"it did not end: {self.output[-2000:]!r}"
        return self._process.wait(), self.output

    def _read(self) -> bool:
        """Take what is there within a moment; False once the program has ended."""
        if not select.select([self._descriptor], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._descriptor, 65_536)
        except OSError:  # what Linux says when nobody has the other side any more
            return False
        self.output += data
        return bool(data)
