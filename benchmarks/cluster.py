"""Measure brokers on ZooKeeper and BookKeeper; `make bench-cluster` runs it.

Three bookies, every entry on all of them, two of which have to confirm it. On them a broker of ours
and one of Apache Pulsar's, each with metadata of its own, take turns within each load; who begins
changes from round to round, and each round gives one ratio, ours / Apache Pulsar's. Printed are the
medians. CPU is that of the broker's process, all threads, and of publishing that of the bookies
together beside it. Before the first load all are warmed up. It needs Java 17 and Maven.

`--mixed` measures two brokers of one cluster instead, one of each kind: before its turn, a broker
is given all topics, and the other one stays in the cluster.

`--ours-only` measures ours without the other one; `--list` names the loads.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from benchmarks import loads
from benchmarks.__main__ import RESULTS, Load, describe, median_figures, run_load
from benchmarks.loads import Figures
from benchmarks.targets import Target
from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import ROOT, BookKeeperCluster
from tests.cluster.mixed_cluster import SETTINGS as MIXED
from tests.cluster.mixed_cluster import Broker, Mixed, ask_on, lookup
from tests.cluster.our_broker import OurBroker

MEGABYTE: Final = 1 << 20
OURS: Final = "pulsar_py"
APACHE: Final = "apache_pulsar"

SETTINGS: Final = {
    "managedLedgerCacheSizeMB": 32,
    "managedLedgerMaxEntriesPerLedger": 1_000_000,
}

BALANCING: Final = {key: value for key, value in MIXED.items() if key.startswith("loadBalancer")}
"""Of brokers of a mixed cluster: nothing moves by itself."""
MOVE_SECONDS: Final = 60.0

LOADS: Final = (
    *(
        Load(
            f"publish, {label}, {count} topic{'s' * (count > 1)}",
            lambda target, seconds, size=size, count=count: loads.durable_publish(  # type: ignore[misc]
                target, size_bytes=size, connections=count, seconds=seconds
            ),
        )
        for label, size, count in (
            ("100 B", 100, 1),
            ("100 B", 100, 10),
            ("1 KB", 1024, 1),
            ("1 KB", 1024, 10),
            ("16 KB", 16 * 1024, 1),
            ("128 KB", 128 * 1024, 1),
        )
    ),
    Load(
        "tailing, 1 KB",
        lambda target, seconds: loads.tailing_consume(target, subscriptions=1, seconds=seconds),
    ),
    Load(
        "catch-up, 1 KB, 128 MB backlog",
        lambda target, _: loads.catch_up(target, backlog_bytes=128 * MEGABYTE),
    ),
    Load(
        "publish to receive at 500/s",
        lambda target, seconds: loads.end_to_end_latency(
            target, rate_per_second=500, seconds=2 * seconds
        ),
        figure="p50_millis",
    ),
)
WARMING: Final = ("publish, 1 KB, 10 topics", "publish, 16 KB, 1 topic")
"""The loads that warm up the machines of Java, before all others."""


Prepare = Callable[[Target], None]
"""What is done before a broker's turn."""


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


def _target(name: str, broker: Broker, bookkeeper: BookKeeperCluster) -> Target:
    return Target(
        name, "127.0.0.1", _port(broker.service_url), broker.pid,
        web_port=_port(broker.web_service_url),
        stores=tuple(bookie.pid for bookie in bookkeeper.bookies),
    )  # fmt: skip


@contextmanager
def running(directory: Path, *, ours_only: bool) -> Iterator[tuple[list[Target], Prepare]]:
    """The brokers on their bookies; all of them are killed afterwards."""
    bookkeeper = BookKeeperCluster(
        directory, bookies_count=3, settings={"dbStorage_writeCacheMaxSizeMb": 64}
    )
    with ExitStack() as stack:
        bookkeeper.start()
        stack.callback(bookkeeper.kill)
        url = bookkeeper.zookeeper.url
        ours = OurBroker(directory / "ours", f"{url}/ours", settings=SETTINGS)
        stack.callback(ours.kill)
        ours.start()
        targets = [_target(OURS, ours, bookkeeper)]
        if not ours_only:
            uri = f"zk+hierarchical://{bookkeeper.zookeeper.hosts}{ROOT}"
            apache = ApacheBroker(
                directory / "apache",
                f"{url}/apache",
                settings={**SETTINGS, "bookkeeperMetadataServiceUri": uri},
            )
            stack.callback(apache.kill)
            apache.initialize_cluster()
            apache.start()
            targets.append(_target(APACHE, apache, bookkeeper))
        yield targets, _as_it_is


@contextmanager
def running_mixed(directory: Path) -> Iterator[tuple[list[Target], Prepare]]:
    """Both brokers of one cluster, and what gives one of them all topics; killed afterwards."""
    bookkeeper = BookKeeperCluster(
        directory, bookies_count=3, settings={"dbStorage_writeCacheMaxSizeMb": 64}
    )
    with ExitStack() as stack:
        bookkeeper.start()
        stack.callback(bookkeeper.kill)
        url = f"{bookkeeper.zookeeper.url}/mixed"
        uri = f"zk+hierarchical://{bookkeeper.zookeeper.hosts}{ROOT}"
        settings = {**SETTINGS, **BALANCING, "bookkeeperMetadataServiceUri": uri}
        ours = OurBroker(directory / "ours", url, settings=settings)
        apache = ApacheBroker(directory / "apache", url, settings=settings)
        for broker in (ours, apache):
            stack.callback(broker.kill)
            broker.start()
        brokers: dict[str, Broker] = {OURS: ours, APACHE: apache}

        def prepare(target: Target) -> None:
            give_all_topics(Mixed([*brokers.values()]), brokers[target.name])

        yield [_target(name, broker, bookkeeper) for name, broker in brokers.items()], prepare


def give_all_topics(cluster: Mixed, to: Broker) -> None:
    """Have each bundle of the namespace of all loads at a broker; wait until it is there."""
    asked, namespace = cluster.brokers[0], "public/default"
    broker_id = to.web_service_url.removeprefix("http://")
    edges = ask_on(asked, "GET", f"namespaces/{namespace}/bundles")["boundaries"]
    names = [f"persistent/{namespace}/where-{number}" for number in range(16 * len(edges))]
    deadline = time.monotonic() + MOVE_SECONDS
    while (found := _owners(asked, names)) != {to.service_url}:
        if time.monotonic() > deadline:
            raise RuntimeError(f"bundles of {namespace} are at {found}, not at {to.service_url}")
        for low, high in pairwise(edges):
            path = f"namespaces/{namespace}/{low}_{high}/unload?destinationBroker={broker_id}"
            with suppress(OSError):
                ask_on(asked, "PUT", path)


def _owners(asked: Broker, names: Sequence[str]) -> set[str]:
    """Where these topics are; `nowhere` stands for those that are on their way."""
    found = set()
    for name in names:
        try:
            found.add(lookup(asked.web_service_url, name))
        except OSError:
            found.add("nowhere")
    return found


def _as_it_is(_: Target) -> None:
    """Brokers with metadata of their own have all topics."""


def measure(
    load: Load,
    targets: Sequence[Target],
    rounds: int,
    seconds: float,
    prepare: Prepare = _as_it_is,
) -> dict[str, list[Figures]]:
    """The figures of each round, by the broker's name, after one to warm up that does not count."""
    for target in targets:
        prepare(target)
        run_load(load, target, min(seconds, 2.0))
    taken: dict[str, list[Figures]] = {target.name: [] for target in targets}
    for number in range(rounds):
        for target in targets if number % 2 == 0 else reversed(targets):
            prepare(target)
            taken[target.name].append(run_load(load, target, seconds))
    return taken


def warm_up(targets: Sequence[Target], seconds: float, prepare: Prepare = _as_it_is) -> None:
    """Publish by turns, small entries and large ones, for so long on each broker.

    The machines of Java, those of the bookies too, take minutes until they run as fast as they can.
    """
    turns = [load for load in LOADS if load.name in WARMING]
    until = time.monotonic() + seconds * len(targets)
    while time.monotonic() < until:
        for target in targets:
            prepare(target)
            for load in turns:
                run_load(load, target, 1.0)


def ratios(taken: dict[str, list[Figures]], figure: str) -> list[float]:
    """Ours / Apache Pulsar's in each round; none where one of them has no such figure."""
    pairs = zip(taken[OURS], taken.get(APACHE, ()), strict=False)
    found = []
    for ours, other in pairs:
        mine, its = ours.as_dict().get(figure), other.as_dict().get(figure)
        if mine and its:
            found.append(mine / its)
    return found


def report(load: Load, taken: dict[str, list[Figures]]) -> dict[str, object]:
    """Print a load's medians; returns them for the file."""
    print(load.name)
    medians = {name: median_figures(figures) for name, figures in taken.items()}
    for name, figures in medians.items():
        print(f"    {name:<16} {describe(figures)}")
    row: dict[str, object] = {name: figures.as_dict() for name, figures in medians.items()}
    for figure in (load.figure, "cpu_micros_per_entry", "stores_cpu_micros_per_entry"):
        if found := ratios(taken, figure):
            median = statistics.median(found)
            row[f"ratio of {figure}"] = median
            spread = f"{min(found):.2f} to {max(found):.2f}"
            print(f"    ratio of {figure}: {median:.2f} ({spread})", flush=True)
    return row


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="a load's time in a round")
    parser.add_argument(
        "--loads", action="append", default=[], help="only loads whose name holds this; repeated"
    )
    parser.add_argument(
        "--warm-up", type=float, default=20.0, help="seconds of each broker before all loads"
    )
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--mixed", action="store_true", help="both brokers in one cluster")
    parser.add_argument("--list", action="store_true", help="print the loads' names")
    parser.add_argument("--directory", type=Path, default=Path("build"), help="for data")
    arguments = parser.parse_args()
    chosen = [
        load
        for load in LOADS
        if not arguments.loads or any(text in load.name for text in arguments.loads)
    ]
    if arguments.list:
        print("\n".join(load.name for load in chosen))
        return
    arguments.directory.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(exist_ok=True)
    rows: dict[str, object] = {"load_average": os.getloadavg()}
    with (
        tempfile.TemporaryDirectory(prefix="bench-cluster-", dir=arguments.directory) as name,
        running_mixed(Path(name).resolve())
        if arguments.mixed
        else running(Path(name).resolve(), ours_only=arguments.ours_only) as (targets, prepare),
    ):
        warm_up(targets, arguments.warm_up, prepare)
        for load in chosen:
            rows[load.name] = report(
                load, measure(load, targets, arguments.rounds, arguments.seconds, prepare)
            )
    kind = "mixed" if arguments.mixed else "cluster"
    path = RESULTS / time.strftime(f"{kind}-%Y%m%d-%H%M%S.json")
    path.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"written to {path}; load {os.getloadavg()}")


if __name__ == "__main__":
    main()
