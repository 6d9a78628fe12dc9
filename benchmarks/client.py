"""Measure our client beside the official package; `make bench-client` runs it.

    python -m benchmarks.client [--rounds 5] [--seconds 4] [--only consume] [--clients blocking]
        [--profile]

One broker (`pulsar-py standalone`) serves all of them, for latencies one that keeps its data in
memory, so that they are not those of a disk which others use, too; each client runs in a process of
its own, with the same settings, and they take turns within each load, another one first in each
round: what counts are ratios of medians within one run. Ours runs on asyncio's own loop, on uvloop,
and blocking (`pulsar_py.blocking`). CPU is that of the client's process, all threads, for each
message. `--profile` runs ours under cProfile
once for each load instead, and prints where its time goes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.client_loads import Job, Run
from benchmarks.limited_rows import those_named
from benchmarks.targets import Target, start_ours

RESULTS = Path(__file__).with_name("results")
BACKLOG_MESSAGES = 200_000
OFFICIAL = "official"


@dataclass(frozen=True, slots=True)
class Client:
    """One column: whose client, on which loop."""

    name: str
    module: str
    loop: str = "asyncio"


PROFILED = Client("ours, uvloop", "benchmarks.client_ours", loop="uvloop")
CLIENTS = (
    Client(OFFICIAL, "benchmarks.client_official"),
    Client("ours, asyncio", "benchmarks.client_ours"),
    PROFILED,
    Client("ours, blocking", "benchmarks.client_blocking"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One load, and what it has to reach beside the official package."""

    load: str
    title: str
    least_ratio: float
    in_memory: bool = False
    """Whether the broker keeps its data in memory."""


ROWS = (
    Row("produce-batched", "produce 1 KB, batches of 1,000", 3.0),
    Row("consume", "consume 1 KB, batches of 1,000", 3.0),
    Row("produce-unbatched", "produce 1 KB, unbatched", 1.5),
    Row("plain-batched", "produce 1 KB without callbacks, batches of 1,000", 2.0),
    Row("plain-unbatched", "produce 1 KB without callbacks, unbatched", 1.5),
    Row("latency", "latency at 1,000/s, 1 KB", 1.0, in_memory=True),
    Row("one-by-one", "send, receive and acknowledge 1 KB, one by one", 1.0, in_memory=True),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over the rounds of one client and load."""

    messages_per_second: float
    cpu_micros_per_message: float
    broker_cpu_micros_per_message: float
    publish_p50_millis: float | None = None
    publish_p99_millis: float | None = None
    publish_p999_millis: float | None = None
    end_to_end_p50_millis: float | None = None
    end_to_end_p99_millis: float | None = None
    end_to_end_p999_millis: float | None = None


def work(client: Client, job: Job, directory: Path) -> Run:
    """Run one job in a process; returns what it measured."""
    command = [sys.executable, "-m", client.module, json.dumps(asdict(job))]
    with (directory / "client.log").open("a") as log:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=None if job.profile else log,
            text=True,
            timeout=300,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{client.name}, {job.load}: ended with {done.returncode}, see {log.name}")
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def percentile(values: list[float], share: float) -> float | None:
    """Of sorted values."""
    return values[min(int(len(values) * share), len(values) - 1)] if values else None


def figures_of(run: Run, broker_cpu_seconds: float) -> Figures:
    """One round."""
    return Figures(
        messages_per_second=run.messages / run.seconds,
        cpu_micros_per_message=run.cpu_seconds / run.messages * 1e6,
        broker_cpu_micros_per_message=broker_cpu_seconds / run.messages * 1e6,
        publish_p50_millis=percentile(run.publish_millis, 0.5),
        publish_p99_millis=percentile(run.publish_millis, 0.99),
        publish_p999_millis=percentile(run.publish_millis, 0.999),
        end_to_end_p50_millis=percentile(run.end_to_end_millis, 0.5),
        end_to_end_p99_millis=percentile(run.end_to_end_millis, 0.99),
        end_to_end_p999_millis=percentile(run.end_to_end_millis, 0.999),
    )


def medians(rounds: list[Figures]) -> Figures:
    """The median of each figure."""
    dicts = [asdict(figures) for figures in rounds]
    values: dict[str, Any] = {  # Any: some figures may be None
        name: None if value is None else statistics.median(each[name] for each in dicts)
        for name, value in dicts[0].items()
    }
    return Figures(**values)


def ratio(ours: Figures, official: Figures) -> float:
    """The ratio of ours to the official package; above 1 is better."""
    if official.end_to_end_p50_millis is None:
        return ours.messages_per_second / official.messages_per_second
    assert ours.end_to_end_p50_millis is not None
    return official.end_to_end_p50_millis / ours.end_to_end_p50_millis


def describe(figures: Figures) -> str:
    """One line of the table."""
    cpu = (
        f"{figures.cpu_micros_per_message:6.2f} us CPU a message "
        f"(broker {figures.broker_cpu_micros_per_message:.2f})"
    )
    if figures.publish_p50_millis is None:
        return f"{figures.messages_per_second / 1000:8.1f}k/s  {cpu}"
    return (
        f"confirmed p50 {figures.publish_p50_millis:.2f} p99 {figures.publish_p99_millis:.2f} "
        f"p99.9 {figures.publish_p999_millis:.2f}  "
        f"received p50 {figures.end_to_end_p50_millis:.2f} "
        f"p99 {figures.end_to_end_p99_millis:.2f} p99.9 {figures.end_to_end_p999_millis:.2f} ms  "
        f"{cpu}"
    )


class Bench:
    """One run: a broker, and everything measured against it."""

    def __init__(
        self,
        target: Target,
        directory: Path,
        clients: Sequence[Client],
        *,
        rounds: int,
        seconds: float,
    ) -> None:
        self._target = target
        self._clients = clients
        self._directory = directory
        self._rounds = rounds
        self._seconds = seconds
        self._topics_count = 0
        self._url = f"pulsar://{target.host}:{target.port}"

    def _job(self, load: str) -> Job:
        self._topics_count += 1
        topic = f"persistent://public/default/client-bench-{self._topics_count}"
        return Job(load, self._url, topic, self._seconds)

    def fill(self) -> Job:
        """Put a backlog there; returns the job that consumes it."""
        job = replace(self._job("fill"), messages=BACKLOG_MESSAGES)
        work(CLIENTS[0], job, self._directory)
        return replace(job, load="consume")

    def measure(self, row: Row) -> dict[str, list[Figures]]:
        """All rounds of one load; the clients take turns."""
        clients = self._clients
        taken: dict[str, list[Figures]] = {client.name: [] for client in clients}
        backlog = self.fill() if row.load == "consume" else None
        for number in range(self._rounds):
            first = number % len(clients)
            for client in (*clients[first:], *clients[:first]):
                job = replace(backlog or self._job(row.load), loop=client.loop)
                job = replace(job, subscription=f"{client.name} {number}")
                before = self._target.cpu_seconds()
                run = work(client, job, self._directory)
                broker = self._target.cpu_seconds() - before
                taken[client.name].append(figures_of(run, broker))
        return taken

    def profile(self, row: Row) -> None:
        """Ours once, under cProfile, on stderr."""
        job = self.fill() if row.load == "consume" else self._job(row.load)
        job = replace(job, subscription="profile", loop="uvloop", profile=True)
        print(row.title, file=sys.stderr, flush=True)
        run = work(PROFILED, job, self._directory)
        print(f"{row.title}, under the profiler: {describe(figures_of(run, 0.0))}", flush=True)


def print_row(row: Row, taken: dict[str, list[Figures]]) -> None:
    """One load's line for each client, with the ratio to the official package."""
    print(row.title)
    official = medians(taken[OFFICIAL])
    for name, rounds in taken.items():
        figures = medians(rounds)
        print(f"    {name:<14} {describe(figures)}", end="")
        if name != OFFICIAL:
            cpu = official.cpu_micros_per_message / figures.cpu_micros_per_message
            times = ratio(figures, official)
            print(f"  ratio {times:.2f} (aim {row.least_ratio:.1f}), of CPU {cpu:.2f}", end="")
        print(flush=True)


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", default="", help="run loads whose name holds this text")
    parser.add_argument(
        "--clients", default="", help="of ours measure those whose name holds this text"
    )
    parser.add_argument("--profile", action="store_true", help="print where our time goes")
    parser.add_argument("--directory", type=Path, default=Path("build"), help="for data and logs")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(exist_ok=True)
    chosen = those_named("--only", arguments.only, ROWS, lambda row: row.load)
    table: dict[str, dict[str, list[Figures]]] = {}
    for in_memory in (False, True):
        rows = [row for row in chosen if row.in_memory is in_memory]
        if rows:
            table |= measure_rows(rows, arguments, in_memory=in_memory)
    if table:
        write_results(table)


def measure_rows(
    rows: list[Row], arguments: argparse.Namespace, *, in_memory: bool
) -> dict[str, dict[str, list[Figures]]]:
    """Rows that share a broker, which runs meanwhile; nothing with `--profile`."""
    target = start_ours(arguments.directory, in_memory=in_memory)
    table = {}
    try:
        bench = Bench(
            target,
            arguments.directory,
            [each for each in CLIENTS if each.name == OFFICIAL or arguments.clients in each.name],
            rounds=arguments.rounds,
            seconds=arguments.seconds,
        )
        for row in rows:
            if arguments.profile:
                bench.profile(row)
                continue
            table[row.load] = bench.measure(row)
            print_row(row, table[row.load])
    finally:
        target.stop()
    return table


def write_results(table: dict[str, dict[str, list[Figures]]]) -> None:
    """Every round of everything, as JSON."""
    path = RESULTS / time.strftime("client-%Y%m%d-%H%M%S.json")
    result = {
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "loads": {
            load: {name: [asdict(each) for each in rounds] for name, rounds in row.items()}
            for load, row in table.items()
        },
    }
    path.write_text(json.dumps(result, indent=2))
    print(f"written to {path}")


if __name__ == "__main__":
    main()
