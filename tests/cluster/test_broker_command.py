"""`pulsar-py broker` as a process on a real ZooKeeper and real bookies, and the tools beside it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest
from pulsar.schema import StringSchema

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.our_broker import OurBroker, tool

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CLUSTER = "command"
COUNT = 300


@pytest.fixture
def broker(bookkeeper: BookKeeperCluster, tmp_path: Path) -> Iterator[OurBroker]:
    """One of a cluster of its own, in a chroot beside those of other tests."""
    made = OurBroker(tmp_path, f"{bookkeeper.zookeeper.url}/command", cluster=CLUSTER)
    yield made
    made.kill()


@contextlib.contextmanager
def client(url: str) -> Iterator[pulsar.Client]:
    connected = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    yield connected
    connected.close()


def test_a_cluster_is_initialized_once(broker: OurBroker) -> None:
    broker.initialize_cluster()
    assert "was there already; nothing was changed" in broker.initialize_cluster()


def test_what_was_confirmed_survives_kill_9_and_an_empty_directory(broker: OurBroker) -> None:
    broker.start()
    assert broker.ready_line.startswith(
        f"pulsar-py ready: {broker.service_url} {broker.web_service_url} cluster {CLUSTER} "
    )
    assert broker.ready() == 200
    topic = "persistent://public/default/kept"
    with client(broker.service_url) as first:
        consumer = first.subscribe(topic, "sub", pulsar.ConsumerType.Shared)
        producer = first.create_producer(topic, schema=StringSchema())
        for number in range(COUNT):
            producer.send(f"{number}")
        for _ in range(COUNT // 2):
            consumer.acknowledge(consumer.receive(20_000))
        time.sleep(2.5)  # acknowledgements are written a second later at the latest
    broker.kill()
    assert not list(broker.cwd.iterdir())

    broker.start()
    with client(broker.service_url) as second:
        consumer = second.subscribe(topic, "sub", pulsar.ConsumerType.Shared, schema=StringSchema())
        found = []
        for _ in range(COUNT // 2):
            message = consumer.receive(30_000)
            found.append(message.value())
            consumer.acknowledge(message)
        assert found == [str(number) for number in range(COUNT // 2, COUNT)]
    assert broker.stop() == 0
    assert not list(broker.cwd.iterdir())


def test_a_broker_on_bookies_has_no_files_to_lend(
    bookkeeper: BookKeeperCluster, tmp_path: Path
) -> None:
    socket = tmp_path / "lent"
    broker = OurBroker(
        tmp_path,
        f"{bookkeeper.zookeeper.url}/lending",
        cluster="lending",
        settings={"shortCircuitSocketPath": socket},
    )
    try:
        broker.start()
        with client(broker.service_url) as connected:
            connected.create_producer("persistent://public/default/t").send(b"stored")
        assert not socket.exists()
    finally:
        broker.kill()
    log = (tmp_path / "broker.log").read_text()
    assert "no short-circuit reads, all readers ask the broker for entries" in log
    assert "the ledgers are not in files of this broker" in log


def test_the_tools_see_what_the_broker_made(broker: OurBroker) -> None:
    broker.start()
    with client(broker.service_url) as connected:
        connected.create_producer("seen").send(b"one")
    assert broker.stop() == 0
    where = ("--config", str(broker.config), "-o", "json")
    rows = [json.loads(line) for line in tool("ledger", "list", *where).splitlines()]
    (row,) = [row for row in rows if row["owner"] == "public/default/persistent/seen"]
    assert (row["state"], row["lastEntry"]) == ("CLOSED", 0)
    shown = json.loads(tool("ledger", "info", str(row["ledger"]), *where))
    assert (shown["ensembleSize"], shown["writeQuorum"], shown["ackQuorum"]) == (3, 3, 2)
    assert shown["labels"]["pulsar/cluster"] == CLUSTER
    (entry,) = tool("ledger", "read", str(row["ledger"]), "--bytes", "0", *where).splitlines()
    assert json.loads(entry)["bytes"] > 3
    orphans = [json.loads(line) for line in tool("ledger", "orphans", *where).splitlines()]
    assert row["ledger"] not in [each["ledger"] for each in orphans]
    assert "public" in tool("metadata", "ls", "/managed-ledgers", "--config", str(broker.config))
    cluster = json.loads(tool("metadata", "get", f"/admin/clusters/{CLUSTER}", *where))
    assert cluster["value"]["serviceUrl"].startswith("http://127.0.0.1:")
    assert (
        json.loads(tool("metadata", "stat", f"/admin/clusters/{CLUSTER}", *where))["owner"] is None
    )


def test_a_cluster_that_was_not_initialized_is_refused_and_nothing_is_written(
    bookkeeper: BookKeeperCluster, tmp_path: Path
) -> None:
    broker = OurBroker(tmp_path, f"{bookkeeper.zookeeper.url}/nowhere", cluster=CLUSTER)
    done = subprocess.run(broker.command(), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert f"there is no cluster {CLUSTER}" in done.stderr.splitlines()[-1]
    assert "run pulsar-py initialize-cluster-metadata" in done.stderr
    names = tool("metadata", "ls", "/", "--metadata-store", bookkeeper.zookeeper.url).split()
    assert "nowhere" not in names


async def test_ledgers_of_a_namespace_lie_on_the_bookies_it_is_bound_to(
    bookkeeper: BookKeeperCluster, broker: OurBroker
) -> None:
    broker.start()
    near, *far = (bookie.bookie_id for bookie in bookkeeper.bookies)
    groups = {
        "near": {near: {"rack": "/one"}},
        "far": {bookie_id: {"rack": "/two"} for bookie_id in far},
    }
    address = ZooKeeperAddress.parse(f"{bookkeeper.zookeeper.url}/command")
    store = await ZooKeeperMetadataStore.open(address, SystemClock())
    await store.put("/bookies", json.dumps(groups).encode())
    try:
        ensembles = await asyncio.to_thread(ensembles_of_bound_topics, broker)
    finally:
        await store.delete("/bookies")
        await store.close()
    assert ensembles == [{near}, set(far), {near, *far}]


def ensembles_of_bound_topics(broker: OurBroker) -> list[set[str]]:
    """Of a topic bound to one group of one bookie, of one bound to two, and of one that is free."""
    found = []
    for group, size in (("near", 1), ("far", 2), (None, 3)):
        namespace = f"public/{group}"
        path = f"namespaces/{namespace}"
        broker.ask("PUT", path, {"bundles": {"numBundles": 1}})
        quorums = ("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum")
        broker.ask("POST", f"{path}/persistence", dict.fromkeys(quorums, size))
        if group is not None:
            affinity = {"bookkeeperAffinityGroupPrimary": group}
            broker.ask("POST", f"{path}/persistence/bookieAffinity", affinity)
        with client(broker.service_url) as connected:
            connected.create_producer(f"persistent://{namespace}/t").send(b"one")
        internal = broker.get(f"persistent/{namespace}/t/internalStats")
        ledger_id = str(internal["ledgers"][-1]["ledgerId"])
        shown = json.loads(
            tool("ledger", "info", ledger_id, "--config", str(broker.config), "-o", "json")
        )
        assert shown["ackQuorum"] == size
        found.append({each for ensemble in shown["ensembles"].values() for each in ensemble})
    return found
