"""The connector on a cluster of several processes, one of which dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_py.client import Client
from tests.interop.broker_process import BrokerProcess
from tests.spark.cluster.conftest import Cluster

PROGRAM = Path(__file__).with_name("stream_program.py")
TOPIC = "persistent://public/default/cluster"
ROWS = 5000
RETAINED = ("--set", "defaultRetentionSizeInMB=-1", "--set", "defaultRetentionTimeInMinutes=-1")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("broker")
    with BrokerProcess(directory, *RETAINED, log=directory / "log") as process:
        yield process


async def fill(url: str) -> None:
    async with (
        Client(url) as client,
        await client.create_producer(TOPIC, max_pending_messages=ROWS) as producer,
    ):
        sent = [producer.send_nowait(b"%d" % index) for index in range(ROWS)]
        for each in sent:
            await each


def test_every_row_arrives_once_though_an_executor_is_killed(
    cluster: Cluster, broker: BrokerProcess, tmp_path: Path
) -> None:
    asyncio.run(fill(broker.service_url))
    command = [
        sys.executable, str(PROGRAM), cluster.master_url, broker.service_url,
        broker.web_service_url, TOPIC, str(tmp_path),
    ]  # fmt: skip
    log = tmp_path / "driver.log"
    lines = []
    killed = None
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=cluster.environment
        ) as driver,
    ):
        assert driver.stdout is not None
        for line in driver.stdout:
            lines.append(json.loads(line))
            executors = cluster.executor_pids()
            if killed is None and "batch" in lines[-1] and executors:
                killed = executors[0]
                os.kill(killed, signal.SIGKILL)
    assert driver.returncode == 0, log.read_text()[-3000:]
    assert killed is not None, "no executor was killed: the stream was too short"
    assert len(lines) > 2, "nothing came after the executor was killed"
    assert lines[-1]["rows"] == ROWS
    assert lines[-1]["values"] == ROWS
