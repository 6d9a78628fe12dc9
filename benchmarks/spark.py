"""Measure reading through Spark; `make bench-spark` runs it.

    python -m benchmarks.spark [--rows 1000000] [--growth 3000000] [--rounds 3] [--loads arrow]

One broker (`pulsar-py standalone`) holds topics of 1 KB messages, every one different, in batches
of up to 1,000: random bytes, not compressed, and rows of a log (`log_rows`), which the producer
compresses with LZ4, as Spark does Parquet files with Snappy. Sessions of `local[1]` and `local[2]`
take turns, each in a process of its own, and within each the loads do: the connector's rows into
Spark's noop sink, the same rows from Parquet files by Spark's own reader, the same messages as
tuples, both topic and Parquet files into Parquet files, one batch over and over, the most that
Spark takes of a source in Python, and "short-circuit", the topic read from the broker's files. What
counts are ratios within one run. CPU is that of the JVM, all its Python workers and, apart, of the
broker. Before them, a topic of 1 MB messages is read, for the memory of the largest Python worker.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.log_rows import log_rows
from benchmarks.targets import Target, start_ours
from pulsar_py import CompressionType
from pulsar_py.client import Client

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results")
ROW_BYTES = 1024
LARGE_BYTES = 1 << 20
LARGE_COUNT = 400
RETAINED = {"defaultRetentionSizeInMB": "-1", "defaultRetentionTimeInMinutes": "-1"}
WORKER = "pyspark.daemon"
BLOCK = 1000
SHORT_CIRCUIT = "short-circuit"
REPEATED = "one batch repeated"
OF_REPEATED = {1: 0.85, 2: 0.7}
"""What the topic is to have of the repeated batch's rate, by cores."""
LOG = "log rows: "
LOG_ROWS_COUNT = 20_000
"""Different rows of a log; each message has a number before one of them."""
NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Job:
    """The job of one session."""

    service_url: str
    admin_url: str
    # Of topics `<prefix>-<partitions>-<rows>`, and `<prefix>-log-1-<rows>`.
    prefix: str
    cores: int
    rows: int
    growth: tuple[int, ...]
    rounds: int
    directory: str
    # Of the broker that lends its files.
    socket_path: str
    # The names of what is measured; all if empty.
    loads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """One load, once."""

    load: str
    cores: int
    rows: int
    seconds: float
    cpu_seconds: float
    worker_megabytes: float

    @property
    def rows_per_second(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds

    @property
    def rows_per_cpu_second(self) -> float:
        """Rows a second of CPU, which other work on the machine changes less than the rate."""
        return self.rows / max(self.cpu_seconds, 1e-9)


def topic_of(prefix: str, partitions: int, rows: int) -> str:
    """Its name."""
    return f"persistent://public/default/{prefix}-{partitions}-{rows}"


def log_prefix(prefix: str) -> str:
    """Of the topic with rows of a log."""
    return f"{prefix}-log"


# --- filling -------------------------------------------------------------------------------------


Payload: TypeAlias = Callable[[int], bytes]
"""That of the message with a number."""


def noise(size: int) -> Payload:
    """Random bytes of which no two are the same."""
    data = os.urandom(size + (1 << 20))
    rest = size - NUMBER_BYTES
    return lambda index: index.to_bytes(8) + data[(at := index * 97 % (1 << 20)) : at + rest]


def log(size: int) -> Payload:
    """Rows of a log, each behind its number."""
    rows = log_rows(LOG_ROWS_COUNT, size - NUMBER_BYTES)
    return lambda index: b"%08d" % index + rows[index % LOG_ROWS_COUNT]


async def fill(
    url: str, topic: str, count: int, payload: Payload, compression: CompressionType
) -> None:
    """Publish messages."""
    large = len(payload(0)) >= LARGE_BYTES
    options: dict[str, Any] = {  # Any: keyword arguments
        "compression_type": compression,
        "batching_enabled": not large,
        "batching_max_messages": BLOCK,
        "batching_max_allowed_size_in_bytes": 1 << 20,
        "max_pending_messages": 16 if large else 16 * BLOCK,
    }
    block = 4 if large else BLOCK
    async with Client(url) as client, await client.create_producer(topic, **options) as producer:
        under_way: deque[list[Any]] = deque()  # Any: awaitables of message ids
        for first in range(0, count, block):
            under_way.append(
                [
                    producer.send_nowait(payload(index))
                    for index in range(first, min(first + block, count))
                ]
            )
            if len(under_way) > 3:
                for each in under_way.popleft():
                    await each
        for sends in under_way:
            for each in sends:
                await each


# --- one session ---------------------------------------------------------------------------------


def _processes() -> dict[int, tuple[int, float]]:
    """Parent and CPU seconds, those of dead children counted, of each process."""
    ticks = os.sysconf("SC_CLK_TCK")
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / ticks)
    return found


def _tree() -> dict[int, float]:
    """The process and what came of it, with their CPU seconds."""
    processes = _processes()
    tree = {os.getpid()}
    while more := {each for each, (parent, _) in processes.items() if parent in tree} - tree:
        tree |= more
    return {each: processes[each][1] for each in tree if each in processes}


def _workers_megabytes() -> float:
    """The most that a Python worker has had in memory."""
    most = 0.0
    for process in _tree():
        try:
            if WORKER not in Path(f"/proc/{process}/cmdline").read_text():
                continue
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:
            continue
        peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "x 0")
        most = max(most, int(peak.split()[1]) / 1024)
    return most


@contextmanager
def _watching() -> Iterator[Callable[[], float]]:
    """Look at the workers while something runs."""
    most = [0.0]
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.wait(0.25):
            most[0] = max(most[0], _workers_megabytes())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: most[0]
    finally:
        stopped.set()
        thread.join()


class Session:
    """One Spark session and its loads."""

    def __init__(self, job: Job) -> None:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - the parent needs none

        from benchmarks.spark_repeated import RepeatedDataSource  # noqa: PLC0415 - as above
        from benchmarks.spark_tuples import TupleDataSource  # noqa: PLC0415 - as above

        self._job = job
        builder = SparkSession.builder.master(f"local[{job.cores}]").appName("bench-spark")
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "ERROR",
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        for source in (RepeatedDataSource, TupleDataSource):
            self._spark.dataSource.register(source)
        self.figures: list[Figures] = []

    def stop(self) -> None:
        self._spark.stop()

    def _topic(
        self, partitions: int, rows: int, form: str = "pulsar", *, prefix: str = "", **options: str
    ) -> Any:
        job = self._job
        given = {
            "service.url": job.service_url,
            "admin.url": job.admin_url,
            "topic": topic_of(prefix or job.prefix, partitions, rows),
        }
        return self._spark.read.format(form).options(**(given | options)).load()

    def _beside(self, prefix: str) -> Any:
        options = {"shortCircuitSocketPath": self._job.socket_path}
        return self._topic(1, self._job.rows, prefix=prefix, **options)

    def _is_wanted(self, *loads: str) -> bool:
        return not self._job.loads or not set(self._job.loads).isdisjoint(loads)

    def _measure(self, load: str, rows: int, work: Callable[[], None]) -> None:
        if not self._is_wanted(load):
            return
        before, start = _tree(), time.perf_counter()
        with _watching() as megabytes:
            work()
            seconds = time.perf_counter() - start
        cpu = sum(now - before.get(process, 0.0) for process, now in _tree().items())
        self.figures.append(Figures(load, self._job.cores, rows, seconds, cpu, megabytes()))

    def _drain(self, load: str, rows: int, frame: Any) -> None:
        self._measure(load, rows, frame.write.format("noop").mode("overwrite").save)

    def _beside_parquet(self, kind: str, topic: Any, path: str) -> None:
        rows = self._job.rows
        names = [f"{kind}{each}" for each in ("topic to parquet", "parquet", "parquet to parquet")]
        if self._is_wanted(*names):
            self._measure(names[0], rows, lambda: topic.write.parquet(path))
            if not self._is_wanted(names[0]):
                topic.write.parquet(path)  # the others read it
            stored = self._spark.read.parquet(path)
            self._drain(names[1], rows, stored)
            self._measure(names[2], rows, lambda: stored.write.parquet(f"{path}-again"))
        self._drain(f"{kind}arrow", rows, topic)

    def run(self) -> None:
        """All loads; the first read of each kind warms up."""
        job = self._job
        # First, because what a worker has taken it keeps, and workers are used again.
        self._drain("1 MB messages", LARGE_COUNT, self._topic(0, LARGE_COUNT))
        parquet = f"{job.directory}/parquet-{job.cores}"
        self._topic(1, job.rows).limit(10).write.format("noop").mode("overwrite").save()
        for number in range(job.rounds):
            frame = self._topic(1, job.rows)
            self._beside_parquet("", frame, f"{parquet}-{number}")
            rows_of_log = self._topic(1, job.rows, prefix=log_prefix(job.prefix))
            self._beside_parquet(LOG, rows_of_log, f"{parquet}-log-{number}")
            self._drain("arrow, value alone", job.rows, frame.select("value"))
            self._drain("arrow, columns=__key", job.rows, self._topic(1, job.rows, columns="__key"))
            self._drain(REPEATED, job.rows, self._topic(1, job.rows, "pulsar-repeated"))
            self._drain(SHORT_CIRCUIT, job.rows, self._beside(job.prefix))
            self._drain(f"{LOG}{SHORT_CIRCUIT}", job.rows, self._beside(log_prefix(job.prefix)))
            self._drain("tuples", job.rows, self._topic(1, job.rows, "pulsar-tuples"))
            self._drain("arrow, 2 partitions", job.rows, self._topic(2, job.rows))
        for rows in job.growth:
            self._drain(f"arrow, {rows} rows", rows, self._topic(1, rows))


# --- the run -------------------------------------------------------------------------------------


def run_session(job: Job) -> list[Figures]:
    """In a process of its own, for a JVM has one master."""
    environment = dict(os.environ)
    environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    environment["PYSPARK_PYTHON"] = sys.executable
    paths = [str(ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(each for each in paths if each)
    command = [sys.executable, "-m", "benchmarks.spark", "--job", json.dumps(asdict(job))]
    with (Path(job.directory) / "spark.log").open("a") as log:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, check=False
        )
    if done.returncode:
        raise SystemExit(f"the session ended with {done.returncode}, see {log.name}")
    return [Figures(**each) for each in json.loads(done.stdout.splitlines()[-1])]


def medians(figures: list[Figures]) -> list[Figures]:
    """One a load and number of cores: the round of median speed."""
    by_load: dict[tuple[str, int], list[Figures]] = {}
    for each in figures:
        by_load.setdefault((each.load, each.cores), []).append(each)
    return [
        sorted(rounds, key=lambda each: each.seconds)[len(rounds) // 2]
        for rounds in by_load.values()
    ]


def print_table(figures: list[Figures]) -> None:
    """Loads by cores, and the ratios that have an aim."""
    print(f"{'load':<30}{'cores':>6}{'rows':>10}{'rows/s':>10}{'rows/cpu-s':>12}{'MB/worker':>11}")
    for each in medians(figures):
        print(
            f"{each.load:<30}{each.cores:>6}{each.rows:>10}{each.rows_per_second:>10,.0f}"
            f"{each.rows_per_cpu_second:>12,.0f}{each.worker_megabytes:>11.0f}"
        )
    for cores in sorted({each.cores for each in figures}):
        for load, other, aim in (
            ("arrow", "parquet", 0.7),
            ("topic to parquet", "parquet to parquet", 0.7),
            (f"{LOG}arrow", f"{LOG}parquet", 0.7),
            (f"{LOG}topic to parquet", f"{LOG}parquet to parquet", 0.7),
            ("arrow", "tuples", 1.7),
            (REPEATED, "parquet", None),
            ("arrow", REPEATED, OF_REPEATED.get(cores)),
            (SHORT_CIRCUIT, REPEATED, OF_REPEATED.get(cores)),
            (SHORT_CIRCUIT, "parquet", None),
            (f"{LOG}{SHORT_CIRCUIT}", f"{LOG}parquet", None),
        ):
            if not {load, other} <= {each.load for each in figures}:
                continue
            ratio = ratio_of(figures, cores, load, other)
            wanted = "" if aim is None else f" (aim {aim})"
            print(f"{load} / {other}, {cores} cores: {ratio:.2f}{wanted}")


def ratio_of(figures: list[Figures], cores: int, ours: str, other: str) -> float:
    """The rate of one load beside another: the median of the rounds' ratios."""
    mine, theirs = (
        [each.seconds for each in figures if each.load == load and each.cores == cores]
        for load in (ours, other)
    )
    return statistics.median(b / a for a, b in zip(mine, theirs, strict=True))


def measure(target: Target, directory: Path, arguments: argparse.Namespace) -> list[Figures]:
    """Fill topics, run the sessions."""
    prefix = f"spark-{time.time_ns()}"
    url = f"pulsar://{target.host}:{target.port}"
    admin_url = f"http://{target.host}:{target.web_port}"
    plain = CompressionType.NONE
    for rows in {arguments.rows, *arguments.growth}:
        print(f"filling {rows} rows", file=sys.stderr, flush=True)
        asyncio.run(fill(url, topic_of(prefix, 1, rows), rows, noise(ROW_BYTES), plain))
    rows_of_log = topic_of(log_prefix(prefix), 1, arguments.rows)
    asyncio.run(fill(url, rows_of_log, arguments.rows, log(ROW_BYTES), CompressionType.LZ4))
    two = topic_of(prefix, 2, arguments.rows)
    create_partitioned(target, two, 2)
    for index in range(2):
        part = f"{two}-partition-{index}"
        asyncio.run(fill(url, part, arguments.rows // 2, noise(ROW_BYTES), plain))
    large = topic_of(prefix, 0, LARGE_COUNT)
    asyncio.run(fill(url, large, LARGE_COUNT, noise(LARGE_BYTES), plain))
    figures: list[Figures] = []
    for cores in arguments.cores:
        growth = tuple(arguments.growth) if cores == max(arguments.cores) else ()
        job = Job(
            url, admin_url, prefix, cores, arguments.rows, growth, arguments.rounds, str(directory),
            target.settings["shortCircuitSocketPath"], tuple(arguments.loads),
        )  # fmt: skip
        print(f"local[{cores}]", file=sys.stderr, flush=True)
        before = target.cpu_seconds()
        figures += run_session(job)
        print(f"broker: {target.cpu_seconds() - before:.1f} s of CPU", file=sys.stderr)
    return figures


def create_partitioned(target: Target, topic: str, partitions: int) -> None:
    """Over REST."""
    import http.client  # noqa: PLC0415 - for this alone

    connection = http.client.HTTPConnection(target.host, target.web_port, timeout=10)
    connection.request(
        "PUT",
        f"/admin/v2/{topic.replace('://', '/')}/partitions",
        body=str(partitions),
        headers={"Content-Type": "application/json"},
    )
    answer = connection.getresponse()
    if answer.status != http.client.NO_CONTENT:
        raise SystemExit(f"{topic}: {answer.status} {answer.read()!r}")
    connection.close()


def write_results(figures: list[Figures]) -> None:
    """Every round of everything, as JSON."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / time.strftime("spark-%Y%m%d-%H%M%S.json")
    result = {
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "figures": [asdict(each) for each in figures],
    }
    path.write_text(json.dumps(result, indent=2))
    print(f"written to {path}")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--growth", type=int, nargs="*", default=[3_000_000, 10_000_000])
    parser.add_argument("--cores", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loads", nargs="*", default=[], help="their names; else all")
    parser.add_argument("--directory", type=Path, default=Path("build"), help="for data and logs")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        given = json.loads(arguments.job)
        session = Session(Job(**(given | {"growth": tuple(given["growth"])})))
        session.run()
        session.stop()
        print(json.dumps([asdict(each) for each in session.figures]))
        return
    import shutil  # noqa: PLC0415 - for this alone
    import tempfile  # noqa: PLC0415 - for this alone

    arguments.directory.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-spark-", dir=arguments.directory.resolve()))
    with tempfile.TemporaryDirectory(prefix="lent-") as short:  # a socket's path is short
        lends = {"shortCircuitSocketPath": f"{short}/lent", "flushInterval": "1000"}
        target = start_ours(directory, RETAINED | lends)
        try:
            figures = measure(target, directory, arguments)
        finally:
            target.stop()
    print_table(figures)
    write_results(figures)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
