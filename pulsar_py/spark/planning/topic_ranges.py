"""Lists the topic partitions of a batch, and the first entry and end of each (edge)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from pulsar_py.spark.planning.catalog import TopicCatalog
from pulsar_py.spark.shared.option_errors import naming_options
from pulsar_py.spark.shared.options import ReadOptions
from pulsar_py.spark.shared.runtime import runtime

T = TypeVar("T")


def topic_partitions(options: Mapping[str, str]) -> list[str]:
    """The full names of a batch's topic partitions; with `failOnDataLoss=false` those that exist.

    Raises:
        ConfigurationError: An option is wrong.
        TopicNotFoundError: No such topic exists.
        ServiceError, ClientError: The cluster can't be asked.
    """
    needs_all = ReadOptions.parse({**options}, is_streaming=False).fail_on_data_loss

    async def partitions(catalog: TopicCatalog) -> list[str]:
        found = await catalog.partitions()
        return found if needs_all else list(await catalog.layouts(found)) or found

    return _asked(options, partitions)


def topic_extents(options: Mapping[str, str]) -> str:
    """The first entry and the end of each as one text, to be compared with a later one.

    Without `admin.url` only the ends are known. Raises as `topic_partitions`.
    """

    async def extents(catalog: TopicCatalog) -> str:
        layouts = await catalog.layouts(await catalog.partitions())
        return "\n".join(
            f"{topic} {layouts[topic].start} {layouts[topic].end}" for topic in sorted(layouts)
        )

    return _asked(options, extents)


def _asked(options: Mapping[str, str], question: Callable[[TopicCatalog], Awaitable[T]]) -> T:
    parsed = ReadOptions.parse({**options}, is_streaming=False)
    shared = runtime()

    async def ask() -> T:
        async with shared.clients.client(parsed.client) as client:
            catalog = TopicCatalog(client, parsed)
            try:
                return await question(catalog)
            finally:
                await catalog.close()

    with naming_options(parsed.client):
        return shared.loop.call(ask())
