"""Each program of examples/spark runs as its first lines say, in the run's session."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pulsar_py.testing.broker_thread import BrokerThread
from tests.spark.conftest import BROKER_CONFIG, ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = ROOT / "examples" / "spark"
PRINTED = {
    "write_batch.py": ["100 messages"],
    "read_batch.py": ["page-0 100", "page-1 100", "page-2 100"],
    "read_range.py": ["since then: 50", "are 150"],
    "records.py": ["'sensor', 'celsius'", "sensor-0 14.5", "sensor-1 15.0"],
    "key_values.py": ["item-0 54", "item-1 56", "item-2 58"],
    "pipeline_export.py": ["100 rows exported", "0 rows since then", "page-0 34", "page-2 33"],
    "columns.py": ["['__entryId', '__publishTime'] 10", "'__producerName'", "b'"],
    "stream_to_parquet.py": ["100 rows in the lake", "130 rows in the lake"],
    "exactly_once.py": ["100 messages copied, 100 different"],
    "shuffled.py": ["3 messages after the first run", "3 messages after the second run"],
    "read_pattern.py": ["60 messages in 3 tasks", "20 of one topic in 1"],
    "stream_to_topic.py": ["batch 0 of 40", "batch 1 of 40", "batch 2 of 20", "100 messages"],
    "subscription.py": [
        "10 read",
        "spark-follows is behind by 1",
        "were deleted, the first",
        "15 read",
    ],
    "pipelines.py": [
        "copied: 20",
        "replayed: 30",
        "compacted: 3",
        "added up: 435",
        "backfilled: 3",
        "reported: 30 messages of 3 keys",
    ],
    "undecodable.py": ["spark-broken: message", "['sound']", r"b'\xff\xfe'"],
}


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    with BrokerThread(config=BROKER_CONFIG) as broker:
        yield broker


@pytest.mark.parametrize("name", PRINTED)
def test_a_program_prints_what_it_should(  # noqa: PLR0917 - fixtures
    spark: SparkSession,
    broker: BrokerThread,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = [name, broker.service_url, broker.web_service_url, str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    run_example(name, spark)
    printed = capsys.readouterr().out
    assert [text for text in PRINTED[name] if text not in printed] == [], printed


def run_example(name: str, spark: SparkSession) -> None:
    try:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")  # read_pattern.py sets it


def test_each_program_is_run_and_is_in_the_guide() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    assert programs == set(PRINTED)
    guide = (ROOT / "docs" / "spark" / "GUIDE.md").read_text()
    assert [name for name in programs if f"examples/spark/{name})" not in guide] == []
