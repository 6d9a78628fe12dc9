"""Spark beside a broker that lends its files: the same rows, of which none came through the broker."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from pulsar_py.client import Client
from pulsar_py.client.shared.enums import CompressionType
from pulsar_py.client.short_circuit.lending_connection import LendingConnection
from pulsar_py.common.message_id import MessageId
from pulsar_py.testing.broker_thread import BrokerThread
from tests.spark.reading_parts import Topics, reading
from tests.unit.spark.broker_parts import BROKER_CONFIG

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

LOOKS_COUNT = 1500
NAME = "persistent/public/default/beside"
TOPIC = NAME.replace("/", "://", 1)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A short path: temporary directories may have long ones."""
    directory = os.open(tmp_path_factory.mktemp("socket"), os.O_RDONLY)
    yield f"/proc/{os.getpid()}/fd/{directory}/lent"
    os.close(directory)


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory, path: str) -> Iterator[Topics]:
    config = BROKER_CONFIG | {"shortCircuitSocketPath": path, "flushInterval": 50}
    with BrokerThread(data_dir=tmp_path_factory.mktemp("broker"), config=config) as broker:
        yield Topics(broker)


async def publish(client: Client) -> MessageId:
    """Batches of all kinds, compressed and not, and messages alone; the last one's id."""
    last = None
    for options in (
        {"batching_enabled": True, "batching_max_messages": 100},
        {"batching_enabled": True, "compression_type": CompressionType.LZ4},
        {"batching_enabled": False},
    ):
        async with await client.create_producer(TOPIC, **options) as producer:
            sent = [
                producer.send_nowait(
                    b"%d" % index, partition_key=f"key-{index}", properties={"index": str(index)}
                )
                for index in range(250 if options["batching_enabled"] else 8)
            ]
            last = [await each for each in sent][-1]
    assert last is not None
    return last


def await_files(path: str, topics: Topics, last: MessageId) -> None:
    """Wait until the broker has flushed an entry."""
    with closing(LendingConnection.open(path, topics.broker.service_url)) as connection:
        for _ in range(LOOKS_COUNT):
            connection.request(last.ledger_id, last.entry_id, last.entry_id, 1)
            if connection.answer():
                return
            threading.Event().wait(0.02)
    raise AssertionError(f"{last} is in no file after {LOOKS_COUNT} looks")


def dispatched_count(topics: Topics) -> int:
    """Messages of the topic that the broker has sent to anybody."""
    url = f"{topics.broker.web_service_url}/admin/v2/{NAME}/stats"
    with urlopen(url) as answer:
        return int(json.load(answer)["msgOutCounter"])


def rows(spark: SparkSession, topics: Topics, **options: object) -> list[Row]:
    frame = reading(spark, topics, TOPIC, columns="all", **options)
    return sorted(frame.collect(), key=lambda row: bytes(row["__messageId"]))


def test_rows_are_those_that_come_through_the_broker(
    spark: SparkSession, topics: Topics, path: str
) -> None:
    await_files(path, topics, topics.do(publish))
    before = dispatched_count(topics)
    stored = rows(spark, topics, shortCircuitSocketPath=path)
    assert dispatched_count(topics) == before
    assert len(stored) == 508
    assert stored == rows(spark, topics)
    assert dispatched_count(topics) - before >= 508


def test_without_the_socket_rows_come_through_the_broker(
    spark: SparkSession, topics: Topics, path: str
) -> None:
    await_files(path, topics, topics.do(publish))
    nobody = rows(spark, topics, shortCircuitSocketPath=f"{path}-nobody")
    assert nobody == rows(spark, topics, shortCircuitSocketPath=path)
