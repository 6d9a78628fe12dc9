"""Programs that are started in other ways than from an activated environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_py.testing.broker_thread import BrokerThread
from tests.spark.conftest import ROOT, missing_for_spark


@pytest.mark.skipif(missing_for_spark() is not None, reason="Spark can't run")
def test_workers_run_the_programs_interpreter_whatever_python3_of_the_path_is(
    tmp_path: Path,
) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    environ = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environ |= {"PATH": f"{tmp_path}{os.pathsep}{environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    environ["PYTHONPATH"] = str(ROOT)
    run_program([sys.executable], environ)


@pytest.mark.slow
@pytest.mark.skipif(missing_for_spark() is not None, reason="Spark can't run")
def test_spark_submit_runs_a_program_with_the_interpreter_that_is_named() -> None:
    submit = Path(sys.executable).with_name("spark-submit")
    if not submit.exists():
        pytest.skip("there is no spark-submit beside this interpreter")
    environ = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(ROOT),
    }
    run_program([str(submit), "--master", "local[1]"], environ)


def run_program(command: list[str], environ: dict[str, str]) -> None:
    with BrokerThread(config={"brokerDeleteInactiveTopicsEnabled": False}) as broker:
        done = subprocess.run(
            [*command, "examples/spark/write_batch.py", broker.service_url],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
    assert "100 messages" in done.stdout, done.stderr[-2000:]
