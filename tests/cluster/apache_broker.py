"""Apache Pulsar's own broker, one process, to be stopped, killed, frozen and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from tests.cluster.java_programs import BROKER_POM, LOGGING, java
from tests.cluster.waiting import freeze
from tests.cluster.zookeeper_process import free_port

START_SECONDS: Final = 180.0
STOP_SECONDS: Final = 60.0
SESSION_MILLIS: Final = 4_000
"""How long a killed broker still owns its bundles."""

_SETTINGS: Final = """
bindAddress=127.0.0.1
advertisedAddress=127.0.0.1
managedLedgerCacheSizeMB=32
webSocketServiceEnabled=false
functionsWorkerEnabled=false
acknowledgmentAtBatchIndexLevelEnabled=true
transactionCoordinatorEnabled=false
systemTopicEnabled=true
topicLevelPoliciesEnabled=true
brokerShutdownTimeoutMs=10000
managedLedgerDefaultEnsembleSize=3
managedLedgerDefaultWriteQuorum=3
managedLedgerDefaultAckQuorum=2
"""


class ApacheBroker:
    """One broker of Apache Pulsar 4.2.4 with its folder and ports, which it keeps."""

    reads_batch_indexes_of_closed_cursors = False  # though it writes them

    def __init__(
        self,
        directory: Path,
        zookeeper_url: str,
        *,
        cluster: str = "standalone",
        settings: Mapping[str, object] | None = None,
        java_options: tuple[str, ...] = (),
    ) -> None:
        """Note what it shall be; nothing is started.

        Args:
            directory: For its configuration and its log.
            zookeeper_url: `zk:host:port`, with the metadata of a cluster.
            cluster: That cluster's name.
            settings: More lines of `broker.conf`.
            java_options: More options of its JVM.
        """
        self.directory = directory
        self.cluster = cluster
        self._port = free_port()
        self._web_port = free_port()
        self._zookeeper_url = zookeeper_url
        self._settings = dict(settings or {})
        self._java_options = java_options
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def with_deduplication(cls, directory: Path, zookeeper_url: str) -> Iterator[Self]:
        """A running broker of a new cluster that drops duplicates, as the guides' programs need."""
        broker = cls(directory, zookeeper_url, settings={"brokerDeduplicationEnabled": "true"})
        broker.initialize_cluster()
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()

    @property
    def service_url(self) -> str:
        return f"pulsar://127.0.0.1:{self._port}"

    @property
    def web_service_url(self) -> str:
        return f"http://127.0.0.1:{self._web_port}"

    @property
    def pid(self) -> int:
        """Process id while it runs."""
        assert self._process is not None
        return self._process.pid

    def initialize_cluster(self) -> None:
        """Write down what a new cluster has, as Apache Pulsar's own tool does; again is harmless."""
        command = java(
            "org.apache.pulsar.PulsarClusterMetadataSetup",
            "--cluster", self.cluster,
            "--metadata-store", self._zookeeper_url, "--configuration-metadata-store", self._zookeeper_url,
            "--web-service-url", self.web_service_url, "--broker-service-url", self.service_url,
            "--initial-num-stream-storage-containers", 0,
            pom=BROKER_POM,
        )  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"no metadata of a cluster: {done.stdout[-2000:]}")

    def start(self) -> None:
        """Return when it has registered itself and answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        logging = self.directory / "log4j2.xml"
        logging.write_text(LOGGING)
        with (self.directory / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                java(
                    "org.apache.pulsar.PulsarBrokerStarter", "-c", self._configure(),
                    heap="512m", direct_memory="512m", pom=BROKER_POM,
                    options=[f"-Dlog4j.configurationFile={logging}", *self._java_options],
                ),
                cwd=self.directory,
                stdout=log,
                stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the broker did not start, see {self.directory}/broker.log")
            time.sleep(0.1)

    def _configure(self) -> Path:
        config = self.directory / "broker.conf"
        lines = {
            "clusterName": self.cluster,
            "metadataStoreUrl": self._zookeeper_url,
            "configurationMetadataStoreUrl": self._zookeeper_url,
            "metadataStoreSessionTimeoutMillis": SESSION_MILLIS,
            "brokerServicePort": self._port,
            "webServicePort": self._web_port,
            **self._settings,
        }
        config.write_text(_SETTINGS + "".join(f"{key}={value}\n" for key, value in lines.items()))
        return config

    def _answers(self) -> bool:
        try:
            listed = self.get(f"brokers/{self.cluster}")
        except OSError:
            return False
        return f"127.0.0.1:{self._web_port}" in listed

    def get(self, path: str) -> Any:  # Any: JSON
        """What administration answers below `/admin/v2`.

        Raises:
            OSError: Nobody answers, or with an error.
        """
        return self.ask("GET", path)

    def ask(self, method: str, path: str, body: object = None) -> Any:  # Any: JSON
        """What administration answers; None for nothing.

        Raises:
            OSError: Nobody answers, or with an error.
        """
        return ask(self.web_service_url, method, path, body)

    def freeze(self) -> None:
        assert self._process is not None
        freeze(self._process)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """As an operator does: it closes its topics and gives its bundles back."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_SECONDS)
            self._process = None

    def kill(self) -> None:
        """As `kill -9` does. May be called again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def ask(web_service_url: str, method: str, path: str, body: object = None) -> Any:  # Any: JSON
    """What a broker's administration answers below `/admin/v2`; None for nothing.

    Raises:
        OSError: Nobody answers, or with an error; its text has the answer.
    """
    request = urllib.request.Request(
        f"{web_service_url}/admin/v2/{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={} if body is None else {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = answer.read()
    except urllib.error.HTTPError as error:
        raise OSError(f"{method} {path}: {error.code} {error.read()[:500]!r}") from error
    return json.loads(content) if content else None
