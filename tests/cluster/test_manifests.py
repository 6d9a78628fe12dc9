"""The commands of `docker/cluster` run as processes, on a real ZooKeeper and real bookies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest
import yaml

from tests.cluster.bookie_process import ROOT, BookKeeperCluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]

DOCKER = Path(__file__).parents[2] / "docker"
SERVICES: dict[str, Any] = yaml.safe_load((DOCKER / "cluster" / "compose.yaml").read_text())[
    "services"
]


class Containers:
    """What the compose file starts of ours, in a directory each that is laid out as the image."""

    def __init__(self, bookkeeper: BookKeeperCluster, directory: Path) -> None:
        self._zookeeper_url = f"{bookkeeper.zookeeper.url}/compose"
        servers = bookkeeper.zookeeper.url.removeprefix("zk:").replace(",", ";")
        self._bookkeeper_uri = f"zk+hierarchical://{servers}{ROOT}"
        self._directory = directory
        self.processes: list[subprocess.Popen[str]] = []

    def _here(self, text: str) -> str:
        return text.replace("zk:zookeeper:2181", self._zookeeper_url)

    def start(self, name: str, **settings: str) -> subprocess.Popen[str]:
        """Start a service, with free ports and on this machine's servers."""
        service, home = SERVICES[name], self._directory / name
        subprocess.run([DOCKER / "lay-out", home], check=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PULSAR_")}
        programs = Path(sys.executable).parent
        words = [self._here(word) for word in service["command"]]
        if name == "initialize":  # bookies are there already
            words += ["--existing-bk-metadata-service-uri", self._bookkeeper_uri]
        process = subprocess.Popen(
            words,
            cwd=home,
            env=kept
            | {"PATH": f"{programs}{os.pathsep}{kept['PATH']}"}
            | {key: self._here(value) for key, value in service.get("environment", {}).items()}
            | settings,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def start_broker(self, name: str) -> tuple[subprocess.Popen[str], str, str]:
        """Start a broker; returns it with its service URL and its web URL."""
        process = self.start(
            name,
            PULSAR_PREFIX_bindAddress="127.0.0.1",
            PULSAR_PREFIX_advertisedAddress="127.0.0.1",
            PULSAR_PREFIX_advertisedListeners="",
            PULSAR_PREFIX_internalListenerName="",
            PULSAR_PREFIX_brokerServicePort="0",
            PULSAR_PREFIX_webServicePort="0",
            PULSAR_PREFIX_bookkeeperMetadataServiceUri=self._bookkeeper_uri,
        )
        assert process.stdout is not None
        words = process.stdout.readline().split()
        assert words[:2] == ["pulsar-py", "ready:"], words
        return process, words[2], words[3]


@pytest.fixture
def containers(bookkeeper: BookKeeperCluster, tmp_path: Path) -> Iterator[Containers]:
    made = Containers(bookkeeper, tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()


def test_the_compose_files_brokers_serve_and_hand_over(containers: Containers) -> None:
    for _ in range(2):  # again at the next start
        assert containers.start("initialize").wait(60) == 0
    first, service_url, web_url = containers.start_broker("broker-1")
    _, other_url, other_web_url = containers.start_broker("broker-2")
    for url in (web_url, other_web_url):
        for path in ("ready", "version"):
            with urllib.request.urlopen(f"{url}/admin/v2/brokers/{path}", timeout=30) as answer:
                assert answer.status == 200
    client = pulsar.Client(
        f"{service_url},{other_url.removeprefix('pulsar://')}",
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    consumer = client.subscribe("orders", "sub")
    producer = client.create_producer("orders")
    for number in range(20):
        producer.send(b"%d" % number)
        if number == 9:
            first.terminate()
            begun = time.monotonic()
            assert first.wait(60) == 0
            assert time.monotonic() - begun < 60
    found = [consumer.receive(30_000).data() for _ in range(20)]
    assert found == [b"%d" % number for number in range(20)]
    client.close()
