"""Real bookies of Apache BookKeeper, one process each, to be killed, frozen and started again."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.cluster.java_programs import java
from tests.cluster.zookeeper_process import ZooKeeperEnsemble, ZooKeeperProcess, free_port

START_SECONDS: Final = 90.0
SESSION_MILLIS: Final = 4_000
"""How long a killed bookie stays registered, and its next start waits for that to end."""
ROOT: Final = "/ledgers"

_SETTINGS: Final = """
advertisedAddress=127.0.0.1
allowLoopback=true
allowMultipleDirsUnderSameDiskPartition=true
httpServerEnabled=false
autoRecoveryDaemonEnabled=false
useV2WireProtocol=true
ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage
dbStorage_writeCacheMaxSizeMb=32
dbStorage_readAheadCacheMaxSizeMb=16
dbStorage_rocksDB_blockCacheSize=8388608
journalMaxGroupWaitMSec=1
journalMaxSizeMB=128
journalPreAllocSizeMB=4
journalMaxBackups=0
logSizeLimit=134217728
entryLogFilePreallocationEnabled=false
minUsableSizeForIndexFileCreation=16777216
minUsableSizeForEntryLogCreation=16777216
nettyMaxFrameSizeBytes=5253120
gcWaitTime=900000
diskUsageThreshold=0.995
diskUsageWarnThreshold=0.99
numReadWorkerThreads=2
numAddWorkerThreads=1
numHighPriorityWorkerThreads=1
"""


class BookieProcess:
    """One bookie with its folder and its port, which it keeps when it is started again."""

    def __init__(
        self,
        directory: Path,
        zookeeper: ZooKeeperProcess | ZooKeeperEnsemble,
        settings: Sequence[str] = (),
    ) -> None:
        """`settings` are more lines of its configuration."""
        self._more_settings = settings
        self.directory = directory
        self.port = free_port()
        self._zookeeper = zookeeper
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bookie_id(self) -> str:
        return f"127.0.0.1:{self.port}"

    def configure(self) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "bookie.conf"
        config.write_text(
            f"{_SETTINGS}bookiePort={self.port}\nzkTimeout={SESSION_MILLIS}\n"
            f"metadataServiceUri=zk+hierarchical://{self._zookeeper.hosts}{ROOT}\n"
            f"journalDirectories={self.directory / 'journal'}\n"
            f"ledgerDirectories={self.directory / 'ledgers'}\n"
            + "".join(f"{line}\n" for line in self._more_settings)
        )
        return config

    def shell(self, *words: str) -> str:
        """What BookKeeper's own shell prints."""
        command = java("org.apache.bookkeeper.bookie.BookieShell", "-conf", self.configure())
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def begin(self) -> None:
        """Start it, once nobody takes it for alive; `wait` returns when it takes entries."""
        config = self.configure()
        deadline = time.monotonic() + START_SECONDS
        while self.is_registered() and time.monotonic() < deadline:
            time.sleep(0.1)
        with (self.directory / "bookie.log").open("ab") as log:
            self._process = subprocess.Popen(
                java("org.apache.bookkeeper.server.Main", "-c", config), stdout=log, stderr=log
            )

    def wait(self) -> None:
        """Return when its port answers and it is registered."""
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the bookie did not start, see {self.directory}/bookie.log")
            time.sleep(0.1)

    def start(self) -> None:
        self.begin()
        self.wait()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2):
                return self.is_registered()
        except OSError:
            return False

    @property
    def is_running(self) -> bool:
        """It was started, and not killed."""
        return self._process is not None

    def is_registered(self) -> bool:
        """Also for a while after it was killed."""
        registration = f"{ROOT}/available/{self.bookie_id}\n"
        return registration.encode() in self._zookeeper.ask(b"dump")

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


class BookKeeperCluster:
    """A ZooKeeper and bookies; killed together."""

    def __init__(
        self,
        directory: Path,
        bookies_count: int,
        zookeeper: ZooKeeperProcess | ZooKeeperEnsemble | None = None,
        bookie_settings: Sequence[str] = (),
    ) -> None:
        """`zookeeper` None: one of its own."""
        self.zookeeper = zookeeper or ZooKeeperProcess(directory / "zookeeper")
        self.bookies = [
            BookieProcess(directory / f"bookie-{number}", self.zookeeper, bookie_settings)
            for number in range(1, bookies_count + 1)
        ]

    def start(self) -> None:
        """Return when all answer."""
        try:
            self.zookeeper.start()
            self.bookies[0].shell("initnewcluster")
            for bookie in self.bookies:
                bookie.begin()
            for bookie in self.bookies:
                bookie.wait()
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        for bookie in self.bookies:
            bookie.kill()
        self.zookeeper.kill()
