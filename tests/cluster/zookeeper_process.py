"""A real Apache ZooKeeper of one server, to be killed, frozen and started again."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.cluster.java_programs import classpath

START_SECONDS = 60.0
TICK_MILLIS = 500
"""Sessions last 2 to 20 of these: from 1 to 10 s."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class ZooKeeperProcess:
    """One server with its folder and its port, which it keeps when it is started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"zk:127.0.0.1:{self.port}"

    def start(self) -> None:
        """Return when it answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "zookeeper.cfg"
        config.write_text(
            f"tickTime={TICK_MILLIS}\n"
            f"dataDir={self.directory / 'data'}\n"
            f"clientPortAddress=127.0.0.1\nclientPort={self.port}\n"
            "maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n"
        )
        with (self.directory / "zookeeper.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["java", "-Xmx256m", "-cp", classpath(),
                 "org.apache.zookeeper.server.ZooKeeperServerMain", config],
                stdout=log,
                stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"ZooKeeper did not start, see {self.directory}/zookeeper.log")
            time.sleep(0.1)

    def _answers(self) -> bool:
        return b"Mode:" in self.ask(b"srvr")

    def ask(self, word: bytes) -> bytes:
        """What the server says to a word of four letters; nothing if it can't be asked."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(word)
                return b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return b""

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """As `kill -9` does. May be called again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
