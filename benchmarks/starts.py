"""A broker's start: until its ready line, its first receipt, its first answer over HTTP.

    python -m benchmarks.starts [--before TREE] [--rounds N]

Each round starts `pulsar-py standalone` three times with an empty data directory: once it is left
idle, once the official client subscribes, publishes and receives, once `/admin/v2/clusters` is
asked for. `--before` is a checkout whose broker takes turns with this one. The clients are running
processes that wait for the address, so that their own start does not count.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.targets import PROGRAM, Target

IDLE_SECONDS = 2.0

PUBLISHING = """
import sys, pulsar
print(flush=True)
url = sys.stdin.readline().split()[2]
client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
consumer = client.subscribe("first", "reader")
client.create_producer("first").send(b"first")
consumer.acknowledge(consumer.receive(timeout_millis=30_000))
print(flush=True)
sys.stdin.read()
"""
ASKING = """
import sys, http.client
print(flush=True)
port = sys.stdin.readline().split()[3].rpartition(":")[2]
connection = http.client.HTTPConnection("localhost", int(port))
connection.request("GET", "/admin/v2/clusters")
assert connection.getresponse().read() == b'["standalone"]'
print(flush=True)
sys.stdin.read()
"""
"""Programs that say so when they are imported, get the ready line, and say when they are served."""

CLIENTS: Mapping[str, str] = {"receipt_millis": PUBLISHING, "answer_millis": ASKING}

Figures = dict[str, float]


def start_up(directory: Path, runs: int, trees: Sequence[Path | None] = (None,)) -> list[Figures]:
    """Medians for each tree, None being the installed package, and the quickest start of each."""
    found: list[dict[str, list[float]]] = [{} for _ in trees]
    for number in range(runs):
        order = range(len(trees)) if number % 2 == 0 else reversed(range(len(trees)))
        for index in order:
            for name, value in _round(directory, trees[index]).items():
                found[index].setdefault(name, []).extend(value)
    figures = []
    for each in found:
        medians = {name: statistics.median(values) for name, values in each.items()}
        figures.append(medians | {"ready_millis_at_best": min(each["ready_millis"])})
    return figures


def _round(directory: Path, tree: Path | None) -> dict[str, list[float]]:
    """Three starts."""
    found: dict[str, list[float]] = {"ready_millis": [], "ready_cpu_millis": []}
    for client in (None, *CLIENTS):
        directory.mkdir(parents=True, exist_ok=True)
        data_dir = Path(tempfile.mkdtemp(prefix="bench-data-", dir=directory))
        waiting = None if client is None else _waiting(CLIENTS[client])
        began = time.perf_counter()
        with subprocess.Popen(
            [PROGRAM, "standalone", "--data-dir", str(data_dir), "--port", "0", "--web-port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | ({} if tree is None else {"PYTHONPATH": str(tree.resolve())}),
        ) as process:
            assert process.stdout is not None
            ready = process.stdout.readline()
            found["ready_millis"].append((time.perf_counter() - began) * 1e3)
            target = Target("pulsar_py", "127.0.0.1", 0, process.pid)
            found["ready_cpu_millis"].append(_cpu_millis(process.pid))
            if waiting is None:
                time.sleep(IDLE_SECONDS)
                found["resident_megabytes"] = [target.resident_megabytes()]
                used = target.cpu_seconds()
                time.sleep(IDLE_SECONDS)
                found["idle_cpu_percent"] = [(target.cpu_seconds() - used) / IDLE_SECONDS * 100]
            else:
                assert client is not None
                _serve(waiting, ready)
                found[client] = [(time.perf_counter() - began) * 1e3]
                waiting.communicate()
            process.send_signal(signal.SIGTERM)
        shutil.rmtree(data_dir, ignore_errors=True)
    return found


def _waiting(program: str) -> subprocess.Popen[str]:
    """A client that has imported everything."""
    client = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    assert client.stdout.readline(), "the client could not start"
    return client


def _serve(client: subprocess.Popen[str], ready: str) -> None:
    """Give the client the ready line; returns when it was served."""
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(ready)
    client.stdin.flush()
    assert client.stdout.readline(), "the client failed"


def _cpu_millis(pid: int) -> float:
    """CPU time of all threads so far, finer than the ticks of `stat`."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in tasks) / 1e6


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout to compare with")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    here = Path(__file__).parent.parent
    trees = [here] if arguments.before is None else [here, arguments.before]
    for tree, figures in zip(
        trees, start_up(arguments.directory, arguments.rounds, trees), strict=True
    ):
        print(f"{tree}:", ", ".join(f"{name} {value:.1f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
