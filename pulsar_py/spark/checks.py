"""Checks reads and writes against the cluster, without Spark and before it is started (edge).

Starting Java takes seconds, and Spark shows the error of a task below a long traceback. So all that
can be checked without Spark is checked here: whether options are known, whether the topics exist,
whether the broker accepts our credentials, and whether it drops messages that are sent twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pulsar_py.client import Client
from pulsar_py.client.brokers.http_lookup import HttpLookup
from pulsar_py.client.brokers.service_url import ServiceUrl
from pulsar_py.common.errors import TopicNotFoundError
from pulsar_py.spark.planning.catalog import TopicCatalog, known_topics
from pulsar_py.spark.shared.option_errors import naming_options
from pulsar_py.spark.shared.options import DeliveryGuarantee, ReadOptions, WriteOptions
from pulsar_py.spark.shared.runtime import runtime
from pulsar_py.spark.writing.exactly_once import check_deduplication, check_options


def check_read(options: Mapping[str, str], *, is_streaming: bool) -> None:
    """Refuse a read that can't begin.

    Raises:
        ConfigurationError: An option is unknown, or has a wrong value.
        TopicNotFoundError: No such topic exists, and the read would not wait for it.
        ServiceError, ClientError: The cluster refuses us, or can't be reached.
    """
    parsed = ReadOptions.parse({**options}, is_streaming=is_streaming)
    if parsed.waits_for_topics:
        return
    shared = runtime()

    async def ask() -> None:
        async with shared.clients.client(parsed.client) as client:
            catalog = TopicCatalog(client, parsed)
            try:
                await (known_topics(catalog, parsed) if is_streaming else catalog.partitions())
                # Without the REST API a consumer would have to ask, and would create the topic.
                if parsed.client.admin_url is None or not parsed.fail_on_data_loss:
                    return
                for name in parsed.topics.names:
                    await _check_topic(client, catalog, name)
            finally:
                await catalog.close()

    with naming_options(parsed.client):
        shared.loop.call(ask())


async def _check_topic(client: Client, catalog: TopicCatalog, name: str) -> None:
    partitions = await client.get_topic_partitions(name)
    try:
        await catalog.layout(partitions[0])
    except TopicNotFoundError as error:
        raise TopicNotFoundError(f"{name}: there is no such topic") from error


def check_write(options: Mapping[str, str]) -> None:
    """Refuse a write that can't keep its guarantee; creates the topic if it does not exist.

    Raises:
        ConfigurationError: An option is wrong, or deduplication is off.
        ServiceError, ClientError: The cluster refuses us, or can't be reached.
    """
    parsed = WriteOptions.parse({**options})
    check_options(parsed)
    topic = parsed.topic
    if topic is None or parsed.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        return
    shared = runtime()

    async def ask() -> None:
        async with shared.clients.client(parsed.client) as client:
            partitions = await client.get_topic_partitions(topic)
            try:
                statuses = await deduplication_of(client, parsed, partitions)
            except TopicNotFoundError:
                await (await client.create_producer(partitions[0])).close()
                statuses = await deduplication_of(client, parsed, partitions)
            check_deduplication(statuses)

    with naming_options(parsed.client):
        shared.loop.call(ask())


async def deduplication_of(
    client: Client, options: WriteOptions, partitions: Sequence[str]
) -> Mapping[str, str | None]:
    """The state of deduplication of each partition: `Enabled`, `Disabled`, ..."""
    assert options.client.admin_url is not None, "exactly once was refused without"
    rest = HttpLookup(client.context, ServiceUrl.parse(options.client.admin_url))
    try:
        return {topic: (await rest.stats(topic)).get("deduplicationStatus") for topic in partitions}
    finally:
        await rest.close()
