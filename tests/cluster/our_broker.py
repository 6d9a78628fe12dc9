"""A broker of ours on ZooKeeper and BookKeeper as a process, to be stopped, killed and frozen."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.cluster.apache_broker import ask
from tests.cluster.replicated_ledgers import Quorums, ReplicatedLedgers
from tests.cluster.waiting import freeze
from tests.interop.broker_process import BrokerProcess

SESSION_MILLIS: Final = 4_000
"""How long a killed broker still owns its bundles, if it is not started again."""


class OurBroker(BrokerProcess):
    """One broker without state of its own; it keeps its ports."""

    reads_batch_indexes_of_closed_cursors = True

    def __init__(
        self,
        directory: Path,
        zookeeper_url: str,
        *,
        settings: Mapping[str, object] | None = None,
        quorums: Quorums = ReplicatedLedgers.quorums,
    ) -> None:
        """Start nothing yet; what it logs goes to a file in `directory`."""
        directory.mkdir(parents=True, exist_ok=True)
        super().__init__(directory, log=directory / "broker.log")
        self._zookeeper_url = zookeeper_url
        self._settings = dict(settings or {})
        self._quorums = quorums

    def command(self) -> list[str]:
        """The command line."""
        words: list[object] = [sys.executable, "-m", "tests.cluster.run_broker"]
        words += ["--zookeeper", self._zookeeper_url, "--session-millis", SESSION_MILLIS]
        words += ["--quorums", ",".join(map(str, self._quorums))]
        words += ["--port", self.port, "--web-port", self.web_port]
        for name, value in self._settings.items():
            words += ["--set", f"{name}={value}"]
        return [str(word) for word in words]

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
        assert self.process is not None
        freeze(self.process)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """As `kill -9` does. May be called again."""
        if self.process is not None:
            super().kill()
