"""Measure the broker; `make bench` runs it. Prints a table and writes JSON.

First the machine itself, then every load in turn against each broker, several rounds; what counts
are ratios within one run. `--against NAME=HOST:PORT` adds a broker that runs already. CPU is that
of the broker's process, all threads, read from `/proc`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import uvloop

from benchmarks import calls_per_dispatch, calls_per_send, loads, longest_turn, machine, tls_crowd
from benchmarks.acknowledging_loads import acknowledge
from benchmarks.call_counter import CallCounts
from benchmarks.limited_rows import exit_with, say_how_it_ends, those_named
from benchmarks.loads import Figures
from benchmarks.starts import start_up
from benchmarks.targets import Target, running, start_ours

RESULTS = Path(__file__).with_name("results")
MEGABYTE = 1 << 20

SMALL_CACHES = {
    "managedLedgerCacheSizeMB": "16",
    "dbStorage_writeCacheMaxSizeMb": "16",
    "dbStorage_readAheadCacheMaxSizeMb": "16",
}
"""For the catch-up row: all caches together hold 64 MB (the write cache has two generations)."""

CATCH_UP_BACKLOG_BYTES = 256 * MEGABYTE
"""Four times those caches."""

LARGE_BACKLOG_BYTES = 512 * MEGABYTE
"""Of entries that are read at more than a gigabyte a second."""

PARTS = ("start", "calls", "turns")
"""What `--only` knows beside the loads."""

RUN_BYTES = 2048 * MEGABYTE
"""Of the rows that publish a number of bytes: more than the system leaves unwritten."""

CHUNK_BYTES = 5 * MEGABYTE - 10 * 1024
"""What clients put into a chunk where messages may have 5 MB, about."""


@dataclass(frozen=True, slots=True)
class Load:
    """A row of the table."""

    name: str
    run: Callable[[Target, float], Awaitable[Figures]]
    figure: str = "entries_per_second"
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of our broker, beside the defaults."""
    is_tls: bool = False
    """Over TLS; by our broker alone."""
    is_ours_alone: bool = False
    """By our broker alone for another reason."""
    run_at: Callable[[Target, float, int], Awaitable[Figures]] | None = None
    """The same at a rate that is given, where `run` goes by one that the broker itself reaches."""


LOADS = [
    *(
        Load(
            f"durable publish, unbatched, {label}, {count} connection{'s' * (count > 1)}",
            lambda target, seconds, size=size, count=count: loads.durable_publish(  # type: ignore[misc]
                target, size_bytes=size, connections=count, seconds=seconds
            ),
        )
        for label, size in (
            ("100 B", 100),
            ("1 KB", 1024),
            ("16 KB", 16384),
            ("128 KB", 128 * 1024),
            ("1 MB", MEGABYTE),
        )
        for count in (1, 10)
    ),
    *(
        Load(
            f"durable publish of 2 GB after a sync of all disks, {label}, 1 connection",
            lambda target, seconds, size=size: loads.durable_publish(  # type: ignore[misc]
                target, size_bytes=size, connections=1, seconds=seconds, total_bytes=RUN_BYTES
            ),
        )
        for label, size in (("16 KB", 16384), ("128 KB", 128 * 1024))
    ),
    Load(
        "durable publish, messages of 20 MB in 4 chunks, 1 connection",
        lambda target, seconds: loads.durable_publish(
            target, size_bytes=CHUNK_BYTES, connections=1, seconds=seconds, chunks_count=4
        ),
    ),
    *(
        Load(
            f"publish with ascending sequence ids, {label}, {'with' if is_on else 'without'} "
            "deduplication",
            lambda target, _, size=size, batch=batch: loads.publish_ascending(  # type: ignore[misc]
                target,
                size_bytes=size,
                batch=batch,
                # Enough for several flushes of the write cache, and little beside the memory.
                count=200_000 if batch == 1 else 40_000,
            ),
            settings={"brokerDeduplicationEnabled": str(is_on).lower()},
        )
        for label, size, batch in (
            ("100 B", 100, 1),
            ("1 KB", 1024, 1),
            ("batches of 100 x 100 B", 100, 100),
        )
        for is_on in (False, True)
    ),
    Load(
        "official client, batches of 1,000 x 1 KB",
        lambda target, seconds: loads.official_batched_publish(target, seconds=seconds),
    ),
    *(
        Load(
            f"tailing, {count} subscription{'s' * (count > 1)}, dispatched, {label}",
            lambda target, seconds, size=size, count=count: loads.tailing_consume(  # type: ignore[misc]
                target, subscriptions=count, seconds=seconds, size_bytes=size
            ),
        )
        for label, size, counts in (
            ("1 KB", 1024, (1, 4, 16)),
            ("16 KB", 16384, (4,)),
            ("128 KB", 128 * 1024, (4,)),
        )
        for count in counts
    ),
    *(
        Load(
            f"Shared, each message acknowledged, {label} receipts",
            lambda target, _, asks=asks: acknowledge(target, asks_for_receipts=asks),  # type: ignore[misc]
        )
        for label, asks in (("without", False), ("with", True))
    ),
    *(
        Load(
            f"catch-up, {label}, {backlog >> 20} MB backlog{', after a restart' * restarts}",
            lambda target, _, size=size, backlog=backlog, restarts=restarts: loads.catch_up(  # type: ignore[misc]
                target, backlog_bytes=backlog, size_bytes=size, restarts=restarts
            ),
            settings=SMALL_CACHES,
            is_ours_alone=restarts,
        )
        for label, size, backlog in (
            ("1 KB", 1024, CATCH_UP_BACKLOG_BYTES),
            ("16 KB", 16384, LARGE_BACKLOG_BYTES),
            ("128 KB", 128 * 1024, LARGE_BACKLOG_BYTES),
        )
        for restarts in (False, True)
    ),
    Load(
        "publish to receive at 1,000/s",
        lambda target, seconds: loads.end_to_end_latency(target, seconds=2 * seconds),
        figure="p50_millis",
    ),
    Load(
        "publish to receive at half of the maximal rate, 1 KB",
        lambda target, seconds: loads.latency_at_half_rate(target, seconds=2 * seconds),
        figure="p50_millis",
        run_at=lambda target, seconds, rate: loads.latency_at_rate(
            target, rate_per_second=rate, seconds=2 * seconds
        ),
    ),
    Load("2,000 connections opened", lambda target, _: loads.many_connections(target), "seconds"),
    *(
        Load(
            f"durable publish over TLS, unbatched, {label}, 1 connection",
            lambda target, seconds, size=size: loads.durable_publish(  # type: ignore[misc]
                target, size_bytes=size, connections=1, seconds=seconds
            ),
            is_tls=True,
        )
        for label, size in (("1 KB", 1024), ("128 KB", 128 * 1024))
    ),
    Load(
        "2,000 connections opened over TLS",
        lambda target, _: loads.many_connections(target),
        "seconds",
        is_tls=True,
    ),
    Load(
        "receipts among 2,000 silent TLS connections and 500 handshakes a second (200 ms at most)",
        lambda target, seconds: tls_crowd.receipts_in_a_crowd(target, seconds=max(8.0, seconds)),
        "worst_millis",
        is_tls=True,
    ),
]


def median_figures(rounds: list[Figures]) -> Figures:
    """The median of each figure."""
    dicts = [figures.as_dict() for figures in rounds]
    return Figures(**{name: statistics.median(d[name] for d in dicts) for name in dicts[0]})


def describe(figures: Figures) -> str:
    """One cell of the table."""
    parts = []
    if figures.entries_per_second is not None:
        parts.append(f"{figures.entries_per_second / 1000:7.1f}k/s")
    if figures.megabytes_per_second is not None:
        parts.append(f"{figures.megabytes_per_second:6.0f} MB/s")
    if figures.p50_millis is not None:
        parts.append(
            f"p50 {figures.p50_millis:.2f} p99 {figures.p99_millis:.2f} "
            f"p999 {figures.p999_millis:.2f} ms"
        )
    if figures.worst_millis is not None:
        parts.append(f"worst {figures.worst_millis:.1f} ms")
    if figures.seconds is not None:
        parts.append(f"{figures.seconds:.2f} s")
    if figures.cpu_micros_per_entry is not None:
        parts.append(f"{figures.cpu_micros_per_entry:6.1f} us CPU")
    if figures.stores_cpu_micros_per_entry is not None:
        parts.append(f"and {figures.stores_cpu_micros_per_entry:6.1f} us of its stores")
    if figures.entry_log_megabytes_read is not None:
        parts.append(f"{figures.entry_log_megabytes_read:.0f} MB of entry logs read")
    return " ".join(parts)


def run_load(load: Load, target: Target, seconds: float) -> Figures:
    """Run one load in a fresh loop."""
    return uvloop.run(load.run(target, seconds))  # type: ignore[arg-type]  # An awaitable will do.


def measure_brokers(
    chosen: list[Load], others: list[Target], directory: Path, *, rounds: int, seconds: float
) -> tuple[dict[str, dict[str, Figures]], list[str]]:
    """Load name to broker name to medians, and why loads are missing.

    Brokers take turns within each load. Another broker that breaks off a load is left out of it,
    and that is said; if ours does, the whole load is.
    """
    table: dict[str, dict[str, Figures]] = {}
    missing: list[str] = []
    for load in chosen:
        print(f"{load.name} ...")
        try:
            table[load.name] = measure_load(load, others, directory, rounds, seconds)
        except RuntimeError as error:
            missing.append(f"{load.name}: not measured: {error}")
            print(missing[-1])
        else:
            print_row(load, table[load.name])
    return table, missing


def measure_load(
    load: Load, others: list[Target], directory: Path, rounds: int, seconds: float
) -> dict[str, Figures]:
    """The medians of each broker that takes the load.

    Raises:
        RuntimeError: Ours does not.
    """
    ours = start_ours(directory, dict(load.settings), is_tls=load.is_tls)
    targets = [ours] if load.is_tls or load.is_ours_alone else [ours, *others]
    try:
        taken: dict[str, list[Figures]] = {}
        for _ in range(rounds):
            for target in tuple(targets):
                try:
                    taken.setdefault(target.name, []).append(run_load(load, target, seconds))
                except (RuntimeError, OSError) as error:
                    if target is ours:
                        raise RuntimeError(f"{error!r}; {target.state()}") from error
                    print(f"{load.name}: {target.name} is left out: {error!r}")
                    targets.remove(target)
                    del taken[target.name]
    finally:
        ours.stop()
    return {name: median_figures(figures) for name, figures in taken.items()}


def print_row(load: Load, row: dict[str, Figures]) -> None:
    """One load's line for each broker, with the ratio to the others."""
    print(load.name)
    ours = row["pulsar_py"].as_dict()[load.figure]
    for name, figures in row.items():
        ratio = (
            "" if name == "pulsar_py" else f"  ratio {ours / figures.as_dict()[load.figure]:.2f}"
        )
        print(f"    {name:<16} {describe(figures)}{ratio}", flush=True)


def print_added_latency(table: dict[str, dict[str, Figures]], fdatasync_millis: float) -> None:
    """Print the latency of publish to receive beyond one `fdatasync`, at p50."""
    for row in table.values():
        for name, figures in row.items():
            if figures.p50_millis is not None:
                added = figures.p50_millis - fdatasync_millis
                print(f"added latency over one fdatasync at p50, {name}: {added:.2f} ms")


def print_calls_of_dispatch() -> list[tuple[str, CallCounts]]:
    """What an entry costs from storage to the socket, for each subscription type."""
    found = []
    for kind in calls_per_dispatch.TYPES:
        counts = asyncio.run(calls_per_dispatch.count_calls(kind))
        print(
            f"per 1,000 entries to one {kind} consumer: tasks {counts.tasks:.1f}, "
            f"futures {counts.futures:.1f}, Python calls {counts.python_calls:.0f}"
        )
        found.append((kind, counts))
    return found


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", action="append", default=[], metavar="NAME=HOST:PORT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", default="", help="run loads whose name holds this text")
    parser.add_argument("--directory", type=Path, default=Path("build"), help="for data")
    arguments = parser.parse_args()
    say_how_it_ends()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(exist_ok=True)

    measured = uvloop.run(machine.measure(arguments.directory))
    print(
        f"machine: sequential write with fdatasync {measured.sequential_megabytes_per_second:.0f} "
        f"MB/s, fdatasync p50 {measured.fdatasync_p50_millis:.2f} ms p99 "
        f"{measured.fdatasync_p99_millis:.2f} ms, echo of 1 KB frames "
        f"{measured.echo_frames_per_second / 1000:.0f}k/s"
    )
    result: dict[str, object] = {"machine": asdict(measured)}
    chosen = those_named("--only", arguments.only, LOADS, lambda load: load.name, besides=PARTS)
    table, missing = measure_brokers(
        chosen,
        [running(description) for description in arguments.against],
        arguments.directory,
        rounds=arguments.rounds,
        seconds=arguments.seconds,
    )
    print_added_latency(table, measured.fdatasync_p50_millis)
    result["loads"] = {
        load: {name: figures.as_dict() for name, figures in row.items()}
        for load, row in table.items()
    }
    if not arguments.only or arguments.only == "start":
        [started] = start_up(arguments.directory, 10)
        result["start"] = started
        print("start-up:", ", ".join(f"{name} {value:.1f}" for name, value in started.items()))
    if not arguments.only or arguments.only == "calls":
        counts = asyncio.run(calls_per_send.count_calls())
        result["per_1000_sends"] = asdict(counts)
        print(
            f"per 1,000 SENDs: tasks {counts.tasks:.1f}, futures {counts.futures:.1f}, "
            f"Python calls {counts.python_calls:.0f}"
        )
        for name, count in counts.most_called:
            print(f"    {count:8.0f} {name}")
        result["per_1000_dispatched"] = {
            kind: asdict(counts) for kind, counts in print_calls_of_dispatch()
        }
    if not arguments.only or arguments.only == "turns":
        print("longest turn of the loop, one command of the largest form, CPU of its thread:")
        result["longest_turns"] = [asdict(turn) for turn in longest_turn.longest_turns()]
    path = RESULTS / time.strftime("bench-%Y%m%d-%H%M%S.json")
    path.write_text(json.dumps(result, indent=2))
    print(f"written to {path}")
    exit_with(missing, what="missing")


if __name__ == "__main__":
    main()
