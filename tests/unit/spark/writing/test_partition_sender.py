"""Settings of producers, and one entry under way where rows arrive exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pulsar_py import Broker
from pulsar_py.client import Client
from pulsar_py.client.shared.enums import HashingScheme
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.schema import SchemaInfo, StringSchema
from pulsar_py.spark.writing.exactly_once import UnitOfWork
from pulsar_py.spark.writing.outgoing_rows import OutgoingRows
from pulsar_py.spark.writing.partition_sender import WINDOW_MESSAGES, ProducerSettings
from pulsar_py.spark.writing.topic_writer import TopicWriter
from tests.unit.spark.sink_parts import TOPIC, write_options

STRING: SchemaInfo = StringSchema().schema_info()
UNIT = UnitOfWork("job", None, 0)


def settings(unit: UnitOfWork | None, **more: str) -> ProducerSettings:
    return ProducerSettings.of(write_options(**more).client, STRING, unit)


def test_entries_are_cut_by_count_and_bytes_where_rows_arrive_once() -> None:
    made = settings(UNIT, pulsar_producer_batchingMaxMessages="50")
    assert (made.cut_messages, made.cut_bytes, made.turn_rows) == (50, 1 << 20, 50)
    assert made.arguments["batching_max_messages"] > 50, "senders cut, not the producer"
    assert made.arguments["batching_max_allowed_size_in_bytes"] > made.cut_bytes
    assert made.arguments["producer_name"] == "job-0"
    assert not made.arguments["reconnects"]


def test_windows_are_under_way_at_least_once() -> None:
    made = settings(None, pulsar_producer_hashingScheme="Murmur3_32Hash")
    assert made.cut_messages == WINDOW_MESSAGES
    assert made.hashing_scheme is HashingScheme.Murmur3_32Hash
    assert "producer_name" not in made.arguments


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="batchingMaxMessages"):
        settings(None, pulsar_producer_batchingMaxMesages="1")


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    config = {"brokerDeduplicationEnabled": True}
    async with Broker(config=config) as broker, Client(broker.service_url) as client:
        yield client


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({}, {}),
        ({"keys": ["k"]}, {}),
        ({"deliver_at_millis": [1, None, None, None]}, {}),
        ({}, {"pulsar_producer_batchingEnabled": "false"}),
        ({"payloads": [b"x" * 400, b"y" * 3000]}, {"pulsar_producer_batchingMaxBytes": "1000"}),
    ],
)
async def test_one_entry_is_under_way(
    client: Client, columns: dict[str, list[Any]], options: dict[str, str]
) -> None:
    made = settings(UNIT, **({"pulsar_producer_batchingMaxMessages": "10"} | options))
    task = TopicWriter(client, made, topic=TOPIC, partitions=[TOPIC], unit=UNIT)
    count = 400
    given = {"payloads": [b"x"]} | columns
    rows = OutgoingRows(**{name: (each * count)[:count] for name, each in given.items()})
    under_way = []

    async def sample() -> None:
        while True:
            senders = task._senders.values()
            under_way.extend(len(each.producer._outbox.outstanding) for each in senders)
            await asyncio.sleep(0)

    sampler = asyncio.get_running_loop().create_task(sample())
    await task.write(rows)
    counts = await task.finish()
    sampler.cancel()
    assert counts.written == count
    assert max(under_way) == 1
