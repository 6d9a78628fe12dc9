"""Each program of examples/spark does the same against Apache Pulsar's own broker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.spark.test_spark_examples import PRINTED, run_example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.interop]


@pytest.fixture(scope="module")
def apache(
    bookkeeper: BookKeeperCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheBroker]:
    directory = tmp_path_factory.mktemp("apache")
    with ApacheBroker.with_deduplication(directory, bookkeeper.zookeeper.url) as broker:
        yield broker


@pytest.mark.parametrize("name", PRINTED)
def test_a_program_prints_what_it_should(  # noqa: PLR0917 - fixtures
    spark: SparkSession,
    apache: ApacheBroker,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = [name, apache.service_url, apache.web_service_url, str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    run_example(name, spark)
    printed = capsys.readouterr().out
    assert [text for text in PRINTED[name] if text not in printed] == [], printed
