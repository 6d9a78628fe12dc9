"""Measure one, two and three brokers of ONE cluster on one machine.

    python -m benchmarks.several_brokers [--brokers 1 2 3] [--rounds 3] [--seconds 2]

One ZooKeeper and one bookie, which keeps every entry once, serve all of them. Each number of
brokers is a cluster of its own below its chroot, and the clusters take turns. Topics are dealt by
bundles, whose owners the brokers choose, and clients connect to the owner that a lookup names. One
process generates the load. It needs Java 17 and Maven.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import uvloop

from benchmarks import spread_loads
from benchmarks.__main__ import RESULTS
from benchmarks.spread_loads import Figures, describe
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.mixed_cluster import lookup
from tests.cluster.our_broker import OurBroker

TOPICS: Final = 12
SETTINGS: Final = {
    "managedLedgerCacheSizeMB": 32,
    "managedLedgerMaxEntriesPerLedger": 1_000_000,
    "defaultNumberOfNamespaceBundles": 24,
    "loadBalancerSheddingEnabled": "false",
    "loadBalancerAutoBundleSplitEnabled": "false",
}
LOADS: Final = {
    "publish, 1 KB": partial(spread_loads.publish, size_bytes=1024, topics=TOPICS),
    "publish, 16 KB": partial(spread_loads.publish, size_bytes=16 << 10, topics=TOPICS),
    "tailing, 1 KB": partial(spread_loads.tail, size_bytes=1024, topics=TOPICS),
    "tailing, 16 KB": partial(spread_loads.tail, size_bytes=16 << 10, topics=TOPICS),
}


def _children_of(process: int) -> list[int]:
    """The process and what it has started: a server may run below a launcher."""
    found = [process]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process:
            found += _children_of(int(path.parent.name))
    return found


class Cluster:
    """So many brokers of one cluster, on the bookie that all clusters share."""

    def __init__(
        self, directory: Path, bookkeeper: BookKeeperCluster, count: int, stack: ExitStack
    ) -> None:
        """Start them; `stack` kills them."""
        self.count = count
        self.taken: dict[str, list[Figures]] = {name: [] for name in LOADS}
        self._brokers = []
        url = f"{bookkeeper.zookeeper.url}/of-{count}"
        for number in range(count):
            broker = OurBroker(
                directory / f"{count}-{number}", url, settings=SETTINGS, quorums=(1, 1, 1)
            )
            stack.callback(broker.kill)
            broker.start()
            self._brokers.append(broker)

    def processes(self) -> list[int]:
        """Those of its brokers."""
        return [each for broker in self._brokers for each in _children_of(broker.pid)]

    def run(self, name: str, servers: Sequence[int], seconds: float) -> Figures:
        """One load, once."""

        async def locate(topic: str) -> int:
            path = topic.replace("://", "/")
            found = await asyncio.to_thread(lookup, self._brokers[0].web_service_url, path)
            return int(found.rpartition(":")[2])

        kinds = {"brokers": self.processes(), "bookie and ZooKeeper": servers}
        return uvloop.run(LOADS[name](locate, kinds, seconds=seconds))


def measure(clusters: Sequence[Cluster], rounds: int, seconds: float) -> None:
    """Have all clusters take turns within each load of each round.

    So the bookie's machine of Java is as old for each; the first round warms it up.
    """
    brokers = {process for cluster in clusters for process in cluster.processes()}
    servers = [each for each in _children_of(os.getpid()) if each not in {os.getpid(), *brokers}]
    for number in range(rounds + 1):
        for name in LOADS:
            for cluster in clusters if number % 2 else reversed(clusters):
                figures = cluster.run(name, servers, seconds)
                if number:
                    cluster.taken[name].append(figures)


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.several_brokers")
    parser.add_argument("--brokers", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--directory", type=Path, default=Path("build"), help="for data")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(exist_ok=True)
    rows: dict[str, object] = {"load_average": os.getloadavg()}
    with tempfile.TemporaryDirectory(prefix="several-", dir=arguments.directory) as name:
        directory = Path(name).resolve()
        bookkeeper = BookKeeperCluster(
            directory, bookies_count=1, settings={"dbStorage_writeCacheMaxSizeMb": 64}
        )
        with ExitStack() as stack:
            stack.callback(bookkeeper.kill)
            bookkeeper.start()
            clusters = [Cluster(directory, bookkeeper, count, stack) for count in arguments.brokers]
            measure(clusters, arguments.rounds, arguments.seconds)
            for load in LOADS:
                for cluster in clusters:
                    figures = cluster.taken[load]
                    print(f"{cluster.count} brokers, {load:<15} {describe(figures)}", flush=True)
                    rows[f"{cluster.count}, {load}"] = [each.entries_per_second for each in figures]
    path = RESULTS / time.strftime("several-%Y%m%d-%H%M%S.json")
    path.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"written to {path}; load {os.getloadavg()}")


if __name__ == "__main__":
    main()
