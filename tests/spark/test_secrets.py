"""No command shows a token or a password, whether it works or fails: all output is searched."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pulsar_py.client import Client
from pulsar_py.testing.broker_thread import BrokerThread
from tests.unit.cli.pipeline.parts import NEEDED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARKER = "MARKERabc123"
PROGRAM = """
import json, sys
from pulsar_py.cli.pipeline.command import pipeline
for arguments in json.loads(sys.argv[1]):
    try:
        pipeline(arguments)
    except SystemExit as error:
        print("exit", arguments[0], error.code, flush=True)
"""
SPARK = ["--master", "local[2]", "--max-restarts", "1"]
SPARK += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=1g"]
SPARK += ["--conf", f"spark.hadoop.fs.s3a.secret.key={MARKER}"]


def secrets(service_url: str, admin_url: str) -> list[str]:
    arguments = ["--service-url", service_url, "--admin-url", admin_url, "--token", MARKER]
    arguments += ["--option", f"pulsar.client.authParams=token:{MARKER}"]
    return [*arguments, "--option", "pulsar.client.operationTimeoutMs=1000"]


async def publish(service_url: str) -> None:
    async with Client(service_url) as client, await client.create_producer("t") as producer:
        await producer.send(b"x")


def test_no_output_has_a_secret(spark: SparkSession, tmp_path: Path) -> None:
    del spark  # says whether Spark can run; commands have sessions of their own
    unreachable = secrets("pulsar://127.0.0.1:1", "http://127.0.0.1:1")
    commands = [[name, *needed, *unreachable, *SPARK] for name, needed in NEEDED.items()]
    commands.append(["lag", *unreachable])
    with BrokerThread(config={"brokerDeleteInactiveTopicsEnabled": False}) as broker:
        asyncio.run(publish(broker.service_url))
        there = secrets(broker.service_url, broker.web_service_url)
        export = ["export", "--topic", "t", "--to", f"parquet:{tmp_path / 'table'}"]
        copy = ["copy", "--from", "t", "--to", "u", "--guarantee", "at-least-once"]
        commands += [[*export, *there, *SPARK], [*copy, *there, *SPARK], ["lag", *there]]
        result = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(commands)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    ended = [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("exit")]
    assert [name for name, _ in ended] == [each[0] for each in commands]
    assert {code for _, code in ended[: len(NEEDED)]} <= {"1", "2"}
    assert [code for _, code in ended[-3:]] == ["0", "0", "0"]
    assert "restarting" in result.stderr
    for line in (result.stdout + result.stderr).splitlines():
        assert MARKER not in line
