"""Writers check on the driver, and send in tasks, against a broker in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from pulsar_py.client import Client
from pulsar_py.common.errors import ConfigurationError, SchemaSerializationError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from pulsar_py.spark.sink import (
    PulsarBatchWriter,
    PulsarStreamWriter,
    RowsWritten,
    make_batch_writer,
    make_plan,
    make_stream_writer,
    write_rows,
)
from pulsar_py.spark.writing.exactly_once import Origin
from pulsar_py.spark.writing.topic_writer import RowCounts
from pulsar_py.testing.broker_thread import BrokerThread
from tests.unit.spark.sink_parts import TOPIC, texts

SCHEMA = StructType([StructField("value", StringType())])
TASK = Origin(None, None, 0, is_stream_writer=False)


@pytest.fixture
def broker() -> Iterator[BrokerThread]:
    with BrokerThread(config={"brokerDeduplicationEnabled": True}) as broker:
        yield broker


def options(broker: BrokerThread, **more: str) -> dict[str, str]:
    return {
        "service.url": broker.service_url,
        "admin.url": broker.web_service_url,
        "topic": TOPIC,
    } | {name.lower(): text for name, text in more.items()}


def stored(broker: BrokerThread) -> list[int]:
    async def read() -> list[int]:
        found = []
        async with (
            Client(broker.service_url) as client,
            await client.create_reader(TOPIC, EARLIEST_MESSAGE_ID) as reader,
        ):
            while await reader.has_message_available():
                found.append(int((await reader.read_next(30_000)).data()))
        return found

    return asyncio.run(read())


def test_a_job_with_a_key_can_be_run_again(broker: BrokerThread) -> None:
    given = options(
        broker, deliveryGuarantee="exactly-once", sequenceOrder="input", idempotencyKey="key"
    )
    for _ in range(2):
        plan = make_plan(given, SCHEMA)
        written = write_rows(plan, TASK, iter([texts(range(10)), texts([]), texts([10])]))
    assert isinstance(written, RowsWritten)
    assert written.counts.skipped == 10
    assert stored(broker) == list(range(11))


def test_a_job_without_one_is_another_job_each_time(broker: BrokerThread) -> None:
    for _ in range(2):
        plan = make_plan(
            options(broker, deliveryGuarantee="exactly-once", sequenceOrder="input"), SCHEMA
        )
        write_rows(plan, TASK, iter([texts(range(3))]))
    assert stored(broker) == [0, 1, 2, 0, 1, 2]


def test_no_rows_do_nothing(broker: BrokerThread) -> None:
    assert write_rows(make_plan(options(broker), SCHEMA), TASK, iter([])).counts == RowCounts()


def test_rows_that_fail_upstream_fail_the_task(broker: BrokerThread) -> None:
    def failing() -> Iterator[object]:
        yield texts(range(3))
        raise ArithmeticError("upstream")

    with pytest.raises(ArithmeticError):
        write_rows(make_plan(options(broker), SCHEMA), TASK, failing())


def test_a_row_that_does_not_fit_is_named_with_its_topic(broker: BrokerThread) -> None:
    schema = StructType([*SCHEMA.fields, StructField("__deliverAt", LongType())])
    batch = texts([1, 2]).append_column("__deliverAt", pa.array([5, -1], pa.int64()))
    with pytest.raises(
        SchemaSerializationError, match=f"^{TOPIC}: column __deliverAt, row 1 of 2: -1 is before"
    ):
        write_rows(make_plan(options(broker), schema), TASK, iter([batch]))


def test_writers_are_made_for_appending_only(broker: BrokerThread) -> None:
    batch = make_batch_writer(options(broker), SCHEMA)
    stream = make_stream_writer(options(broker), SCHEMA)
    assert isinstance(batch, PulsarBatchWriter)
    assert isinstance(stream, PulsarStreamWriter)
    batch.commit([RowsWritten(RowCounts(1)), None])
    batch.abort([None])
    stream.commit([RowsWritten(RowCounts(1))], 3)
    stream.abort([None], 3)
    with pytest.raises(ConfigurationError, match="can only be appended to"):
        make_batch_writer({}, SCHEMA, overwrite=True)
    with pytest.raises(ConfigurationError, match="outputMode"):
        make_stream_writer({}, SCHEMA, overwrite=True)


def test_topics_that_keep_duplicates_are_refused() -> None:
    with BrokerThread() as broker:
        given = options(broker, deliveryGuarantee="exactly-once", sequenceOrder="input")
        with pytest.raises(ConfigurationError, match=f"deduplication of {TOPIC} is Disabled"):
            make_plan(given, SCHEMA)


def test_columns_are_checked_before_the_cluster_is_asked() -> None:
    given = {"service.url": "pulsar://127.0.0.1:1", "topic": TOPIC}
    schema = StructType([StructField("__key", BinaryType())])
    with pytest.raises(ConfigurationError, match="no column is the value"):
        make_plan(given, schema)
