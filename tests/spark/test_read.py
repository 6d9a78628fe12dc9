"""Topics read through a real session: every option once, streams, restarts, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_py.client import Client
from pulsar_py.client.shared.enums import InitialPosition
from pulsar_py.common.message_id import MessageId
from pulsar_py.schema import StringSchema
from pulsar_py.testing.broker_thread import BrokerThread
from tests.spark.reading_parts import Topics, numbers, reading, streaming
from tests.unit.spark.broker_parts import BROKER_CONFIG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT = 25
"""Messages of the topic that most tests read: three ledgers."""
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def topics() -> Iterator[Topics]:
    with BrokerThread(config=BROKER_CONFIG) as broker:
        yield Topics(broker)


@pytest.fixture(scope="module")
def filled(topics: Topics) -> tuple[str, list[MessageId]]:
    """A topic with 0 to 24, and where they are."""
    name = "persistent://public/default/read"
    return name, topics.fill(name, 0, COUNT)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """One for each test."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    return f"persistent://public/default/{name}"


# --- batches -------------------------------------------------------------------------------------


def test_a_batch_has_every_message_once_with_its_metadata(
    spark: SparkSession, topics: Topics, filled: tuple[str, list[MessageId]]
) -> None:
    topic, ids = filled
    frame = reading(spark, topics, topic)
    assert frame.columns[0] == "value"
    assert frame.rdd.getNumPartitions() == 3
    rows = sorted(frame.collect(), key=lambda row: int(row.value))
    assert [int(row.value) for row in rows] == list(range(COUNT))
    assert [bytes(row["__key"]) for row in rows] == [b"key-%d" % i for i in range(COUNT)]
    assert [row["__messageProperties"] for row in rows] == [
        {"index": str(index)} for index in range(COUNT)
    ]
    assert {row["__topic"] for row in rows} == {topic}
    positions = [MessageId.parse(bytes(row["__messageId"])).position for row in rows]
    assert positions == [each.position for each in ids]
    assert [row["__eventTime"].timestamp() for row in rows] == [
        (1000 + index) / 1000 for index in range(COUNT)
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"valueMode": "raw"},
        {"columns": "all"},
        {"columns": "__entryId,__ledgerId"},
        {"minPartitions": 9},
        {"maxBytesPerPartition": 100},
        {"arrowBatchBytes": 10},
        {"pollTimeoutMs": 5000},
        {"failOnDataLoss": "false"},
        {"subscriptionPrefix": "mine"},
        {"waitingForNonExistedTopic": "true"},
        {"includeHeaders": "true"},
        {"allowDifferentTopicSchemas": "true"},
        {"undecodable": "column"},
        {"pulsar_client_operationTimeoutMs": 20_000},
        {"pulsar_reader_receiverQueueSize": 10},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_leave_the_rows_as_they_are(
    spark: SparkSession,
    topics: Topics,
    filled: tuple[str, list[MessageId]],
    options: dict[str, object],
) -> None:
    assert numbers(reading(spark, topics, filled[0], **options)) == list(range(COUNT))


def test_all_ways_to_name_topics(
    spark: SparkSession, topics: Topics, filled: tuple[str, list[MessageId]], topic: str
) -> None:
    topics.fill(topic, 100, 103)
    both = [*range(COUNT), 100, 101, 102]
    assert numbers(reading(spark, topics, None, Topics=f"{filled[0]},{topic}")) == both
    assert numbers(reading(spark, topics, None, subscribe=topic)) == [100, 101, 102]
    pattern = "persistent://public/default/test-all-ways-.*"
    assert numbers(reading(spark, topics, None, topicsPattern=pattern)) == [100, 101, 102]


def test_bounds_by_position_and_by_time(
    spark: SparkSession, topics: Topics, filled: tuple[str, list[MessageId]]
) -> None:
    topic, ids = filled
    some = reading(
        spark,
        topics,
        topic,
        startingOffsets=json.dumps({topic: str(ids[3].position)}),
        endingOffsets=json.dumps({topic: str(ids[17].position)}),
    )
    assert numbers(some) == list(range(3, 18))
    whole = reading(spark, topics, topic, startingTime=0, endingTime=4_000_000_000_000)
    assert numbers(whole) == list(range(COUNT))
    late = reading(spark, topics, topic, startingTime=4_000_000_000_000)
    assert numbers(late) == []


def test_without_an_admin_url_and_without_messages(
    spark: SparkSession, topics: Topics, filled: tuple[str, list[MessageId]], topic: str
) -> None:
    options = {"service.url": topics.broker.service_url, "topic": filled[0]}
    assert numbers(spark.read.format("pulsar").options(**options).load()) == list(range(COUNT))
    topics.fill(topic, 0, 0)
    assert numbers(reading(spark, topics, topic)) == []


def test_a_user_s_schema_is_a_projection(
    spark: SparkSession, topics: Topics, filled: tuple[str, list[MessageId]]
) -> None:
    options = {"service.url": topics.broker.service_url, "topic": filled[0]}
    reader = spark.read.format("pulsar").options(**options)
    frame = reader.schema("`__entryId` BIGINT, value BINARY").load()
    assert frame.columns == ["__entryId", "value"]
    assert frame.count() == COUNT


@pytest.mark.parametrize("is_on", [True, False])
def test_filters_give_the_same_rows_pushed_down_or_not(
    spark: SparkSession,
    topics: Topics,
    filled: tuple[str, list[MessageId]],
    is_on: bool,  # noqa: FBT001 - a parameter of pytest's
) -> None:
    topic, ids = filled
    spark.conf.set(PUSHDOWN, str(is_on).lower())
    try:

        def where(condition: str) -> DataFrame:
            options = {"columns": "all", "pushDown": "true"}
            return reading(spark, topics, topic, **options).where(condition)

        second = ids[15].position.ledger_id
        kept = where(f"__ledgerId = {second} AND __topic = '{topic}'")
        assert numbers(kept) == list(range(10, 20))
        assert kept.rdd.getNumPartitions() == (1 if is_on else 3)
        assert numbers(where("__topic = 'another'")) == []
        future = datetime(2100, 1, 1, tzinfo=UTC).isoformat()
        assert numbers(where(f"__publishTime > timestamp '{future}'")) == []
        # Without the option, a DataFrame may be filtered and then not.
        plain = reading(spark, topics, topic, columns="all")
        assert numbers(plain.where("__topic = 'another'")) == []
        assert numbers(plain) == list(range(COUNT))
    finally:
        spark.conf.unset(PUSHDOWN)


def test_a_chunked_message_is_one_row_however_pieces_are_cut(
    spark: SparkSession, topics: Topics, topic: str
) -> None:
    payloads = [bytes([index]) * 5500 for index in range(6)]

    async def publish(client: Client) -> None:
        async with await client.create_producer(
            topic, batching_enabled=False, chunking_enabled=True, chunk_max_message_size=1000
        ) as producer:
            for payload in payloads:
                await producer.send(payload)

    topics.do(publish)
    frame = reading(spark, topics, topic, maxBytesPerPartition=2500)
    assert frame.rdd.getNumPartitions() > 12
    assert sorted(bytes(row.value) for row in frame.select("value").collect()) == payloads


def test_a_compacted_read_has_the_newest_of_each_key(
    spark: SparkSession, topics: Topics, topic: str
) -> None:
    for _ in range(3):
        topics.fill(topic, 0, 4)
    # Not compacted yet: the broker gives what there is.
    frame = reading(spark, topics, topic, readCompacted="true")
    assert set(numbers(frame)) == {0, 1, 2, 3}


# --- streams -------------------------------------------------------------------------------------


class Sink:
    """What a query has written so far: a batch of rows for each micro-batch, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.checkpoint = str(directory / "checkpoint")
        self.path = str(directory / "rows")
        self.batches: list[list[int]] = []

    def take(self, frame: DataFrame, _: int) -> None:
        self.batches.append(numbers(frame))

    def run(self, frame: DataFrame) -> list[dict[str, Any]]:
        """Read everything that is there; the progress of each micro-batch with rows."""
        query = (
            frame.writeStream.foreachBatch(self.take)
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        return [json.loads(each.json) for each in query.recentProgress if each.numInputRows]

    @property
    def rows(self) -> list[int]:
        """All of them, in order."""
        return [row for batch in self.batches for row in batch]


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    return Sink(tmp_path)


def test_a_stream_goes_on_where_its_checkpoint_ends(
    spark: SparkSession, topics: Topics, topic: str, sink: Sink
) -> None:
    topics.fill(topic, 0, 12)
    options = {"startingOffsets": "earliest", "maxEntriesPerTrigger": 5}
    sink.run(streaming(spark, topics, topic, **options))
    assert sink.batches == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]
    topics.fill(topic, 12, 15)
    progress = sink.run(streaming(spark, topics, topic, **options))
    assert sink.batches[3:] == [[12, 13, 14]]
    source = progress[-1]["sources"][0]
    assert source["endOffset"] == source["latestOffset"]


def test_a_stream_without_a_checkpoint_starts_at_the_end(
    spark: SparkSession, topics: Topics, topic: str, sink: Sink
) -> None:
    topics.fill(topic, 0, 3)
    query = (
        streaming(spark, topics, topic)
        .writeStream.foreachBatch(sink.take)
        .option("checkpointLocation", sink.checkpoint)
        .start()
    )
    try:
        query.processAllAvailable()
        topics.fill(topic, 3, 6)
        query.processAllAvailable()
    finally:
        query.stop()
    assert sink.rows == [3, 4, 5]


def test_a_limit_of_bytes_holds_for_all_partitions_and_new_ones_are_read_from_their_start(
    spark: SparkSession, topics: Topics, topic: str, sink: Sink
) -> None:
    for partition in (0, 1):
        topics.fill(f"{topic}-{partition}", 100 * partition, 100 * partition + 8)
    pattern = f"{topic}-.*"
    options = {
        "topicsPattern": pattern,
        "startingOffsets": "earliest",
        "maxBytesPerTrigger": 400,
    }
    sink.run(streaming(spark, topics, None, **options))
    assert len(sink.batches) > 1
    assert sorted(sink.rows) == [*range(8), *range(100, 108)]
    sink.batches.clear()
    topics.fill(f"{topic}-2", 200, 203)
    sink.run(streaming(spark, topics, None, **options | {"startingOffsets": "latest"}))
    assert sorted(sink.rows) == [200, 201, 202]


def test_the_user_s_subscription_follows(
    spark: SparkSession, topics: Topics, topic: str, sink: Sink
) -> None:
    topics.fill(topic, 0, 4)
    options = {"startingOffsets": "earliest", "predefinedSubscription": "mine"}
    sink.run(streaming(spark, topics, topic, **options))
    topics.fill(topic, 4, 6)
    sink.run(streaming(spark, topics, topic, **options))
    assert sink.rows == list(range(6))

    async def first_left(client: Client) -> bytes:
        async with await client.subscribe(
            topic, "mine", initial_position=InitialPosition.Earliest
        ) as consumer:
            return (await consumer.receive(10_000)).data()

    # Spark commits a batch to its source with the next one.
    assert int(topics.do(first_left)) == 4


# --- bad input -----------------------------------------------------------------------------------


def error_of(frame: DataFrame) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's, of several classes
        frame.collect()
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topci": "x"}, "unknown option 'topci', did you mean 'topic'?"),
        ({"pulsar_client_listenerNam": "x"}, "did you mean 'pulsar.client.listenerName'?"),
        (
            {"startingOffsets": "latest"},
            "startingOffsets: 'latest' would make the batch empty, it is for streams",
        ),
        ({"topicsPattern": "a"}, "exactly one of topic, topics and topicsPattern"),
        ({"columns": "__nothing"}, "__nothing"),
        ({"maxBytesPerPartition": 0}, "maxBytesPerPartition: 0 is out of bounds: at least 1"),
        (
            {"startingOffsets": json.dumps({"read": "here"})},
            "startingOffsets: read: 'here' is not ledger:entry",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_that_make_no_sense_are_named(
    spark: SparkSession,
    topics: Topics,
    filled: tuple[str, list[MessageId]],
    options: dict[str, object],
    message: str,
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's, of several classes
        reading(spark, topics, filled[0], **options).collect()
    assert message in str(caught.value)


def test_a_broker_that_is_not_there_is_named(spark: SparkSession) -> None:
    options = {
        "service.url": "pulsar://127.0.0.1:1",
        "topic": "persistent://public/default/x",
        "pulsar.client.operationTimeoutMs": "1000",
    }
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1"):
        spark.read.format("pulsar").options(**options).load().collect()


def test_what_can_t_be_decoded_names_topic_and_message(
    spark: SparkSession, topics: Topics, topic: str
) -> None:
    async def publish(client: Client) -> MessageId:
        async with await client.create_producer(topic, schema=StringSchema()) as producer:
            await producer.send("good")
        async with await client.create_producer(topic) as producer:
            return await producer.send(b"\xff\xfe")

    broken = topics.do(publish)
    text = error_of(reading(spark, topics, topic))
    assert f"{topic}: message " in text
    assert str(broken.position.entry_id) in text
    dropped = reading(spark, topics, topic, undecodable="drop").select("value").collect()
    assert [row.value for row in dropped] == ["good"]
    kept = reading(spark, topics, topic, undecodable="column").collect()
    assert {row["__undecodable"] and bytes(row["__undecodable"]) for row in kept} == {
        None,
        b"\xff\xfe",
    }


def test_a_start_that_was_trimmed_is_a_loss_with_its_position(
    spark: SparkSession, topics: Topics, filled: tuple[str, list[MessageId]]
) -> None:
    topic, ids = filled
    gone = f"{ids[0].position.ledger_id - 1}:7"
    options = {"startingOffsets": json.dumps({topic: gone})}
    text = error_of(reading(spark, topics, topic, **options))
    assert f"{topic}: entries from {gone} on were deleted" in text
    assert "failOnDataLoss" in text
    rows = reading(spark, topics, topic, failOnDataLoss="false", **options)
    assert numbers(rows) == list(range(COUNT))


def test_a_topic_that_vanished_under_a_stream_is_a_loss(
    spark: SparkSession, topics: Topics, topic: str, sink: Sink
) -> None:
    for each in ("a", "b"):
        topics.fill(f"{topic}-{each}", 0, 2)
    options = {"topicsPattern": f"{topic}-.*", "startingOffsets": "earliest"}
    sink.run(streaming(spark, topics, None, **options))
    asyncio.run(delete(topics, f"{topic}-a"))
    topics.fill(f"{topic}-b", 2, 4)
    with pytest.raises(Exception, match=f"{topic}-a: the topic was deleted"):
        sink.run(streaming(spark, topics, None, **options))
    sink.batches.clear()
    sink.run(streaming(spark, topics, None, **options | {"failOnDataLoss": "false"}))
    assert sink.rows == [2, 3]


def test_a_stream_whose_pattern_matches_nothing_any_more_says_so_and_can_go_on(
    spark: SparkSession, topics: Topics, topic: str, sink: Sink
) -> None:
    topics.fill(f"{topic}-a", 0, 2)
    options = {"topicsPattern": f"{topic}-.*", "startingOffsets": "earliest"}
    sink.run(streaming(spark, topics, None, **options))
    asyncio.run(delete(topics, f"{topic}-a"))
    for fails in ("true", "false"):
        with pytest.raises(Exception, match=r"there is no such topic; waitingForNonExistedTopic"):
            sink.run(streaming(spark, topics, None, **options, failOnDataLoss=fails))
    raw = options | {"valueMode": "raw"}
    with pytest.raises(
        Exception,
        match=f"{topic}-a: the topic was deleted, .*failOnDataLoss=false",
    ):
        sink.run(streaming(spark, topics, None, **raw))
    sink.batches.clear()
    lenient = raw | {"failOnDataLoss": "false"}
    sink.run(streaming(spark, topics, None, **lenient))
    topics.fill(f"{topic}-b", 5, 8)
    sink.run(streaming(spark, topics, None, **lenient))
    assert sink.rows == [5, 6, 7]


async def delete(topics: Topics, topic: str) -> None:
    """Over REST, as an administrator would."""
    path = topic.replace("://", "/")
    url = topics.broker.web_service_url.removeprefix("http://")
    reader, writer = await asyncio.open_connection(*url.split(":"))
    writer.write(
        f"DELETE /admin/v2/{path}?force=true HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    )
    status = await reader.readline()
    writer.close()
    assert b" 204 " in status
