"""Which messages pipelines keep, and what of them."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.client import Client
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from pulsar_py.pipeline.aggregate import AggregateSettings, aggregate
from pulsar_py.pipeline.compact import CompactSettings, compact, newest_of_each_key
from pulsar_py.pipeline.copy import CopySettings, copy
from pulsar_py.pipeline.lake import LakeSettings, read_table
from pulsar_py.pipeline.replay import ReplaySettings, replay
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings import Cluster, TopicRange, TopicTarget
from pulsar_py.pipeline.tables import Target
from pulsar_py.pipeline.topics import Streaming
from tests.unit.pipeline.running.test_watch import Steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/messages-{uuid.uuid4().hex}"


def publish(cluster: Cluster, topic: str, *messages: dict[str, Any]) -> None:
    """What `send` is told of each."""

    async def send() -> None:
        async with (
            Client(cluster.service_url) as client,
            await client.create_producer(topic) as producer,
        ):
            for each in messages:
                await producer.send(**each)

    asyncio.run(send())


def set_partitions(cluster: Cluster, topic: str, count: int, *, method: str) -> None:
    path = topic.replace("persistent://", f"{cluster.admin_url}/admin/v2/persistent/")
    request = Request(f"{path}/partitions", str(count).encode(), method=method)
    request.add_header("Content-Type", "application/json")
    urlopen(request).close()


def stored(cluster: Cluster, topic: str) -> list[Any]:
    """The messages of a topic."""

    async def read() -> list[Any]:
        found = []
        async with (
            Client(cluster.service_url) as client,
            await client.create_reader(topic, EARLIEST_MESSAGE_ID) as reader,
        ):
            while await reader.has_message_available():
                found.append(await reader.read_next())
        return found

    return asyncio.run(read())


# --- what is kept of a message -------------------------------------------------------------------

MESSAGES: list[dict[str, Any]] = [
    {"content": b"1", "partition_key": "text", "ordering_key": b"O"},
    {"content": b"2", "partition_key": b"\xff\0", "ordering_key": b"\xff"},
    {"content": b"3", "partition_key": b"bytes"},
    {"content": b"4", "partition_key": ""},
    {"content": b"5", "partition_key": b""},
    {"content": b"6"},
    {"content": b"7", "ordering_key": b"", "properties": {"a": "", "": "b"}},
    {"content": b"8", "event_timestamp": 0},
    {"content": b"9", "event_timestamp": 1},
    {"content": b""},
    {"content": None, "partition_key": "gone", "ordering_key": b"O", "properties": {"a": "b"}},
    {"content": None, "event_timestamp": 2},
]


def traits(message: Any) -> tuple[object, ...]:
    return (
        message.data(),
        message.has_null_value(),
        message.key_bytes(),
        message.has_key() and message.has_base64_encoded_key(),
        message.ordering_key_bytes() if message.has_ordering_key() else None,
        message.properties(),
        message.event_timestamp(),
    )


@pytest.mark.parametrize("kind", ["batch", "stream", "replay"])
def test_a_copy_has_all_that_a_producer_said(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, kind: str
) -> None:
    publish(cluster, topic, *MESSAGES)
    source = TopicRange(cluster=cluster, topic=topic)
    target = TopicTarget(cluster=cluster, topic=f"{topic}-to", idempotency_key="all")
    if kind == "replay":
        times = replace(source, starting_millis=1, ending_millis=1 << 42)
        replay(spark, ReplaySettings(source=times, target=target, name="all"))
    else:
        streaming = Streaming(checkpoint=str(tmp_path)) if kind == "stream" else None
        copy(spark, CopySettings(source=source, target=target, streaming=streaming))
    expected = [traits(each) for each in stored(cluster, topic)]
    assert len({repr(each) for each in expected}) == len(MESSAGES)
    found = [traits(each) for each in stored(cluster, target.topic)]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_a_copy_whose_keys_all_become_bytes(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    publish(cluster, topic, *MESSAGES)
    source = TopicRange(cluster=cluster, topic=topic)
    target = TopicTarget(
        cluster=cluster, topic=f"{topic}-to", idempotency_key="all", has_binary_keys=True
    )
    copy(spark, CopySettings(source=source, target=target))
    with_keys = [each for each in stored(cluster, target.topic) if each.has_key()]
    assert all(each.has_base64_encoded_key() for each in with_keys)
    assert {each.key_bytes() for each in with_keys} == {b"text", b"\xff\0", b"bytes", b"", b"gone"}


def test_a_compaction_into_a_topic_has_it_too(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    publish(cluster, topic, *MESSAGES[:5])
    source = TopicRange(cluster=cluster, topic=topic)
    target = TopicTarget(cluster=cluster, topic=f"{topic}-to", idempotency_key="all")
    compact(spark, CompactSettings(source=source, topic=target))
    expected = [traits(each) for each in stored(cluster, topic)]
    found = [traits(each) for each in stored(cluster, target.topic)]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_a_named_copy_is_repeated_while_all_partitions_of_its_topic_grow(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    set_partitions(cluster, topic, 3, method="PUT")
    publish(cluster, f"{topic}-partition-2", *({"content": b"%d" % each} for each in range(20)))
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic=topic),
        target=TopicTarget(cluster=cluster, topic=f"{topic}-to", idempotency_key="nightly"),
    )
    copy(spark, settings)
    for partition, later in enumerate((range(20, 50), range(50, 60), range(60, 100))):
        name = f"{topic}-partition-{partition}"
        publish(cluster, name, *({"content": b"%d" % each} for each in later))
    for _ in range(2):
        copy(spark, settings)
        numbers = [int(each.data()) for each in stored(cluster, f"{topic}-to")]
        assert sorted(numbers) == list(range(100))


# --- the newest of a key -------------------------------------------------------------------------


def test_keys_that_moved_to_a_new_partition_are_compacted(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    keys = [f"k{number}" for number in range(40)]
    set_partitions(cluster, topic, 2, method="PUT")
    publish(cluster, topic, *({"content": b"old", "partition_key": key} for key in keys))
    set_partitions(cluster, topic, 3, method="POST")
    new = [{"content": b"new", "partition_key": key} for key in keys[1:]]
    publish(cluster, topic, *new, {"content": None, "partition_key": keys[0]})
    target = Target.parse(f"parquet:{tmp_path / 'newest'}")
    source = TopicRange(cluster=cluster, topic=topic)
    compact(spark, CompactSettings(source=source, lake=LakeSettings(target=target)))
    rows = read_table(spark, target).selectExpr("string(__key) key", "string(value) value")
    assert {row.key: row.value for row in rows.collect()} == dict.fromkeys(keys[1:], "new")


def test_position_decides_in_a_partition_and_time_between_them(spark: SparkSession) -> None:
    columns = (
        "key string, topic string, seconds long, ledger long, entry long, batch int, gone boolean,"
        " value string"
    )
    rows = [
        # A clock that goes backwards: what stands last in the partition is newest.
        ("a", "t-0", 9, 1, 0, None, False, "first"),
        ("a", "t-0", 5, 1, 1, None, False, "last"),
        # Between partitions time decides, not the ledger, and the last of each partition counts.
        ("b", "t-0", 9, 7, 0, None, False, "first"),
        ("b", "t-0", 5, 7, 1, None, False, "older"),
        ("b", "t-1", 6, 2, 0, None, False, "newer"),
        # Tombstones are messages like others.
        ("c", "t-0", 1, 7, 0, None, False, "gone"),
        ("c", "u", 2, 1, 0, None, True, None),
        ("d", "t-0", 1, 7, 0, None, True, None),
        ("d", "u", 2, 1, 0, None, False, "back"),
        # In a batch the index decides; at one time the position, then the topic.
        ("e", "t-0", 1, 1, 0, 0, False, "first of a batch"),
        ("e", "t-0", 1, 1, 0, 1, False, "second of a batch"),
        ("f", "t-0", 1, 1, 5, 0, False, "lower position"),
        ("f", "t-1", 1, 1, 6, 0, False, "higher position"),
        ("g", "t-1", 1, 1, 6, 0, False, "higher topic"),
        ("g", "t-0", 1, 1, 6, 0, False, "lower topic"),
        (None, "t-0", 1, 1, 6, 0, False, "without a key"),
    ]
    found = newest_of_each_key(
        spark.createDataFrame(rows, columns).selectExpr(
            "key as __key",
            "topic as __topic",
            "timestamp_seconds(seconds) as __publishTime",
            "ledger as __ledgerId",
            "entry as __entryId",
            "batch as __batchIndex",
            "gone as __isTombstone",
            "false as __hasBinaryKey",
            "value",
        )
    )
    assert found.columns == ["__key", "value"]
    assert {row["__key"]: row.value for row in found.collect()} == {
        "a": "last",
        "b": "newer",
        "d": "back",
        "e": "second of a batch",
        "f": "higher position",
        "g": "higher topic",
    }


def test_a_batch_of_windows_replaces_the_last_one(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    target = Target.parse(f"parquet:{tmp_path / 'windows'}")
    settings = AggregateSettings(
        source=TopicRange(cluster=cluster, topic=topic),
        keys=["string(__key) as name"],
        aggregates="count",
        window_seconds=3600,
        time_column="__eventTime",
        lake=LakeSettings(target=target),
    )
    for count in (1, 2):
        publish(cluster, topic, {"content": b"x", "partition_key": "k", "event_timestamp": 1})
        aggregate(spark, settings)
        assert [row["count"] for row in read_table(spark, target).collect()] == [count]


def test_what_came_behind_the_watermark_is_counted(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    settings = AggregateSettings(
        source=TopicRange(cluster=cluster, topic=topic),
        keys=["string(__key) as name"],
        aggregates="count",
        window_seconds=60,
        watermark_seconds=60,
        time_column="__eventTime",
        lake=LakeSettings(target=Target.parse(f"parquet:{tmp_path / 'windows'}")),
        streaming=Streaming(checkpoint=str(tmp_path / "checkpoint")),
    )
    dropped = []
    for millis in (3_600_000, 1):
        publish(cluster, topic, {"content": b"x", "partition_key": "k", "event_timestamp": millis})
        steps = Steps()
        aggregate(spark, settings, Watch(steps))
        found = [each.fields["dropped_as_late"] for each in steps.steps if each.event == "batch"]
        dropped.append(sum(each or 0 for each in found))
    assert dropped == [0, 1]
