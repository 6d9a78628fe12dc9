"""The classes that Spark calls, called by hand: no session, no Java, a broker in another thread."""

from __future__ import annotations

import asyncio
import itertools
import json
import pickle
import re
import sys
import types
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install '.[spark]')")

from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, GreaterThan
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pulsar_py.admin_client import AdminClient
from pulsar_py.client import Client
from pulsar_py.client.shared.enums import InitialPosition
from pulsar_py.common.errors import (
    ConfigurationError,
    SchemaSerializationError,
    TopicNotFoundError,
)
from pulsar_py.common.position import Position
from pulsar_py.schema import StringSchema
from pulsar_py.spark.planning.plans import DataLossError
from pulsar_py.spark.source import (
    PrunedBatchReader,
    PulsarDataSource,
    PulsarStreamReader,
)
from pulsar_py.testing.broker_thread import BrokerThread
from tests.unit.spark.broker_parts import BROKER_CONFIG, publish

TOPIC = "persistent://public/default/source"


@pytest.fixture
def broker() -> Iterator[BrokerThread]:
    with BrokerThread(config=BROKER_CONFIG) as broker:
        yield broker


def do(broker: BrokerThread, work: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
    """Run something with a client of the test's own."""

    async def run() -> Any:
        async with Client(broker.service_url) as client:
            return await work(client)

    return asyncio.run(run())


def fill(broker: BrokerThread, count: int, first: int = 0) -> list[Position]:
    positions: list[Position] = do(
        broker, lambda client: publish(client, TOPIC, range(first, first + count))
    )
    return positions


def source_of(broker: BrokerThread, **options: str) -> PulsarDataSource:
    given = {
        "service.url": broker.service_url,
        "admin.url": broker.web_service_url,
        "topic": TOPIC,
    } | {name.lower(): value for name, value in options.items()}
    return PulsarDataSource(given)


TYPES = {
    "BINARY": BinaryType(),
    "BOOLEAN": BooleanType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "STRING": StringType(),
    "TIMESTAMP_LTZ": TimestampType(),
    "MAP<STRING, STRING>": MapType(StringType(), StringType()),
}


def struct(ddl: str) -> StructType:
    """Spark's own parser is the JVM's."""
    found = re.findall(r"`?(\w+)`? (MAP<[^>]*>|\w+)", ddl)
    return StructType([StructField(name, TYPES[kind]) for name, kind in found])


def schema_of(source: PulsarDataSource, *names: str) -> StructType:
    whole = struct(source.schema())
    return StructType([whole[name] for name in names]) if names else whole


def reader_of(source: PulsarDataSource, *names: str) -> DataSourceReader:
    return source.reader(schema_of(source, *names))


def stream_of(source: PulsarDataSource, *names: str) -> PulsarStreamReader:
    reader = source.streamReader(schema_of(source, *names))
    assert isinstance(reader, PulsarStreamReader)
    return reader


def rows(reader: Any, partitions: Any) -> pa.Table:  # Any: both kinds of readers
    """What workers would read, which get a pickled reader and pickled partitions."""
    reader, partitions = pickle.loads(pickle.dumps((reader, list(partitions))))
    batches = [batch for each in partitions for batch in reader.read(each)]
    return pa.Table.from_batches(batches)


def values(reader: Any, partitions: Any) -> list[int]:
    return [int(each) for each in rows(reader, partitions)["value"].to_pylist()]


def test_the_schema_is_the_value_then_six_metadata_columns(broker: BrokerThread) -> None:
    fill(broker, 1)
    assert schema_of(source_of(broker)).names == [
        "value", "__key", "__topic", "__messageId", "__publishTime", "__eventTime",
        "__messageProperties",
    ]  # fmt: skip
    more = schema_of(source_of(broker, columns="__entryId,__index", undecodable="column"))
    assert more.names == ["value", "__entryId", "__index", "__undecodable"]


def test_a_batch_is_read_in_pieces_and_each_row_once(broker: BrokerThread) -> None:
    fill(broker, 25)
    reader = reader_of(source_of(broker))
    partitions = reader.partitions()
    assert len(partitions) == 3
    table = rows(reader, partitions)
    assert table["value"].to_pylist() == [b"%d" % index for index in range(25)]
    assert table["__topic"].to_pylist() == [TOPIC] * 25
    assert len(reader_of(source_of(broker, minPartitions="12")).partitions()) >= 12


def test_a_topic_without_messages_is_no_partition_and_no_row(broker: BrokerThread) -> None:
    fill(broker, 0)
    reader = reader_of(source_of(broker))
    assert list(reader.partitions()) == []
    assert list(reader.read(None)) == []


def test_a_user_s_schema_is_a_projection_in_its_order(broker: BrokerThread) -> None:
    fill(broker, 3)
    reader = reader_of(source_of(broker), "__topic", "value")
    assert rows(reader, reader.partitions()).column_names == ["__topic", "value"]


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("valeu BINARY", "schema: there is no column 'valeu', did you mean 'value'?"),
        ("amount INT", "schema: there is no column 'amount'; the topic's value has value"),
        ("value INT", "schema: column 'value' is binary in the topic, not int32"),
    ],
)
def test_a_user_s_schema_that_does_not_fit_is_refused(
    broker: BrokerThread, ddl: str, message: str
) -> None:
    fill(broker, 1)
    with pytest.raises(ConfigurationError, match=message.replace("?", r"\?")):
        source_of(broker).reader(struct(ddl))


def test_filters_leave_out_pieces_and_are_evaluated_again(broker: BrokerThread) -> None:
    positions = fill(broker, 25)
    source = source_of(broker, columns="all")
    plain = reader_of(source)
    assert not hasattr(plain, "pushFilters") or type(plain).pushFilters is (
        DataSourceReader.pushFilters
    )
    reader = PrunedBatchReader(plain._task)  # type: ignore[attr-defined] # as the push-down planner makes it
    filters: list[Filter] = [
        GreaterThan(("__ledgerId",), positions[9].ledger_id),
        EqualTo(("__topic",), TOPIC),
        EqualTo(("value",), b"x"),
    ]
    assert list(reader.pushFilters(filters)) == filters
    # Only whole ledgers are known to be left out: 10 to 19, and 20 to 24.
    assert values(reader, reader.partitions())[-15:] == list(range(10, 25))
    assert len(reader.partitions()) < 4
    other = PrunedBatchReader(plain._task)  # type: ignore[attr-defined] # as above
    other.pushFilters([EqualTo(("__topic",), "persistent://public/default/other")])
    assert list(other.partitions()) == []


# --- streams -------------------------------------------------------------------------------------


def test_micro_batches_follow_one_another(broker: BrokerThread) -> None:
    fill(broker, 12)
    reader = stream_of(source_of(broker, startingOffsets="earliest", maxEntriesPerTrigger="5"))
    limit = reader.getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    start, seen = reader.initialOffset(), []
    while (end := reader.latestOffset(start, limit)) != start:
        seen.append(values(reader, reader.partitions(start, end)))
        start = end
    assert list(itertools.chain(*seen)) == list(range(12))
    assert [len(each) for each in seen] == [5, 5, 2]
    assert reader.reportLatestOffset() == end
    reader.stop()


def test_a_limit_of_bytes_and_none(broker: BrokerThread) -> None:
    fill(broker, 10)
    by_bytes = stream_of(source_of(broker, startingOffsets="earliest", maxBytesPerTrigger="1"))
    assert isinstance(by_bytes.getDefaultReadLimit(), ReadMaxBytes)
    start = by_bytes.initialOffset()
    end = by_bytes.latestOffset(start, by_bytes.getDefaultReadLimit())
    assert values(by_bytes, by_bytes.partitions(start, end)) == [0]
    # Once without triggers, Spark says so, whatever the options are.
    end = by_bytes.latestOffset(start, ReadAllAvailable())
    assert values(by_bytes, by_bytes.partitions(start, end)) == list(range(10))
    by_bytes.stop()
    free = stream_of(source_of(broker))
    assert isinstance(free.getDefaultReadLimit(), ReadAllAvailable)
    free.stop()


def test_available_now_does_not_read_what_comes_later(broker: BrokerThread) -> None:
    fill(broker, 4)
    reader = stream_of(source_of(broker, startingOffsets="earliest"))
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    fill(broker, 4, first=4)
    end = reader.latestOffset(start, ReadAllAvailable())
    assert values(reader, reader.partitions(start, end)) == [0, 1, 2, 3]
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    reader.stop()
    reader.stop()


def test_a_reader_made_anew_replays_the_same(broker: BrokerThread) -> None:
    fill(broker, 15)
    first = stream_of(source_of(broker, startingOffsets="earliest"))
    start = first.initialOffset()
    end = json.loads(json.dumps(first.latestOffset(start, ReadAllAvailable())))
    first.stop()
    fill(broker, 15, first=15)
    again = stream_of(source_of(broker, startingOffsets="latest"))
    assert values(again, again.partitions(start, end)) == list(range(15))
    again.stop()


def test_a_commit_moves_the_user_s_subscription_alone(broker: BrokerThread) -> None:
    positions = fill(broker, 12)

    async def first_of(client: Client) -> bytes:
        async with await client.subscribe(
            TOPIC, "mine", initial_position=InitialPosition.Earliest
        ) as consumer:
            return (await consumer.receive()).data()

    end = {TOPIC: str(positions[7]), "~v": "1"}
    plain = stream_of(source_of(broker))
    plain.commit(end)
    plain.stop()
    assert do(broker, first_of) == b"0"
    durable = stream_of(source_of(broker, predefinedSubscription="mine"))
    durable.commit(end)
    durable.stop()
    assert do(broker, first_of) == b"7"


def delete(broker: BrokerThread, topic: str) -> None:
    path = f"/admin/v2/{topic.replace('://', '/')}?force=true"
    with AdminClient(broker.web_service_url) as admin:
        admin.send("DELETE", path)


def pattern_of(broker: BrokerThread, **options: str) -> PulsarDataSource:
    given = {
        "service.url": broker.service_url,
        "admin.url": broker.web_service_url,
        "topicspattern": "persistent://public/default/sour.*",
    }
    return PulsarDataSource(given | {name.lower(): value for name, value in options.items()})


def test_a_pattern_whose_topics_are_all_gone_is_a_loss_or_waits_for_the_next(
    broker: BrokerThread,
) -> None:
    fill(broker, 3)
    first = stream_of(pattern_of(broker, valueMode="raw", startingOffsets="earliest"))
    start = first.latestOffset(first.initialOffset(), ReadAllAvailable())
    first.stop()
    delete(broker, TOPIC)
    strict = stream_of(pattern_of(broker, valueMode="raw"))
    end = strict.latestOffset(start, ReadAllAvailable())
    with pytest.raises(
        DataLossError,
        match=f"{TOPIC}: the topic was deleted, {start[TOPIC]} was to",
    ):
        strict.partitions(start, end)
    with pytest.raises(TopicNotFoundError, match="no such topic"):
        strict.initialOffset()
    strict.stop()
    lenient = stream_of(pattern_of(broker, valueMode="raw", failOnDataLoss="false"))
    end = lenient.latestOffset(start, ReadAllAvailable())
    assert list(lenient.partitions(start, end)) == []
    assert lenient.latestOffset(end, ReadAllAvailable()) == end
    fill(broker, 4)
    more = lenient.latestOffset(end, ReadAllAvailable())
    assert values(lenient, lenient.partitions(end, more)) == [0, 1, 2, 3]
    delete(broker, TOPIC)  # while the query runs
    assert list(lenient.partitions(more, lenient.latestOffset(more, ReadAllAvailable()))) == []
    lenient.stop()


@pytest.mark.parametrize("fails", ["true", "false"])
def test_columns_of_topics_that_are_all_gone_are_not_guessed(
    broker: BrokerThread, fails: str
) -> None:
    with pytest.raises(
        TopicNotFoundError,
        match=r"topicsPattern '.*sour\.\*': there is no such topic; waitingForNonExistedTopic=true",
    ):
        pattern_of(broker, failOnDataLoss=fails).schema()
    with pytest.raises(TopicNotFoundError, match=f"{TOPIC}: there is no such topic.*valueMode=raw"):
        source_of(broker, failOnDataLoss="false").schema()
    assert source_of(broker, failOnDataLoss=fails, valueMode="raw").schema().startswith("`value` B")


def test_a_missing_topic_fails_at_load_when_asked_to(broker: BrokerThread) -> None:
    fill(broker, 1)
    missing = TOPIC + "-missing"
    both = {"topics": f"{TOPIC},{missing}", "failOnMissingTopic": "true", "valueMode": "raw"}
    given = {"service.url": broker.service_url, "admin.url": broker.web_service_url} | both
    with pytest.raises(
        TopicNotFoundError, match=f"failOnMissingTopic: {missing}: there is no such"
    ):
        PulsarDataSource(given).schema()
    assert PulsarDataSource(given | {"failOnMissingTopic": "false"}).schema()
    assert source_of(broker, failOnMissingTopic="true", valueMode="raw").schema()
    delete(broker, TOPIC)
    with pytest.raises(TopicNotFoundError, match=r"failOnMissingTopic: topicsPattern"):
        pattern_of(broker, failOnMissingTopic="true", valueMode="raw").schema()


# --- bad input -----------------------------------------------------------------------------------


def test_errors_name_option_topic_and_position(broker: BrokerThread) -> None:
    with pytest.raises(ConfigurationError, match="unknown option 'topci', did you mean 'topic'"):
        source_of(broker, topci="x").schema()
    with pytest.raises(ConfigurationError, match="maxBytesPerTrigger: 'many' is not an integer"):
        source_of(broker, maxBytesPerTrigger="many").schema()
    with pytest.raises(ConfigurationError, match=r"pulsar.client.operationTimeoutMs"):
        source_of(broker, **{"pulsar.client.operationTimeoutMz": "1"}).schema()
    positions = fill(broker, 2)
    gone = f"{positions[0].ledger_id - 1}:5"
    trimmed = source_of(broker, startingOffsets=json.dumps({TOPIC: gone}))
    with pytest.raises(DataLossError, match=f"{TOPIC}: entries from {gone} on were deleted.*:0"):
        reader_of(trimmed).partitions()


def test_a_topic_that_does_not_match_is_named(broker: BrokerThread) -> None:
    pattern = "persistent://public/default/nothing-.*"
    source = PulsarDataSource({"service.url": broker.service_url, "topicspattern": pattern})
    with pytest.raises(TopicNotFoundError, match="nothing-"):
        source.schema()


def test_undecodable_messages_fail_are_dropped_or_become_a_column(broker: BrokerThread) -> None:
    async def fill_texts(client: Client) -> None:
        async with await client.create_producer(TOPIC, schema=StringSchema()) as producer:
            await producer.send("good")
        async with await client.create_producer(TOPIC) as producer:
            await producer.send(b"\xff\xfe")

    do(broker, fill_texts)
    failing = reader_of(source_of(broker))
    with pytest.raises(SchemaSerializationError, match=rf"{TOPIC}: message \(?\d+"):
        rows(failing, failing.partitions())
    dropping = reader_of(source_of(broker, undecodable="drop"))
    assert rows(dropping, dropping.partitions())["value"].to_pylist() == ["good"]
    keeping = reader_of(source_of(broker, undecodable="column"))
    table = rows(keeping, keeping.partitions())
    assert table["value"].to_pylist() == ["good", None]
    assert table["__undecodable"].to_pylist() == [None, b"\xff\xfe"]


def test_an_unreachable_broker_is_named() -> None:
    source = PulsarDataSource(
        {
            "service.url": "pulsar://127.0.0.1:1",
            "topic": TOPIC,
            "pulsar.client.operationtimeoutms": "1000",
        }
    )
    with pytest.raises(Exception, match=r"127\.0\.0\.1.*1") as caught:
        source.schema()
    assert "refused" in str(caught.value).lower() or "connect" in str(caught.value).lower()


def test_filters_are_taken_only_where_both_want_it(
    broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker, 1)
    wanted, unwanted = source_of(broker, pushDown="true"), source_of(broker)
    assert not isinstance(reader_of(wanted), PrunedBatchReader)
    monkeypatch.setitem(
        sys.modules, "pyspark.sql.worker.data_source_pushdown_filters", types.ModuleType("x")
    )
    assert isinstance(reader_of(wanted), PrunedBatchReader)
    assert not isinstance(reader_of(unwanted), PrunedBatchReader)
