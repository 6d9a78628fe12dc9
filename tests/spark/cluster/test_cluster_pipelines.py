"""The commands of pipelines, unchanged, on a cluster of several processes of which one dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from pulsar_py.client import Client
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from tests.interop.broker_process import BrokerProcess
from tests.spark.cluster.conftest import Cluster

TOPIC = "persistent://public/default/pipelines"
ROWS = 6000
SETTINGS = ("--set", "defaultRetentionSizeInMB=-1", "--set", "defaultRetentionTimeInMinutes=-1")
SETTINGS += ("--set", "brokerDeduplicationEnabled=true")
PROGRAM = "from pulsar_py.cli.main import main; main()"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("broker")
    with BrokerProcess(directory, *SETTINGS, log=directory / "log") as process:
        asyncio.run(fill(process.service_url))
        yield process


async def fill(url: str) -> None:
    async with (
        Client(url) as client,
        await client.create_producer(
            TOPIC, max_pending_messages=ROWS, batching_max_messages=10
        ) as producer,
    ):
        sent = [producer.send_nowait(b"%d" % index, key=str(index % 7)) for index in range(ROWS)]
        for each in sent:
            await each


def stored(url: str, topic: str) -> list[int]:
    async def read() -> list[int]:
        found = []
        async with (
            Client(url) as client,
            await client.create_reader(topic, EARLIEST_MESSAGE_ID) as reader,
        ):
            while await reader.has_message_available():
                found.append(int((await reader.read_next()).data()))
        return found

    return asyncio.run(read())


def run_while_an_executor_dies(
    cluster: Cluster, broker: BrokerProcess, log: Path, *arguments: str
) -> list[str]:
    """Run a command; kill an executor after its first micro-batch. Returns its events."""
    command = [sys.executable, "-c", PROGRAM, "pipeline", *arguments]
    command += ["--service-url", broker.service_url, "--admin-url", broker.web_service_url]
    command += ["--master", cluster.master_url, "--max-entries", "100"]
    for setting in (
        "spark.ui.enabled=false",
        "spark.driver.host=127.0.0.1",
        "spark.driver.memory=512m",
        "spark.executor.memory=512m",
        "spark.executor.cores=1",
    ):
        command += ["--conf", setting]
    events: list[str] = []
    killed = None
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=cluster.environment
        ) as driver,
    ):
        assert driver.stderr is not None
        for line in driver.stderr:
            output.write(line)
            if not line.startswith("{"):
                continue
            events.append(json.loads(line)["event"])
            executors = cluster.executor_pids()
            if killed is None and events[-1] in {"batch", "committed"} and executors:
                killed = executors[0]
                os.kill(killed, signal.SIGKILL)
    assert driver.returncode == 0, log.read_text()[-3000:]
    assert killed is not None, "no executor was killed: the pipeline was too short"
    assert events[-1] == "finished"
    return events


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_an_export_has_every_row_once(
    cluster: Cluster, broker: BrokerProcess, tmp_path: Path, kind: str
) -> None:
    table = tmp_path / "table"
    arguments = ["export", "--topic", TOPIC, "--to", f"{kind}:{table}"]
    events = run_while_an_executor_dies(cluster, broker, tmp_path / "log", *arguments)
    assert events.count("committed") > 1
    if kind == "delta":
        deltalake = pytest.importorskip("deltalake")
        rows = deltalake.DeltaTable(table).to_pyarrow_table(columns=["value"])
    else:
        rows = ds.dataset(table, format="parquet", exclude_invalid_files=True).to_table(["value"])
    assert sorted(int(each.as_py()) for each in rows.column("value")) == list(range(ROWS))


def test_a_copy_has_every_message_once(
    cluster: Cluster, broker: BrokerProcess, tmp_path: Path
) -> None:
    to = f"{TOPIC}-copy"
    arguments = ["copy", "--from", TOPIC, "--to", to, "--checkpoint", str(tmp_path / "checkpoint")]
    run_while_an_executor_dies(cluster, broker, tmp_path / "log", *arguments)
    assert stored(broker.service_url, to) == list(range(ROWS))
