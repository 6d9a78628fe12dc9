"""Asks a topic whether it has rows of a batch job that is written exactly once (edge).

The broker's deduplication remembers producers by their names, for
`brokerDeduplicationProducerInactivityTimeoutMinutes`, and answers the last sequence id of a name to
the producer that registers it.

Source: `last_sequence_id` of CommandProducerSuccess in PulsarApi.proto; `exactly_once` for names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pulsar_py.client import Client, Producer
from pulsar_py.common.errors import ProducerBusyError
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.spark.shared.option_errors import naming_options
from pulsar_py.spark.shared.options import WriteOptions
from pulsar_py.spark.shared.runtime import runtime
from pulsar_py.spark.values.topic_schemas import newest_schema
from pulsar_py.spark.writing.exactly_once import NEVER_SENT, UnitOfWork
from pulsar_py.spark.writing.partition_sender import ProducerSettings


def has_rows_of(options: Mapping[str, str], key: str, tasks_count: int) -> bool:
    """Whether the topic has rows of a batch job with that `idempotencyKey`, or is getting them.

    Args:
        options: The options of the write; they name the topic.
        key: The `idempotencyKey` of the job.
        tasks_count: How many tasks to ask for, from the first.

    Raises:
        ConfigurationError: An option is wrong.
        ServiceError, ClientError: The topic can't be written.
    """
    parsed = WriteOptions.parse({**options})
    topic = parsed.topic
    assert topic is not None, "exactly once was refused without"
    shared = runtime()

    async def ask() -> bool:
        async with shared.clients.client(parsed.client) as client:
            schema = await newest_schema(client, topic) or SchemaInfo(SchemaType.BYTES)
            partitions = await client.get_topic_partitions(topic)
            for task in range(tasks_count):
                unit = UnitOfWork(key, None, task)
                settings = ProducerSettings.of(parsed.client, schema, unit)
                asked = (_is_known(client, each, settings) for each in partitions)
                if any(await asyncio.gather(*asked)):
                    return True
            return False

    with naming_options(parsed.client):
        return shared.loop.call(ask())


async def _is_known(client: Client, partition: str, settings: ProducerSettings) -> bool:
    try:
        producer: Producer = await client.create_producer(partition, **settings.arguments)
    except ProducerBusyError:
        return True  # a producer has the name: the rows are being written
    last = producer.last_sequence_id()
    await producer.close()
    return last != NEVER_SENT
