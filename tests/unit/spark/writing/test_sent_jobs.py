"""A topic knows whether it has rows of a job, by its producers' names."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client import Client
from pulsar_py.schema import StringSchema
from pulsar_py.spark.writing.exactly_once import UnitOfWork
from pulsar_py.spark.writing.sent_jobs import has_rows_of
from pulsar_py.testing.broker_thread import BrokerThread
from tests.unit.spark.sink_parts import TOPIC

CONFIG = {
    "brokerDeduplicationEnabled": True,
    "allowAutoTopicCreationType": "partitioned",
    "defaultNumPartitions": 2,
}


@pytest.mark.parametrize("is_open", [True, False])
def test_a_key_is_known_by_its_rows_or_by_a_writer(*, is_open: bool) -> None:
    with BrokerThread(config=CONFIG) as broker:
        options = {"service.url": broker.service_url, "topic": TOPIC}

        async def ask(key: str, tasks_count: int) -> bool:
            return await asyncio.to_thread(has_rows_of, options, key, tasks_count)

        async def send() -> None:
            name = UnitOfWork("job", None, 2).producer_name
            async with Client(broker.service_url) as client:
                await client.get_topic_partitions(TOPIC)
                assert not await ask("job", 3)
                producer = await client.create_producer(
                    f"{TOPIC}-partition-1", schema=StringSchema(), producer_name=name
                )
                if not is_open:
                    await producer.send("row")
                    await producer.close()
                assert await ask("job", 3)
                assert not await ask("job", 2)
                assert not await ask("jo", 3)

        asyncio.run(send())
