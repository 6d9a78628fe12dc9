"""Real bookies of Apache BookKeeper, one process each, to be killed, frozen and started again."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.cluster.java_programs import BROKER_POM, LOGGING, POM, java
from tests.cluster.waiting import freeze
from tests.cluster.zookeeper_process import ZooKeeperEnsemble, ZooKeeperProcess, free_port

START_SECONDS: Final = 240.0
SESSION_MILLIS: Final = 4_000
"""How long a killed bookie stays registered, and its next start waits for that to end."""
ROOT: Final = "/ledgers"
HOST: Final = "127.0.0.1"
"""Where every bookie listens."""

_SETTINGS: Final = """
allowLoopback=true
allowMultipleDirsUnderSameDiskPartition=true
httpServerEnabled=true
httpServerHost=127.0.0.1
httpServerClass=org.apache.bookkeeper.http.vertx.VertxHttpServer
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


def on_own_disk(directory: Path, megabytes: int, command: Sequence[str]) -> list[str]:
    """The command of a process that sees a small disk at `directory`, which nobody else does."""
    script = 'mount -t tmpfs -o size="$1"m tmpfs "$0" && shift && exec "$@"'
    return ["unshare", "-rm", "sh", "-c", script, str(directory), str(megabytes), *command]


def own_disks() -> bool:
    """Whether processes can be given such disks here."""
    with tempfile.TemporaryDirectory() as name:
        command = on_own_disk(Path(name), 1, ["true"])
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            return False


class BookieProcess:
    """One bookie with its folder and its port, which it keeps when it is started again."""

    def __init__(
        self,
        directory: Path,
        zookeeper: ZooKeeperProcess | ZooKeeperEnsemble,
        *,
        settings: Mapping[str, object] | None = None,
        java_options: tuple[str, ...] = (),
        disk_megabytes: int = 0,
    ) -> None:
        """Note what it shall be; nothing is started.

        Args:
            directory: For its configuration, its entries and its log.
            zookeeper: Where it registers.
            settings: More lines of its configuration.
            java_options: More options of its JVM.
            disk_megabytes: Of a disk of its own for entries, which is gone with the process; it
                needs `own_disks`. 0: they are in `directory`.
        """
        self.directory = directory
        self.port = free_port()
        self.http_port = free_port()
        self._settings = dict(settings or {})
        self._java_options = java_options
        self._disk_megabytes = disk_megabytes
        self._zookeeper = zookeeper
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bookie_id(self) -> str:
        return f"{HOST}:{self.port}"

    def configure(self) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "bookie.conf"
        config.write_text(
            f"{_SETTINGS}bookiePort={self.port}\nzkTimeout={SESSION_MILLIS}\n"
            f"advertisedAddress={HOST}\nhttpServerPort={self.http_port}\n"
            f"metadataServiceUri=zk+hierarchical://{self._zookeeper.hosts}{ROOT}\n"
            f"journalDirectories={self.directory / 'journal'}\n"
            f"ledgerDirectories={self.directory / 'ledgers'}\n"
            + "".join(f"{name}={value}\n" for name, value in self._settings.items())
        )
        return config

    def shell(self, *words: str) -> str:
        """What BookKeeper's own shell prints."""
        return self._shell(POM, (), words)

    def logged_by_shell(self, *words: str) -> str:
        """What it prints and logs, as several of its commands do with what they were asked for.

        That needs the logging of the broker's jars.
        """
        logging = self.directory / "log4j2.xml"
        self.directory.mkdir(parents=True, exist_ok=True)
        logging.write_text(LOGGING)
        return self._shell(BROKER_POM, (f"-Dlog4j.configurationFile={logging}",), words)

    def _shell(self, pom: Path, options: Sequence[str], words: Sequence[str]) -> str:
        main = "org.apache.bookkeeper.bookie.BookieShell"
        options = (*self._java_options, *options)
        command = java(main, "-conf", self.configure(), *words, options=options, pom=pom)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def begin(self) -> None:
        """Start it, once nobody takes it for alive; `wait` returns when it takes entries."""
        config = self.configure()
        deadline = time.monotonic() + START_SECONDS
        while self.is_registered() and time.monotonic() < deadline:
            time.sleep(0.1)
        command = java(
            "org.apache.bookkeeper.server.Main", "-c", config, options=self._java_options
        )
        if self._disk_megabytes:
            ledgers = self.directory / "ledgers"
            ledgers.mkdir(exist_ok=True)
            command = on_own_disk(ledgers, self._disk_megabytes, command)
        with (self.directory / "bookie.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

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
            with socket.create_connection((HOST, self.port), timeout=2):
                return self.is_registered()
        except OSError:
            return False

    @property
    def is_running(self) -> bool:
        """It was started, and not killed."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """Process id while it runs."""
        assert self._process is not None
        return self._process.pid

    def is_registered(self) -> bool:
        """Whether it takes entries; also for a while after it was killed."""
        return self._is_listed("available")

    def is_read_only(self) -> bool:
        """Whether it has told clients to send no entries."""
        return self._is_listed("available/readonly")

    def _is_listed(self, place: str) -> bool:
        registration = f"{ROOT}/{place}/{self.bookie_id}\n"
        return registration.encode() in self._zookeeper.ask(b"dump")

    def set_read_only(self, is_read_only: bool) -> None:
        """As an operator does by HTTP; it registers itself as such by itself."""
        url = f"http://{HOST}:{self.http_port}/api/v1/bookie/state/readonly"
        body = json.dumps({"readOnly": is_read_only}).encode()
        with urllib.request.urlopen(urllib.request.Request(url, body, method="PUT"), timeout=10):
            pass

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


class AutoRecovery:
    """An auditor and a replication worker of Apache BookKeeper in a process of their own."""

    def __init__(self, directory: Path, bookie: BookieProcess) -> None:
        """Its log is in `directory`; all but the folders is as the bookie's configuration says."""
        self.directory = directory
        self._bookie = bookie
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin; who waits for it looks at what it does to ledgers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "autorecovery.conf"
        config.write_text(
            f"{self._bookie.configure().read_text()}httpServerEnabled=false\n"
            "lostBookieRecoveryDelay=0\nopenLedgerRereplicationGracePeriod=1000\n"
        )
        main = "org.apache.bookkeeper.replication.AutoRecoveryMain"
        with (self.directory / "autorecovery.log").open("ab") as log:
            self._process = subprocess.Popen(java(main, "-c", config), stdout=log, stderr=log)

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
        *,
        zookeeper: ZooKeeperProcess | ZooKeeperEnsemble | None = None,
        settings: Mapping[str, object] | None = None,
        java_options: tuple[str, ...] = (),
    ) -> None:
        """`settings` are more lines of each bookie's configuration, `java_options` of its JVM.

        `zookeeper` None: one of its own.
        """
        self.zookeeper = zookeeper or ZooKeeperProcess(directory / "zookeeper")
        self.bookies = [
            BookieProcess(
                directory / f"bookie-{number}",
                self.zookeeper,
                settings=settings,
                java_options=java_options,
            )
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
