"""Measure brokers on ZooKeeper and BookKeeper; `make bench-cluster` runs it.

Three bookies, every entry on all of them, two of which have to confirm it. On them a broker of ours
and one of Apache Pulsar's, each with metadata of its own, take turns within each load; who begins
changes from round to round, and each round gives one ratio, ours / Apache Pulsar's. Printed are the
medians. CPU is that of the broker's process alone, all threads. It needs Java 17 and Maven.

`--ours-only` measures ours without the other one; `--list` names the loads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from benchmarks import loads
from benchmarks.__main__ import RESULTS, Load, describe, median_figures, run_load
from benchmarks.loads import Figures
from benchmarks.targets import Target
from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import ROOT, BookKeeperCluster
from tests.cluster.our_broker import OurBroker

MEGABYTE: Final = 1 << 20
OURS: Final = "pulsar_py"
APACHE: Final = "apache_pulsar"

SETTINGS: Final = {
    "managedLedgerCacheSizeMB": 32,
    "managedLedgerMaxEntriesPerLedger": 1_000_000,
}

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


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


def _target(name: str, broker: OurBroker | ApacheBroker) -> Target:
    return Target(
        name, "127.0.0.1", _port(broker.service_url), broker.pid,
        web_port=_port(broker.web_service_url),
    )  # fmt: skip


@contextmanager
def running(directory: Path, *, ours_only: bool) -> Iterator[list[Target]]:
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
        targets = [_target(OURS, ours)]
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
            targets.append(_target(APACHE, apache))
        yield targets


def measure(
    load: Load, targets: Sequence[Target], rounds: int, seconds: float
) -> dict[str, list[Figures]]:
    """The figures of each round, by the broker's name, after one to warm up that does not count."""
    for target in targets:
        run_load(load, target, min(seconds, 2.0))
    taken: dict[str, list[Figures]] = {target.name: [] for target in targets}
    for number in range(rounds):
        for target in targets if number % 2 == 0 else reversed(targets):
            taken[target.name].append(run_load(load, target, seconds))
    return taken


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
    for figure in (load.figure, "cpu_micros_per_entry"):
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
    parser.add_argument("--ours-only", action="store_true")
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
    rows: dict[str, object] = {}
    with (
        tempfile.TemporaryDirectory(prefix="bench-cluster-", dir=arguments.directory) as name,
        running(Path(name).resolve(), ours_only=arguments.ours_only) as targets,
    ):
        for load in chosen:
            rows[load.name] = report(
                load, measure(load, targets, arguments.rounds, arguments.seconds)
            )
    path = RESULTS / time.strftime("cluster-%Y%m%d-%H%M%S.json")
    path.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
