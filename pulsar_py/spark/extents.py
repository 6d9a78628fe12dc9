"""From where to where topics reach now, as one text: the same as long as nothing changes (edge)."""

from __future__ import annotations

from collections.abc import Mapping

from pulsar_py.spark.catalog import TopicCatalog
from pulsar_py.spark.contact import naming_options
from pulsar_py.spark.options import ReadOptions
from pulsar_py.spark.runtime import runtime


def topic_extents(options: Mapping[str, str]) -> str:
    """The first entry and the end of each topic partition of a batch.

    Without `admin.url` brokers tell ends alone.

    Raises:
        ConfigurationError: An option is wrong.
        TopicNotFoundError: There is no such topic.
        ServiceError, ClientError: The cluster can't be asked.
    """
    parsed = ReadOptions.parse({**options}, is_streaming=False)
    shared = runtime()

    async def ask() -> str:
        async with shared.clients.client(parsed.client) as client:
            catalog = TopicCatalog(client, parsed)
            try:
                layouts = await catalog.layouts(await catalog.partitions())
                return "\n".join(
                    f"{topic} {layouts[topic].start} {layouts[topic].end}"
                    for topic in sorted(layouts)
                )
            finally:
                await catalog.close()

    with naming_options(parsed.client):
        return shared.loop.call(ask())
