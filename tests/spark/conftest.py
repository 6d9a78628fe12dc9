"""One local Spark session for all tests of a run; without Java or PySpark they are skipped.

`local[2,3]`: two tasks at a time, three attempts each. Starting takes some ten seconds, which is
why nothing of Spark is touched before a test asks for the session.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pulsar_py.pipeline.settings import Cluster
from pulsar_py.testing.broker_thread import BrokerThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
MASTER = "local[2,3]"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.log.level": "ERROR",
}


def missing_for_spark() -> str | None:
    """Why Spark can't run here; None if it can."""
    for module in ("pyspark", "pyarrow"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed (pip install '.[spark]')"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    return None if java else "there is no java on the PATH, nor a JAVA_HOME with one"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the session, and say why."""
    reason = missing_for_spark()
    if reason is None:
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason=f"Spark can't run: {reason}"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of the run."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Not whichever `python3` comes first on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Spark finds `pyspark_pulsar` by walking the path, which an editable install is not on.
    paths = (str(ROOT), os.environ.get("PYTHONPATH"))
    os.environ["PYTHONPATH"] = os.pathsep.join(each for each in paths if each)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only where it is there

    builder = SparkSession.builder.master(MASTER).appName("pulsar_py tests")
    settings = SETTINGS | {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    """One that drops duplicates; modules that need another have their own."""
    with BrokerThread(config={"brokerDeduplicationEnabled": True}) as thread:
        yield thread


@pytest.fixture
def cluster(broker: BrokerThread) -> Cluster:
    """The same, as pipelines are told."""
    return Cluster(service_url=broker.service_url, admin_url=broker.web_service_url)
