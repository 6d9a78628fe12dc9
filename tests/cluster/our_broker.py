"""`pulsar-py broker` on ZooKeeper and BookKeeper as a process: stopped, killed, frozen, started."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.cluster.apache_broker import ask
from tests.cluster.bookie_process import ROOT
from tests.cluster.waiting import freeze
from tests.interop.broker_process import BrokerProcess

PULSAR_PY: Final = str(Path(sys.executable).with_name("pulsar-py"))
SESSION_MILLIS: Final = 4_000
"""How long a killed broker still owns its bundles, if it is not started again."""

Quorums = tuple[int, int, int]
"""Ensemble, write quorum, ack quorum."""


def tool(*words: str) -> str:
    """What a command prints that has to work."""
    done = subprocess.run([PULSAR_PY, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class OurBroker(BrokerProcess):
    """One broker without state of its own; it keeps its ports, and begins in an empty directory."""

    reads_batch_indexes_of_closed_cursors = True

    def __init__(
        self,
        directory: Path,
        zookeeper_url: str,
        *,
        cluster: str = "standalone",
        settings: Mapping[str, object] | None = None,
        quorums: Quorums = (3, 3, 2),
    ) -> None:
        """Start nothing yet; what it logs goes to `broker.log` in `directory`.

        Args:
            directory: For its configuration and its log.
            zookeeper_url: `zk:HOST:PORT,HOST:PORT/chroot`; BookKeeper is beside the chroot.
            cluster: The cluster's name.
            settings: More lines of `broker.conf`.
            quorums: Of ledgers without a policy.
        """
        directory.mkdir(parents=True, exist_ok=True)
        super().__init__(directory, log=directory / "broker.log")
        self.cluster = cluster
        self.config = directory / "broker.conf"
        self.cwd = directory / "empty"
        self.cwd.mkdir()
        self._zookeeper_url = zookeeper_url
        servers = zookeeper_url.removeprefix("zk:").partition("/")[0].replace(",", ";")
        self._bookkeeper_uri = f"zk+hierarchical://{servers}{ROOT}"
        self._settings: dict[str, object] = {
            "clusterName": cluster,
            "metadataStoreUrl": zookeeper_url,
            "bookkeeperMetadataServiceUri": self._bookkeeper_uri,
            "metadataStoreSessionTimeoutMillis": SESSION_MILLIS,
            "managedLedgerDefaultEnsembleSize": quorums[0],
            "managedLedgerDefaultWriteQuorum": quorums[1],
            "managedLedgerDefaultAckQuorum": quorums[2],
            **(settings or {}),
        }
        self._is_initialized = False

    def initialize_cluster(self, *options: str) -> str:
        """Write down what a new cluster has; again is harmless. Returns what the command prints."""
        self._is_initialized = True
        return tool(
            "initialize-cluster-metadata", "--cluster", self.cluster,
            "--metadata-store", self._zookeeper_url,
            "--configuration-metadata-store", self._zookeeper_url,
            "--web-service-url", self.web_service_url, "--broker-service-url", self.service_url,
            "--existing-bk-metadata-service-uri", self._bookkeeper_uri, *options,
        )  # fmt: skip

    def configure_with(self, settings: Mapping[str, object]) -> None:
        """Add settings for the next start."""
        self._settings.update(settings)

    def configure(self) -> Path:
        """Write its file of settings."""
        lines = (f"{name}={value}\n" for name, value in self._settings.items())
        self.config.write_text("".join(lines))
        return self.config

    def start(self, timeout_seconds: float = 120.0) -> None:
        """Start it, in a cluster that is initialized; returns when it is ready."""
        if not self._is_initialized:
            self.initialize_cluster()
        super().start(timeout_seconds)

    def command(self) -> list[str]:
        """The command line."""
        return [
            PULSAR_PY, "broker", "--config", str(self.configure()), "--host", "127.0.0.1",
            "--port", str(self.port), "--web-port", str(self.web_port),
        ]  # fmt: skip

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

    def metrics(self, name: str) -> dict[str, float]:
        """The values of a metric by its labels, as they are written.

        Raises:
            OSError: Nobody answers.
        """
        with urllib.request.urlopen(f"{self.web_service_url}/metrics/", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        words = (
            line.rpartition(" ") for line in lines if line.startswith((f"{name} ", f"{name}{{"))
        )
        return {labelled.removeprefix(name): float(value) for labelled, _, value in words}

    def ready(self) -> int:
        """The status that probes get."""
        url = f"{self.web_service_url}/admin/v2/brokers/ready"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def freeze(self) -> None:
        assert self.process is not None
        freeze(self.process)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """As `kill -9` does. May be called again."""
        if self.process is not None:
            super().kill()
