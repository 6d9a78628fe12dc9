"""Real Apache ZooKeepers, alone or three of them, to be killed, frozen and started again."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.cluster.java_programs import classpath
from tests.cluster.waiting import freeze

START_SECONDS = 180.0
TICK_MILLIS = 500
"""Sessions last 2 to 20 of these: from 1 to 10 s."""

_OF_AN_ENSEMBLE: Final = ("initLimit=40", "syncLimit=8")
"""In ticks: how long a server may take to follow its leader, and to answer it."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class ZooKeeperProcess:
    """One server with its folder and its port, which it keeps when it is started again."""

    def __init__(
        self,
        directory: Path,
        settings: Sequence[str] = (),
        java_options: Sequence[str] = (),
        main: str = "ZooKeeperServerMain",
    ) -> None:
        """`settings` are lines of its configuration."""
        self.directory = directory
        self.port = free_port()
        self._settings = settings
        self._java_options = java_options
        self._main = main
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def hosts(self) -> str:
        """As a client of BookKeeper has it."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"zk:{self.hosts}"

    def begin(self) -> None:
        """Start it; `wait` returns when it answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "zookeeper.cfg"
        lines = (
            f"tickTime={TICK_MILLIS}",
            f"dataDir={self.directory / 'data'}",
            "clientPortAddress=127.0.0.1",
            f"clientPort={self.port}",
            "maxClientCnxns=0",
            "admin.enableServer=false",
            "4lw.commands.whitelist=*",
            *self._settings,
        )
        config.write_text("\n".join(lines) + "\n")
        command = ["java", "-Xmx256m", *self._java_options, "-cp", classpath()]
        with (self.directory / "zookeeper.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, f"org.apache.zookeeper.server.{self._main}", config],
                stdout=log,
                stderr=log,
            )

    def wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while not self.mode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"ZooKeeper did not start, see {self.directory}/zookeeper.log")
            time.sleep(0.1)

    def start(self) -> None:
        """Return when it answers."""
        self.begin()
        self.wait()

    @property
    def mode(self) -> str:
        """`standalone`, `leader`, `follower`, `read-only`; empty while it does not answer."""
        _, _, rest = self.ask(b"srvr").partition(b"Mode: ")
        return rest.partition(b"\n")[0].decode()

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
        freeze(self._process)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """As `kill -9` does. May be called again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def is_running(self) -> bool:
        """It was started, and not killed."""
        return self._process is not None


class ZooKeeperEnsemble:
    """Three servers, of which one leads; each may be killed and started again."""

    def __init__(self, directory: Path, count: int = 3) -> None:
        peers = [(free_port(), free_port()) for _ in range(count)]
        members = tuple(
            f"server.{number}=127.0.0.1:{peer}:{election}"
            for number, (peer, election) in enumerate(peers, 1)
        )
        self.servers = [
            ZooKeeperProcess(
                directory / f"zookeeper-{number}",
                (*_OF_AN_ENSEMBLE, *members),
                ("-Dreadonlymode.enabled=true",),
                "quorum.QuorumPeerMain",
            )
            for number in range(1, count + 1)
        ]
        for number, server in enumerate(self.servers, 1):
            (server.directory / "data").mkdir(parents=True)
            (server.directory / "data" / "myid").write_text(f"{number}\n")

    @property
    def hosts(self) -> str:
        """As a client of BookKeeper has them."""
        return ";".join(server.hosts for server in self.servers)

    @property
    def url(self) -> str:
        return "zk:" + ",".join(server.hosts for server in self.servers)

    def start(self) -> None:
        """Return when all serve; those that run are left as they are."""
        for server in self.servers:
            if not server.is_running:
                server.begin()
        deadline = time.monotonic() + START_SECONDS
        followers = ["follower"] * (len(self.servers) - 1)
        while sorted(server.mode for server in self.servers) != [*followers, "leader"]:
            if time.monotonic() > deadline:
                raise RuntimeError("the ZooKeepers found no leader, see their zookeeper.log")
            time.sleep(0.1)

    @property
    def leader(self) -> ZooKeeperProcess:
        return next(server for server in self.servers if server.mode == "leader")

    def ask(self, word: bytes) -> bytes:
        """What the leader says to a word of four letters; nothing if there is none."""
        return next((server.ask(word) for server in self.servers if server.mode == "leader"), b"")

    def kill(self) -> None:
        for server in self.servers:
            server.kill()
