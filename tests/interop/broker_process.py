"""`pulsar-py standalone` as a process that tests start, kill and start again."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_ROOT: Final = Path(__file__).parents[2]
"""Where Python finds the modules of tests."""


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class BrokerProcess:
    """One data directory and the process that serves it, on the same ports at each start."""

    def __init__(self, data_dir: Path, *arguments: str, log: Path | None = None) -> None:
        """Start nothing yet; what the processes log goes to a file if one is named."""
        self.data_dir = data_dir
        self.port, self.web_port = free_port(), free_port()
        self._arguments = arguments
        self._log = log
        self.cwd = _ROOT
        self.ready_line = ""
        self.process: subprocess.Popen[str] | None = None

    @property
    def service_url(self) -> str:
        """Where clients connect."""
        return f"pulsar://127.0.0.1:{self.port}"

    @property
    def web_service_url(self) -> str:
        """Where the admin API answers."""
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def pid(self) -> int:
        """Process id while it runs."""
        assert self.process is not None
        return self.process.pid

    def command(self) -> list[str]:
        """The command line."""
        return [
            str(Path(sys.executable).with_name("pulsar-py")), "standalone",
            "--data-dir", str(self.data_dir), "--host", "127.0.0.1",
            "--port", str(self.port), "--web-port", str(self.web_port), *self._arguments,
        ]  # fmt: skip

    def start(self, timeout_seconds: float = 120.0) -> None:
        """Start it; returns when its line of readiness has come."""
        command = self.command()
        with contextlib.ExitStack() as stack:
            log = None if self._log is None else stack.enter_context(self._log.open("ab"))
            self.process = subprocess.Popen(
                command, cwd=self.cwd, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.process.stdout], [], [], 0.1)
            if ready:
                line = self.process.stdout.readline()
                if "ready" in line:
                    self.ready_line = line
                    return
                if not line:
                    break
        self.kill()
        raise AssertionError(f"{' '.join(command)} did not get ready")

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to stop; returns its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return code

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process is not None:
            self.stop()
