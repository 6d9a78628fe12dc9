"""A standalone cluster out of the wheel: a master and two workers with one core each.

The wheel has no start scripts, but `bin/spark-class` runs the classes they would start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interop.broker_process import free_port
from tests.spark.conftest import ROOT, missing_for_spark

WORKERS = 2
DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where it is, and what programs that use it need."""

    master_url: str
    environment: Mapping[str, str]
    worker_pids: tuple[int, ...]

    def executor_pids(self) -> list[int]:
        """The executors that live now: children of the workers."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(path.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent in self.worker_pids:
                found.append(int(path.parent.name))
        return sorted(found)


def _environment() -> dict[str, str]:
    paths = (str(ROOT), os.environ.get("PYTHONPATH"))
    return os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(each for each in paths if each),
    }


def _await_workers(web_port: int, timeout_seconds: float = 60.0) -> None:
    """Return when all workers have registered."""
    deadline = time.monotonic() + timeout_seconds
    alive = 0
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{web_port}/json/", timeout=5) as page:
                alive = json.load(page)["aliveworkers"]
        except OSError:
            alive = 0
        if alive == WORKERS:
            return
        time.sleep(0.2)
    raise AssertionError(f"{alive} of {WORKERS} workers have registered")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for the tests of a module."""
    reason = missing_for_spark()
    if reason is not None:
        pytest.skip(f"Spark can't run: {reason}")
    import pyspark  # noqa: PLC0415 - only where it is there

    directory = tmp_path_factory.mktemp("cluster")
    environment = _environment()
    home = Path(pyspark.__file__).parent
    port, web_port = free_port(), free_port()
    master_url = f"spark://127.0.0.1:{port}"

    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> int:
            command = [str(home / "bin" / "spark-class"), f"{DEPLOY}.{name}", *arguments]
            log = stack.enter_context((directory / f"{name}.log").open("ab"))
            # `spark-class` replaces itself by the JVM, so this is its process.
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=directory
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process.pid

        start(
            "master.Master", "--host", "127.0.0.1", "--port", str(port),
            "--webui-port", str(web_port),
        )  # fmt: skip
        workers = tuple(
            start(
                "worker.Worker", "--host", "127.0.0.1", "--webui-port", str(free_port()),
                "--cores", "1", "--memory", "1g", "--work-dir", str(directory / f"work-{index}"),
                master_url,
            )
            for index in range(WORKERS)
        )  # fmt: skip
        _await_workers(web_port)
        yield Cluster(master_url, environment, workers)
