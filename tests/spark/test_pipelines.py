"""Pipelines from end to end: a broker in a thread, the run's session, tables read back."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_py.client import Client
from pulsar_py.pipeline.progress import Step
from pulsar_py.pipeline.settings import (
    Cluster,
    PartitionColumn,
    TopicRange,
    TopicTarget,
)
from pulsar_py.pipeline.watch import Watch
from pulsar_py.testing.broker_thread import BrokerThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    with BrokerThread(config={"brokerDeduplicationEnabled": True}) as thread:
        yield thread


@pytest.fixture
def cluster(broker: BrokerThread) -> Cluster:
    return Cluster(service_url=broker.service_url, admin_url=broker.web_service_url)


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/pipelines-{uuid.uuid4().hex}"


class Steps:
    """Remembers what was reported."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def report(self, step: Step) -> None:
        self.steps.append(step)

    def close(self) -> None:
        pass

    def events(self) -> list[str]:
        return [step.event for step in self.steps]


def publish(cluster: Cluster, topic: str, values: range, **message: Any) -> None:
    """One message a number; keys are the last digit."""

    async def send() -> None:
        async with (
            Client(cluster.service_url) as client,
            await client.create_producer(topic) as producer,
        ):
            for value in values:
                await producer.send(b"%d" % value, key=str(value % 10), **message)

    asyncio.run(send())


def stored(cluster: Cluster, topic: str) -> list[Any]:
    """The messages of a topic."""

    async def read() -> list[Any]:
        found = []
        async with Client(cluster.service_url) as client:
            for partition in await client.get_topic_partitions(topic):
                async with await client.create_reader(partition, "earliest") as reader:
                    while await reader.has_message_available():
                        found.append(await reader.read_next())
        return found

    return asyncio.run(read())


def numbers(messages: list[Any]) -> list[int]:
    return [int(message.data()) for message in messages]


# --- export --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_an_export_goes_on_where_it_stopped(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, kind: str
) -> None:
    from pulsar_py.pipeline.export import ExportSettings, default_checkpoint, export
    from pulsar_py.pipeline.lake import LakeSettings, open_table, read_table
    from pulsar_py.pipeline.tables import Target
    from pulsar_py.pipeline.topics import Streaming

    target = Target.parse(f"{kind}:{tmp_path / 'table'}")
    settings = ExportSettings(
        source=TopicRange(cluster=cluster, topic=topic),
        lake=LakeSettings(
            target=target, partition_by=(PartitionColumn.parse("date(__publishTime)"),)
        ),
        streaming=Streaming(checkpoint=default_checkpoint(target)),
    )
    publish(cluster, topic, range(100))
    steps = Steps()
    assert export(spark, settings, Watch(steps)) == 100
    assert "committed" in steps.events()
    publish(cluster, topic, range(100, 150))
    assert export(spark, settings) == 50
    rows = read_table(spark, target).selectExpr("cast(cast(value as string) as int) v").collect()
    assert sorted(row.v for row in rows) == list(range(150))
    table = open_table(target)
    assert all(each.path.startswith("publishTime_date=20") for each in table.files())
    assert len(table.files()) == 1, "small files are merged"
    assert not list((tmp_path / "table" / "_staging").glob("*"))
    if kind == "delta":
        import deltalake

        read_back = deltalake.DeltaTable(target.path).to_pyarrow_table(columns=["value"])
        assert read_back.num_rows == 150


# --- copy ----------------------------------------------------------------------------------------


def test_a_copy_can_be_repeated(spark: SparkSession, cluster: Cluster, topic: str) -> None:
    from pulsar_py.pipeline.copy import CopySettings, copy

    publish(cluster, topic, range(50), properties={"a": "b"}, event_timestamp=5000)
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic=topic),
        target=TopicTarget(cluster=cluster, topic=f"{topic}-to", idempotency_key="nightly"),
        where="cast(cast(value as string) as int) < 40",
    )
    copy(spark, settings)
    copy(spark, settings)
    found = stored(cluster, f"{topic}-to")
    assert sorted(numbers(found)) == list(range(40))
    assert found[0].properties() == {"a": "b"}
    assert found[0].event_timestamp() == 5000
    assert found[0].partition_key() == str(numbers(found)[0] % 10)
