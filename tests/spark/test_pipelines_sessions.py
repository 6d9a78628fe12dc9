"""Pipelines in sessions of users, which have other settings than those of `open_session`."""

# ruff: noqa: E402 - imports stand after what may skip them
from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pq = pytest.importorskip("pyarrow.parquet")

from pulsar_py.pipeline.aggregate import AggregateSettings, aggregate
from pulsar_py.pipeline.copy import CopySettings, copy
from pulsar_py.pipeline.lake import LakeSettings, LakeWriter, open_table, read_table
from pulsar_py.pipeline.report import ReportSettings, report
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings import Cluster, TopicRange, TopicTarget
from pulsar_py.pipeline.tables import Target
from pulsar_py.pipeline.tables.staging import WRITING
from pulsar_py.pipeline.tables.table import Transaction
from pulsar_py.pipeline.topics import Streaming
from pulsar_py.spark.source import PulsarDataSource
from tests.spark.test_pipelines import numbers, publish, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JULIAN = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.writeLegacyFormat": "true",
}


@contextmanager
def settings_of(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, and as it was afterwards."""
    before = {name: spark.conf.get(name) for name in {**settings, **WRITING}}
    for name, text in settings.items():
        spark.conf.set(name, text)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, old)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_files_are_the_same_whatever_a_session_writes_otherwise(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    target = Target.parse(f"{kind}:{tmp_path / 'table'}")
    writer = LakeWriter(LakeSettings(target=target), Watch())
    day, merged = date(1001, 1, 1), [date(1001, 1, 1)] * 2
    rows = (
        spark.range(1).selectExpr("date'1001-01-01' as day", "array(array(id)) as ids").coalesce(1)
    )
    assert writer.append(rows, Transaction("q", 0)) == 1
    with settings_of(spark, JULIAN):
        assert writer.append(rows, Transaction("q", 1)) == 1
        for each in open_table(target).files():
            assert pq.read_table(target.path / each.path)["day"].to_pylist() == [day]
        writer.compact()
        assert len(open_table(target).files()) == 1
        found = read_table(spark, target).collect()
    assert [row.day for row in found] == merged
    assert [row.ids for row in found] == [[[0]], [[0]]]


def test_times_are_instants_whatever_a_session_takes_timestamps_for(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic = f"persistent://public/default/sessions-{uuid.uuid4().hex}"
    publish(cluster, topic, range(30), event_timestamp=60_000)
    source = TopicRange(cluster=cluster, topic=topic)
    target = Target.parse(f"parquet:{tmp_path / 'table'}")
    windows = AggregateSettings(
        source=source,
        keys=["cast(__key as string) as k"],
        aggregates="count",
        window_seconds=60,
        time_column="__eventTime",
        lake=LakeSettings(target=target),
    )
    with settings_of(
        spark,
        {
            "spark.sql.timestampType": "TIMESTAMP_NTZ",
            "spark.sql.ansi.enabled": "true",
            "spark.sql.ansi.enforceReservedKeywords": "true",
        },
    ):
        page = report(spark, ReportSettings(source=source, page=tmp_path / "page.html"))
        aggregate(spark, windows)
    assert page.messages == 30
    found = read_table(spark, target)
    assert {json.loads(found.schema["window_start"].json())["type"]} == {"timestamp"}
    rows = found.selectExpr("unix_seconds(window_end) as ending", "count").collect()
    assert [(row.ending, row["count"]) for row in rows] == [(120, 3)] * 10


def test_a_stream_is_copied_from_a_thread_that_has_not_opened_the_session(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic = f"persistent://public/default/sessions-{uuid.uuid4().hex}"
    publish(cluster, topic, range(10))
    own = spark.newSession()  # Spark would look for the sink in another one
    own.dataSource.register(PulsarDataSource)
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic=topic),
        target=TopicTarget(cluster=cluster, topic=f"{topic}-to"),
        streaming=Streaming(checkpoint=str(tmp_path / "checkpoint")),
    )
    with ThreadPoolExecutor(1) as pool:
        pool.submit(copy, own, settings).result()
    assert numbers(stored(cluster, f"{topic}-to")) == list(range(10))
