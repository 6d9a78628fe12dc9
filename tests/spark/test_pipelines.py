"""Pipelines from end to end: a broker in a thread, the run's session, tables read back."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.admin_client import AdminSettings
from pulsar_py.client import Client
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from pulsar_py.pipeline.aggregate import AggregateSettings, aggregate
from pulsar_py.pipeline.backfill import BackfillSettings, backfill
from pulsar_py.pipeline.compact import CompactSettings, compact
from pulsar_py.pipeline.copy import CopySettings, copy
from pulsar_py.pipeline.export import ExportSettings, default_checkpoint, export
from pulsar_py.pipeline.lake import LakeSettings, LakeWriter, open_table, read_table
from pulsar_py.pipeline.replay import ReplaySettings, replay
from pulsar_py.pipeline.report import ReportSettings, _count, report
from pulsar_py.pipeline.running.progress import Step
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings import Cluster, PartitionColumn, TopicRange, TopicTarget
from pulsar_py.pipeline.tables import Target
from pulsar_py.pipeline.tables.schemas import TableSchemaError
from pulsar_py.pipeline.tables.table import Transaction
from pulsar_py.pipeline.topics import Streaming

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
                async with await client.create_reader(partition, EARLIEST_MESSAGE_ID) as reader:
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
    elsewhere = LakeSettings(target=Target.parse(f"{kind}:{tmp_path / 'elsewhere'}"))
    with pytest.raises(ConfigurationError, match="elsewhere has none of its batches"):
        export(spark, replace(settings, lake=elsewhere))
    if kind == "delta":
        deltalake = pytest.importorskip("deltalake")
        read_back = deltalake.DeltaTable(target.path).to_pyarrow_table(columns=["value"])
        assert read_back.num_rows == 150


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_batch_is_added_once_and_its_columns_with_it(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    target = Target.parse(f"{kind}:{tmp_path / 'table'}")
    writer = LakeWriter(LakeSettings(target=target, file_bytes=1500), Watch())
    staged = target.path / "_staging" / Transaction("q", 0).file_prefix
    staged.mkdir(parents=True)
    left = target.path / f"{staged.name}-00009.parquet"  # of an attempt that failed
    left.touch()
    for each in (left, staged):
        os.utime(each, (0, 0))
    rows = spark.range(0, 1000, 1, 2).toDF("id")
    assert writer.append(rows, Transaction("q", 0)) == 1000
    assert writer.append(rows, Transaction("q", 0)) == 0
    assert not left.exists()
    wider = rows.selectExpr("id", "array(map('a', id)) as tags", "timestamp_millis(id) as t")
    assert writer.append(wider, Transaction("q", 1)) == 1000
    assert len(open_table(target).files()) > 4, "large files are split"
    with pytest.raises(TableSchemaError, match="column 'id'"):
        writer.append(rows.selectExpr("cast(id as string) id"), Transaction("q", 2))
    writer.compact()
    found = read_table(spark, target)
    assert found.count() == 2000
    assert found.where("tags is null").count() == 1000
    assert found.selectExpr("sum(id)").collect()[0][0] == 2 * sum(range(1000))


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_columns_are_read_as_they_were_written(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    target = Target.parse(f"{kind}:{tmp_path / 'a [table]*'}")
    lake = LakeSettings(target=target, partition_by=[PartitionColumn.parse("code")])
    writer = LakeWriter(lake, Watch())
    codes = [("007",), ("7",), ("1e3",), ("1d",), (None,)]
    rows = spark.createDataFrame(codes, "code string").selectExpr("1 as n", "code")
    writer.append(rows.withMetadata("n", {"comment": "one"}), Transaction("q", 0))
    if kind == "parquet":  # columns of Delta tables stay as narrow as they are
        writer.append(rows.selectExpr("2L as n", "code"), Transaction("q", 1))
    found = read_table(spark, target)
    assert found.schema["code"].dataType.simpleString() == "string"
    assert {row.code for row in found.collect()} == {code for (code,) in codes}
    assert found.schema["n"].metadata == {"comment": "one"}
    assert {row.n for row in found.collect()} == ({1, 2} if kind == "parquet" else {1})


def test_texts_that_have_the_directory_of_null_become_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = Target.parse(f"parquet:{tmp_path / 'table'}")
    lake = LakeSettings(target=target, partition_by=[PartitionColumn.parse("code")])
    codes = [(None,), ("",), ("a",), ("__HIVE_DEFAULT_PARTITION__",), (None,)]
    rows = spark.createDataFrame(codes, "code string").selectExpr("1 as n", "code").coalesce(1)
    assert LakeWriter(lake, Watch()).append(rows, Transaction("q", 0)) == 5
    found = read_table(spark, target).groupBy("code").count().collect()
    assert {row.code: row[1] for row in found} == {None: 4, "a": 1}


@pytest.mark.parametrize("text", ["nosuch", "value=substr(value, 1, 1)"])
def test_partition_columns_are_refused_before_a_query_starts(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, text: str
) -> None:
    publish(cluster, topic, range(1))
    target = Target.parse(f"parquet:{tmp_path / 'table'}")
    settings = ExportSettings(
        source=TopicRange(cluster=cluster, topic=topic),
        lake=LakeSettings(target=target, partition_by=[PartitionColumn.parse(text)]),
        streaming=Streaming(checkpoint=default_checkpoint(target)),
    )
    with pytest.raises(ConfigurationError, match=r"partition-by: .*column '(nosuch|value)'"):
        export(spark, settings)


# --- copy ----------------------------------------------------------------------------------------


def test_a_copy_can_be_repeated(spark: SparkSession, cluster: Cluster, topic: str) -> None:

    publish(cluster, topic, range(50), properties={"a": "b"}, event_timestamp=5000)
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic=topic),
        target=TopicTarget(cluster=cluster, topic=f"{topic}-to", idempotency_key="nightly"),
        where="cast(cast(value as string) as int) < 40",
    )
    steps = Steps()
    copy(spark, settings, Watch(steps))
    copy(spark, settings)
    assert [each.fields["rows"] for each in steps.steps if each.event == "sent"] == [40]
    found = stored(cluster, f"{topic}-to")
    assert sorted(numbers(found)) == list(range(40))
    assert found[0].properties() == {"a": "b"}
    assert found[0].event_timestamp() == 5000
    assert found[0].partition_key() == str(numbers(found)[0] % 10)


def test_a_range_of_time_is_replayed(spark: SparkSession, cluster: Cluster, topic: str) -> None:

    publish(cluster, topic, range(20))
    middle = stored(cluster, topic)[-1].publish_timestamp() + 1
    wait_until(middle)
    publish(cluster, topic, range(20, 30))
    end = stored(cluster, topic)[-1].publish_timestamp() + 1
    settings = ReplaySettings(
        source=TopicRange(cluster=cluster, topic=topic, starting_millis=middle, ending_millis=end),
        target=TopicTarget(cluster=cluster, topic=f"{topic}-again"),
        name="again",
    )
    replay(spark, settings)
    replay(spark, settings)
    assert sorted(numbers(stored(cluster, f"{topic}-again"))) == list(range(20, 30))


def test_two_topics_are_replayed_under_one_name(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    target = TopicTarget(cluster=cluster, topic=f"{topic}-both")
    replays = []
    for name, values in (("a", range(10)), ("b", range(50, 70))):
        publish(cluster, f"{topic}-{name}", values)
        source = TopicRange(
            cluster=cluster,
            topic=f"{topic}-{name}",
            starting_millis=1,
            ending_millis=1 << 42,
        )
        replays.append(ReplaySettings(source=source, target=target, name="again"))
    for settings in (*replays, *replays):
        replay(spark, settings)
    assert sorted(numbers(stored(cluster, target.topic))) == [*range(10), *range(50, 70)]


def wait_until(millis: int) -> None:
    """Until the clock that producers stamp messages with has got there."""
    clock = SystemClock()
    while clock.wall_time_millis() < millis:
        pass


# --- backfill and compact ------------------------------------------------------------------------


def test_a_compaction_is_sent_again_when_its_source_has_changed(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    target = TopicTarget(cluster=cluster, topic=f"{topic}-newest", idempotency_key="nightly")
    settings = CompactSettings(source=TopicRange(cluster=cluster, topic=topic), topic=target)
    publish(cluster, topic, range(9))
    compact(spark, settings)
    others = {"spark.sql.shuffle.partitions": 5, "spark.sql.adaptive.enabled": False}
    before = {name: spark.conf.get(name) for name in others}
    for name, value in others.items():  # as a machine with more cores may spread rows
        spark.conf.set(name, value)
    compact(spark, settings)
    for name, text in before.items():
        spark.conf.set(name, text)
    assert sorted(numbers(stored(cluster, target.topic))) == list(range(9))
    publish(cluster, topic, range(15, 17))
    compact(spark, settings)
    newest = {each.partition_key(): int(each.data()) for each in stored(cluster, target.topic)}
    assert sorted(newest.values()) == [0, 1, 2, 3, 4, 7, 8, 15, 16]


@pytest.mark.parametrize("order_by", [(), ("__publishTime", "value")])
def test_what_was_exported_is_filled_back(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, order_by: tuple[str, ...]
) -> None:

    publish(cluster, topic, range(60), properties={"a": "b"}, event_timestamp=7000)
    target = export_once(spark, cluster, topic, tmp_path / "table")
    settings = BackfillSettings(
        source=target,
        target=TopicTarget(cluster=cluster, topic=f"{topic}-back"),
        name="fill",
        order_by=order_by,
        tasks=2,
        rows_per_second=10_000,
    )
    backfill(spark, settings)
    backfill(spark, settings)
    found = stored(cluster, f"{topic}-back")
    assert sorted(numbers(found)) == list(range(60))
    first = found[0]
    assert first.properties()["a"] == "b"
    assert first.properties()["original-topic"] == topic
    assert first.properties()["original-publish-time"].isdigit()
    assert first.event_timestamp() == 7000
    assert first.partition_key() == str(numbers(found)[0] % 10)


@pytest.mark.parametrize("order_by", [(), ("__publishTime",)])
def test_a_backfill_of_a_table_that_grew_and_was_compacted(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, order_by: tuple[str, ...]
) -> None:
    publish(cluster, topic, range(50))
    target = export_once(spark, cluster, topic, tmp_path / "table")
    settings = BackfillSettings(
        source=target,
        target=TopicTarget(cluster=cluster, topic=f"{topic}-back"),
        name="fill",
        order_by=order_by,
    )
    backfill(spark, settings)
    publish(cluster, topic, range(50, 90))
    export_once(spark, cluster, topic, tmp_path / "table")
    assert len(open_table(target).files()) == 1
    if order_by:
        backfill(spark, settings)
        assert sorted(numbers(stored(cluster, f"{topic}-back"))) == list(range(90))
        return
    with pytest.raises(ConfigurationError, match=r"files: 1 of \d+ bytes then, 1 of \d+ .*now"):
        backfill(spark, settings)
    assert sorted(numbers(stored(cluster, f"{topic}-back"))) == list(range(50))
    assert read_table(spark, target).count() == 90


def table_of(spark: SparkSession, path: Path, values: range) -> Target:
    rows = spark.range(values.start, values.stop).selectExpr("cast(id as string) as value")
    rows.coalesce(1).write.parquet(str(path))
    return Target.parse(f"parquet:{path}")


@pytest.mark.parametrize("order_by", [(), ("value",)])
def test_two_tables_under_one_name_are_two_backfills(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, order_by: tuple[str, ...]
) -> None:
    tables = [table_of(spark, tmp_path / str(each), range(each, each + 9)) for each in (10, 50)]
    notes = tmp_path / "notes"
    notes.mkdir()
    both = [
        BackfillSettings(
            source=each,
            target=TopicTarget(cluster=cluster, topic=topic),
            name="fill",
            order_by=order_by,
            tasks=2,
        )
        for each in tables
    ]
    for settings in (*both, *both):
        backfill(spark, settings)
    expected = [*range(10, 19), *range(50, 59)]
    assert sorted(numbers(stored(cluster, topic))) == expected
    # A note of the table's own holds, wherever others shall lie.
    backfill(spark, replace(both[0], notes=notes))
    shutil.rmtree(tables[0].path / "_backfill")
    with pytest.raises(ConfigurationError, match="the topic has rows of it, but the note"):
        backfill(spark, replace(both[0], notes=notes))
    backfill(spark, replace(both[0], notes=notes, name="more"))
    shutil.rmtree(tables[1].path / "_backfill")
    with pytest.raises(ConfigurationError, match=f"is {tables[0]}, not {tables[1]}"):
        backfill(spark, replace(both[1], notes=notes, name="more"))
    assert sorted(numbers(stored(cluster, topic))) == sorted([*expected, *range(10, 19)])


def export_once(spark: SparkSession, cluster: Cluster, topic: str, path: Path) -> Any:

    target = Target.parse(f"parquet:{path}")
    settings = ExportSettings(
        source=TopicRange(cluster=cluster, topic=topic),
        lake=LakeSettings(target=target),
        streaming=Streaming(checkpoint=default_checkpoint(target)),
    )
    export(spark, settings)
    return target


def tombstone(cluster: Cluster, topic: str, key: str) -> None:
    async def send() -> None:
        async with (
            Client(cluster.service_url) as client,
            await client.create_producer(topic) as producer,
        ):
            await producer.send(None, key=key)

    asyncio.run(send())


def test_compaction_keeps_the_newest_of_each_key(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:

    publish(cluster, topic, range(40))
    tombstone(cluster, topic, "3")
    source = TopicRange(cluster=cluster, topic=topic)
    newest = [value for value in range(30, 40) if value != 33]
    to = TopicTarget(cluster=cluster, topic=f"{topic}-newest", idempotency_key="newest")
    compact(spark, CompactSettings(source=source, topic=to))
    assert sorted(numbers(stored(cluster, f"{topic}-newest"))) == newest
    target = Target.parse(f"delta:{tmp_path / 'newest'}")
    settings = CompactSettings(source=source, lake=LakeSettings(target=target))
    compact(spark, settings)
    publish(cluster, topic, range(41, 42))
    compact(spark, settings)
    rows = read_table(spark, target).selectExpr("cast(value as string) v").collect()
    assert sorted(int(row.v) for row in rows) == sorted({*newest, 41} - {31})


# --- aggregate and report ------------------------------------------------------------------------


def test_windows_are_counted_by_key(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:

    hour = 3_600_000
    publish(cluster, topic, range(20), event_timestamp=hour)
    publish(cluster, topic, range(1), event_timestamp=100 * hour)  # moves the watermark
    target = Target.parse(f"parquet:{tmp_path / 'windows'}")
    settings = AggregateSettings(
        source=TopicRange(cluster=cluster, topic=topic),
        keys=["cast(__key as string) as digit"],
        aggregates="count, max(cast(cast(value as string) as int)) as top",
        window_seconds=3600,
        time_column="__eventTime",
        lake=LakeSettings(target=target),
        streaming=Streaming(checkpoint=str(tmp_path / "checkpoint")),
    )
    aggregate(spark, settings)
    rows = read_table(spark, target).orderBy("digit").collect()
    assert [row.digit for row in rows] == [str(digit) for digit in range(10)]
    assert [row["count"] for row in rows] == [2] * 10
    assert [row.top for row in rows] == list(range(10, 20))
    with pytest.raises(ConfigurationError, match=r"--window was 3600, and is 60: "):
        aggregate(spark, replace(settings, window_seconds=60))


def test_windows_go_to_a_topic_and_are_copied_as_a_stream(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    publish(cluster, topic, range(20), event_timestamp=3_600_000)
    windows = f"{topic}-windows"
    settings = AggregateSettings(
        source=TopicRange(cluster=cluster, topic=topic),
        keys=["cast(__key as string) as digit"],
        aggregates="count",
        window_seconds=60,
        time_column="__eventTime",
        topic=TopicTarget(cluster=cluster, topic=windows, idempotency_key="windows"),
    )
    aggregate(spark, settings)
    aggregate(spark, settings)
    copied = CopySettings(
        source=TopicRange(cluster=cluster, topic=windows),
        target=TopicTarget(cluster=cluster, topic=f"{windows}-to"),
        streaming=Streaming(checkpoint=f"file://{tmp_path}/check%20point"),
    )
    copy(spark, copied)
    copy(spark, copied)
    assert (tmp_path / "check point" / "commits").is_dir()
    with pytest.raises(ConfigurationError, match="--to was "):
        copy(spark, replace(copied, target=TopicTarget(cluster=cluster, topic=f"{windows}-else")))
    found = stored(cluster, f"{windows}-to")
    assert sorted(each.partition_key() for each in found) == [str(digit) for digit in range(10)]
    assert json.loads(found[0].data())["count"] == 2
    assert found[0].event_timestamp() == 3_660_000


def test_a_page_of_a_topics_traffic(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:

    assert cluster.admin_url is not None
    publish(cluster, topic, range(10))
    subscribe(cluster, topic, "slow")
    publish(cluster, topic, range(10, 30), event_timestamp=1000)
    settings = ReportSettings(
        source=TopicRange(cluster=cluster, topic=topic),
        page=tmp_path / "traffic.html",
        admin=AdminSettings(url=cluster.admin_url),
    )
    traffic = report(spark, settings)
    assert traffic.messages == 30
    assert traffic.keys_count == 10
    assert sum(traffic.lateness.values()) == 20
    assert [(each.subscription, each.messages) for each in traffic.backlogs] == [("slow", 20)]
    text = settings.page.read_text()
    assert text.count("<svg") >= 5
    assert "slow" in text


def test_a_page_of_messages_whose_clock_is_beyond_all_times(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    time = "cast(null as timestamp)"
    rows = spark.sql(
        f"select binary('k') __key, 't' __topic, {time} __publishTime, {time} __eventTime,"
        " 1L __ledgerId, id __entryId, 5 __size, if(id = 0, 1000L, null) millis from range(3)"
    )
    source = TopicRange(cluster=cluster, topic=topic)
    traffic = _count(rows, ReportSettings(source=source, page=tmp_path / "page"))
    assert (traffic.messages, traffic.size_bytes) == (3, 15)
    assert [each.messages for each in traffic.buckets] == [1]


def subscribe(cluster: Cluster, topic: str, name: str) -> None:
    async def make() -> None:
        async with Client(cluster.service_url) as client:
            await (await client.subscribe(topic, name)).close()

    asyncio.run(make())


# --- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_continuous_export_ends_on_a_signal(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, number: signal.Signals
) -> None:
    """In a process of its own, where Java is started again; Ctrl-C goes to the whole group."""
    publish(cluster, topic, range(10))
    assert cluster.admin_url is not None
    arguments = ["export", "--topic", topic, "--to", f"parquet:{tmp_path / 'table'}"]
    arguments += ["--continuous", "--interval", "1s", "--master", "local[1]"]
    arguments += ["--service-url", cluster.service_url, "--admin-url", cluster.admin_url]
    arguments += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=1g"]
    program = "from pulsar_py.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "pipeline", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        events = []
        others = []
        for line in process.stderr:
            step = json.loads(line)
            if step["event"] == "spark":
                others.append(step["line"])
                continue
            events.append(step["event"])
            if step["event"] == "failed":
                others.append(line)
            if events[-1] == "committed":
                os.killpg(process.pid, number)
        assert process.wait() == 0, others[-20:]
    assert events[0] == "started"
    assert events[-1] == "stopped"
    assert events.count("stopped") == 1
    assert not [line for line in others if "Traceback" in line or "Interrupt" in line], others
    assert spark.read.parquet(str(tmp_path / "table")).count() == 10
