"""`pulsar-py broker` as a process on a real ZooKeeper and real bookies, and the tools beside it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest
from pulsar.schema import StringSchema

from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.zookeeper_process import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PULSAR_PY = str(Path(sys.executable).with_name("pulsar-py"))
CLUSTER = "command"
COUNT = 300
READY_SECONDS = 60.0


def tool(*words: str) -> str:
    done = subprocess.run([PULSAR_PY, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class BrokerCommand:
    """The command on the same ports at each start, in an empty directory each time."""

    def __init__(self, directory: Path, config: Path) -> None:
        self._directory = directory
        self._config = config
        self._starts_count = 0
        self.port, self.web_port = free_port(), free_port()
        self.process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"pulsar://127.0.0.1:{self.port}"

    def start(self, *arguments: str) -> str:
        """Returns its ready line."""
        self._starts_count += 1
        self.cwd = self._directory / f"start-{self._starts_count}"
        self.cwd.mkdir()
        with (self._directory / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [PULSAR_PY, "broker", "--config", str(self._config), "--host", "127.0.0.1",
                 "--port", str(self.port), "--web-port", str(self.web_port), *arguments],
                cwd=self.cwd, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ,
            )  # fmt: skip
        assert self.process.stdout is not None
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if select.select([self.process.stdout], [], [], 0.1)[0]:
                line = self.process.stdout.readline()
                if "ready" in line:
                    return line
                break
        raise AssertionError((self._directory / "broker.log").read_text()[-3000:])

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return code


@pytest.fixture(scope="module")
def config(bookkeeper: BookKeeperCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings of an initialized cluster, in a chroot beside those of other tests."""
    url = bookkeeper.zookeeper.url
    words = [
        "initialize-cluster-metadata", "--cluster", CLUSTER,
        "--metadata-store", f"{url}/command", "--configuration-metadata-store", f"{url}/command",
        "--web-service-url", "http://127.0.0.1:8080",
        "--broker-service-url", "pulsar://127.0.0.1:6650",
        "--existing-bk-metadata-service-uri",
        f"zk+hierarchical://{url.removeprefix('zk:')}/ledgers",
    ]  # fmt: skip
    assert f"Cluster metadata for '{CLUSTER}' setup correctly" in tool(*words)
    assert "was there already; nothing was changed" in tool(*words)
    file = tmp_path_factory.mktemp("command") / "broker.conf"
    file.write_text(
        f"clusterName={CLUSTER}\nmetadataStoreUrl={url}/command\n"
        f"bookkeeperMetadataServiceUri=zk+hierarchical://{url.removeprefix('zk:')}/ledgers\n"
        "metadataStoreSessionTimeoutMillis=5000\nmanagedLedgerDefaultEnsembleSize=3\n"
        "managedLedgerDefaultWriteQuorum=3\nmanagedLedgerDefaultAckQuorum=2\n"
    )
    return file


@pytest.fixture
def broker(config: Path, tmp_path: Path) -> Iterator[BrokerCommand]:
    command = BrokerCommand(tmp_path, config)
    yield command
    if command.process is not None:
        command.end(signal.SIGKILL)


@contextlib.contextmanager
def client(url: str) -> Iterator[pulsar.Client]:
    connected = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    yield connected
    connected.close()


def test_what_was_confirmed_survives_kill_9_and_an_empty_directory(broker: BrokerCommand) -> None:
    line = broker.start()
    assert line.startswith(f"pulsar-py ready: {broker.url} http://127.0.0.1:{broker.web_port} ")
    ready = f"http://127.0.0.1:{broker.web_port}/admin/v2/brokers/ready"
    with urllib.request.urlopen(ready, timeout=10) as answer:
        assert answer.read() == b"ok"
    topic = "persistent://public/default/kept"
    with client(broker.url) as first:
        consumer = first.subscribe(topic, "sub", pulsar.ConsumerType.Shared)
        producer = first.create_producer(topic, schema=StringSchema())
        for number in range(COUNT):
            producer.send(f"{number}")
        for _ in range(COUNT // 2):
            consumer.acknowledge(consumer.receive(20_000))
        time.sleep(2.5)  # acknowledgements are written a second later at the latest
    broker.end(signal.SIGKILL)
    assert not list(broker.cwd.iterdir())

    broker.start()
    with client(broker.url) as second:
        consumer = second.subscribe(topic, "sub", pulsar.ConsumerType.Shared, schema=StringSchema())
        found = []
        for _ in range(COUNT // 2):
            message = consumer.receive(30_000)
            found.append(message.value())
            consumer.acknowledge(message)
        assert found == [str(number) for number in range(COUNT // 2, COUNT)]
    assert broker.end(signal.SIGTERM) == 0
    assert not list(broker.cwd.iterdir())


def test_the_tools_see_what_the_broker_made(broker: BrokerCommand, config: Path) -> None:
    broker.start()
    with client(broker.url) as connected:
        connected.create_producer("seen").send(b"one")
    assert broker.end(signal.SIGTERM) == 0
    where = ("--config", str(config), "-o", "json")
    rows = [json.loads(line) for line in tool("ledger", "list", *where).splitlines()]
    (row,) = [row for row in rows if row["owner"] == "public/default/persistent/seen"]
    assert (row["state"], row["last_entry"]) == ("CLOSED", 0)
    shown = json.loads(tool("ledger", "info", str(row["ledger"]), *where))
    assert (shown["ensemble_size"], shown["write_quorum"], shown["ack_quorum"]) == (3, 3, 2)
    assert shown["labels"]["pulsar/cluster"] == CLUSTER
    (entry,) = tool("ledger", "read", str(row["ledger"]), "--bytes", "0", *where).splitlines()
    assert json.loads(entry)["bytes"] > 3
    orphans = [json.loads(line) for line in tool("ledger", "orphans", *where).splitlines()]
    assert row["ledger"] not in [each["ledger"] for each in orphans]
    assert "public" in tool("metadata", "ls", "/managed-ledgers", "--config", str(config))
    cluster = json.loads(tool("metadata", "get", f"/admin/clusters/{CLUSTER}", *where))
    assert cluster["value"]["serviceUrl"] == "http://127.0.0.1:8080"
    assert (
        json.loads(tool("metadata", "stat", f"/admin/clusters/{CLUSTER}", *where))["owner"] is None
    )


def test_a_cluster_that_was_not_initialized_is_refused_and_nothing_is_written(
    bookkeeper: BookKeeperCluster, config: Path
) -> None:
    url = f"{bookkeeper.zookeeper.url}/nowhere"
    done = subprocess.run(
        [PULSAR_PY, "broker", "--config", str(config), "--set", f"metadataStoreUrl={url}",
         "--port", "0", "--web-port", "0"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "there is no cluster command" in done.stderr.splitlines()[-1]
    assert "run pulsar-py initialize-cluster-metadata" in done.stderr
    names = tool("metadata", "ls", "/", "--metadata-store", bookkeeper.zookeeper.url).split()
    assert "nowhere" not in names
