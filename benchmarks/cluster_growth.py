"""Measure how brokers of one cluster grow with topics, and how long a dead one's are taken over.

Three brokers on three bookies and one ZooKeeper, sessions of 10 s. Each topic has a producer, a
subscription, a message and its acknowledgement. Printed are ZooKeeper's writes a topic (its
transactions, those of ledgers included), the memory of each broker beside that of `standalone` with
as many topics, and, after `kill -9` of one broker, the time from the end of its session, when the
first of its bundles was taken, until all its topics were loaded elsewhere, because their clients
asked for them. It needs Java 17 and Maven.

    python -m benchmarks.cluster_growth 300 900
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from pulsar_py.client.client import Client
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.our_broker import OurBroker
from tests.interop.broker_process import BrokerProcess

BROKERS: Final = ("a", "b", "c")
AT_ONCE: Final = 64
SETTINGS: Final = {
    "metadataStoreSessionTimeoutMillis": 10_000,
    "defaultNumberOfNamespaceBundles": 24,
}
TIMEOUT_SECONDS: Final = 120.0
"""For an operation of the client: a busy machine is slow, not wrong."""


class Figures(Struct, kw_only=True):
    """What one number of topics cost."""

    topics_count: int
    writes_a_topic: float
    megabytes: list[float]
    standalone_megabytes: float
    lost_count: int = 0
    """Topics of the broker that was killed."""
    session_seconds: float = 0.0
    """From its death to the first bundle that another one took."""
    takeover_seconds: float = 0.0
    """From then until all its topics were loaded."""
    cpu_seconds: float = 0.0
    """Processor time of both others meanwhile."""

    def lines(self) -> list[str]:
        """For people."""
        each_has = ", ".join(f"{each:.0f}" for each in self.megabytes)
        return [
            f"{self.topics_count} topics: {self.writes_a_topic:.1f} ZooKeeper writes a topic",
            f"  memory of the brokers: {each_has} MB",
            f"  of standalone with a third of them: {self.standalone_megabytes:.0f} MB",
            f"  kill -9: {self.lost_count} topics, session over after {self.session_seconds:.1f} s",
            f"  all loaded {self.takeover_seconds:.1f} s later",
            f"  processor time of the others from the kill on: {self.cpu_seconds:.1f} s",
        ]


def resident_megabytes(pid: int) -> float:
    """`VmRSS` of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(each for each in lines if each.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def zookeeper_writes(cluster: BookKeeperCluster) -> int:
    """The low half of the last transaction's id: writes since the leader was elected."""
    lines = cluster.zookeeper.ask(b"srvr").decode().splitlines()
    line = next(each for each in lines if each.startswith("Zxid:"))
    return int(line.split()[1], 16) & 0xFFFFFFFF


async def open_topics(client: Client, names: Sequence[str]) -> None:
    """A producer and a subscription each, which stay, and one acknowledged message."""
    opening = asyncio.Semaphore(AT_ONCE)

    async def open_one(name: str) -> None:
        async with opening:
            consumer = await client.subscribe(name, "s", ack_receipt_enabled=True)
            producer = await client.create_producer(name)
            await producer.send(b"x")
            await consumer.acknowledge(await consumer.receive())

    await asyncio.gather(*map(open_one, names))


def loaded_count(broker: OurBroker) -> int:
    """Topics that a broker has loaded; not from its page of metrics, which costs it each topic."""
    return int(broker.get("brokers/load")["loadedTopics"])


async def standalone_megabytes(directory: Path, count: int) -> float:
    """The memory of a broker on its own disk with as many topics."""
    broker = BrokerProcess(directory, log=directory.with_suffix(".log"))
    await asyncio.to_thread(broker.start)
    try:
        async with Client(broker.service_url, operation_timeout_seconds=TIMEOUT_SECONDS) as client:
            await open_topics(client, [f"t{number}" for number in range(count)])
            return resident_megabytes(broker.pid)
    finally:
        broker.kill()


async def measure(cluster: BookKeeperCluster, directory: Path, count: int) -> Figures:
    """One number of topics in a cluster of its own beside the bookies."""
    url = f"{cluster.zookeeper.url}/growth-{count}"
    brokers = [OurBroker(directory / name, url, settings=SETTINGS) for name in BROKERS]
    try:
        for broker in brokers:
            await asyncio.to_thread(broker.start)
        hosts = ",".join(each.service_url.removeprefix("pulsar://") for each in brokers)
        async with Client(f"pulsar://{hosts}", operation_timeout_seconds=TIMEOUT_SECONDS) as client:
            before = zookeeper_writes(cluster)
            await open_topics(client, [f"t{number}" for number in range(count)])
            found = Figures(
                topics_count=count,
                writes_a_topic=(zookeeper_writes(cluster) - before) / count,
                megabytes=[resident_megabytes(each.pid) for each in brokers],
                standalone_megabytes=await standalone_megabytes(
                    directory / "standalone", count // len(BROKERS)
                ),
            )
            await kill_one(brokers, found)
            return found
    finally:
        for broker in brokers:
            broker.kill()


async def kill_one(brokers: Sequence[OurBroker], found: Figures) -> None:
    """Kill the broker with the most topics, and wait until the others have all of them."""
    counts = [await asyncio.to_thread(loaded_count, each) for each in brokers]
    victim = brokers[counts.index(max(counts))]
    others = [each for each in brokers if each is not victim]
    before = sum(cpu_seconds(each.pid) for each in others)
    found.lost_count = max(counts)
    owned = await bundles_of(others)
    killed_at = time.monotonic()
    await asyncio.to_thread(victim.kill)
    while await bundles_of(others) == owned:
        await asyncio.sleep(0.1)
    taken_at = time.monotonic()
    while sum([await asyncio.to_thread(loaded_count, each) for each in others]) < sum(counts):
        await asyncio.sleep(0.1)
    found.session_seconds = taken_at - killed_at
    found.takeover_seconds = time.monotonic() - taken_at
    found.cpu_seconds = sum(cpu_seconds(each.pid) for each in others) - before


async def bundles_of(brokers: Sequence[OurBroker]) -> int:
    """How many bundles some brokers have."""
    answers = [await asyncio.to_thread(each.get, "brokers/load") for each in brokers]
    return sum(len(each["bundles"]) for each in answers)


async def main() -> None:
    """Measure each number of topics that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="+", type=int, help="topics over three brokers")
    counts = parser.parse_args().counts
    print(f"load of the machine at the start: {os.getloadavg()[0]:.0f}")
    with tempfile.TemporaryDirectory(prefix="growth-") as name:
        cluster = BookKeeperCluster(Path(name) / "cluster", bookies_count=3)
        try:
            cluster.start()
            for count in counts:
                found = await measure(cluster, Path(name) / str(count), count)
                print("\n".join(found.lines()), flush=True)
        finally:
            cluster.kill()


if __name__ == "__main__":
    asyncio.run(main())
