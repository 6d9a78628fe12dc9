"""Copies the schema of a topic for another topic that has none yet (edge).

A definition made from Spark's columns would differ from the original; the copy keeps names,
defaults, which fields may be null, and the encoding of keys, by which partitions are chosen.
"""

from __future__ import annotations

from collections.abc import Mapping

from pulsar_py.schema import SchemaInfo
from pulsar_py.spark.shared.options import ReadOptions
from pulsar_py.spark.shared.runtime import runtime
from pulsar_py.spark.shared.schema_option import schema_option
from pulsar_py.spark.values.topic_schemas import newest_schema


def topic_schema_option(options: Mapping[str, str]) -> str | None:
    """The option `valueSchema` for a copy of a topic; None where it has no schema.

    Args:
        options: The options of a read of one topic.

    Raises:
        ConfigurationError: An option is wrong.
        ServiceError, ClientError: The schema could not be read from the cluster.
    """
    parsed = ReadOptions.parse({**options}, is_streaming=False)
    (topic,) = parsed.topics.names
    shared = runtime()

    async def ask() -> SchemaInfo | None:
        async with shared.clients.client(parsed.client) as client:
            return await newest_schema(client, topic)

    found = shared.loop.call(ask())
    return None if found is None else schema_option(found)
