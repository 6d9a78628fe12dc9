"""The memory of a worker that reads large messages, in a session of its own with new workers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_py.client import Client
from pulsar_py.testing.broker_thread import BrokerThread
from tests.spark.conftest import ROOT, missing_for_spark

TOPIC = "persistent://public/default/large"
COUNT = 150
MESSAGE_BYTES = 1 << 20
LIMIT_MEGABYTES = 200

SESSION = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession

url, admin_url, topic = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "1g")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.log.level", "ERROR")
    .getOrCreate()
)
options = {"service.url": url, "admin.url": admin_url, "topic": topic}
for _ in range(2):
    frame = spark.read.format("pulsar").options(**options).load()
    (row,) = frame.selectExpr("count(*)", "sum(length(value))").collect()
peaks = []
for process in Path("/proc").glob("[0-9]*"):
    try:
        command = (process / "cmdline").read_text()
        status = (process / "status").read_text()
        environment = (process / "environ").read_text()
    except OSError:
        continue
    if "pyspark.daemon" in command and "PULSAR_PY_TEST_MEMORY" in environment:
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        peaks.append(int(peak.split()[1]) / 1024)
spark.stop()
print(json.dumps({"rows": list(row), "megabytes": max(peaks)}))
"""


async def fill(url: str) -> None:
    noise = os.urandom(MESSAGE_BYTES)
    async with Client(url) as client, await client.create_producer(TOPIC) as producer:
        for index in range(COUNT):
            await producer.send(index.to_bytes(8) + noise[8:])


@pytest.mark.slow
@pytest.mark.skipif(
    missing_for_spark() is not None, reason=f"Spark can't run: {missing_for_spark()}"
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
def test_a_worker_that_reads_large_messages_stays_below_200_megabytes(tmp_path: Path) -> None:
    environment = os.environ | {
        "PULSAR_PY_TEST_MEMORY": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    retained = {"defaultRetentionSizeInMB": -1, "defaultRetentionTimeInMinutes": -1}
    with BrokerThread(data_dir=tmp_path, config=retained) as broker:
        asyncio.run(fill(broker.service_url))
        done = subprocess.run(
            [sys.executable, "-c", SESSION, broker.service_url, broker.web_service_url, TOPIC],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["rows"] == [COUNT, COUNT * MESSAGE_BYTES]
    assert result["megabytes"] < LIMIT_MEGABYTES
