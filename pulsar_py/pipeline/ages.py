"""How old backlogs are: when the first message was published that a subscription lacks (edge).

Brokers tell that of the slowest subscription alone. For the others a reader is opened behind what
they have acknowledged, in the broker's memory, and reads one message. What can't be read, for want
of a permission, or in time, has no age.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Final

from pulsar_py.client import Client
from pulsar_py.common.errors import PulsarError
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.position import Position
from pulsar_py.pipeline.settings import Cluster
from pulsar_py.spark.shared.options import ReadOptions
from pulsar_py.spark.shared.runtime import runtime

logger = logging.getLogger(__name__)

READ_SECONDS: Final = 5.0
"""For one message."""
_AT_ONCE: Final = 16
"""Readers."""

Place = tuple[str, Position]
"""A topic partition, and up to where a subscription has acknowledged everything."""


def oldest_publish_millis(cluster: Cluster, places: Collection[Place]) -> Mapping[Place, int]:
    """When the first message behind each place was published, where that can be read."""
    if not places:
        return {}
    options = cluster.connector_options() | {"topic": next(iter(places))[0]}
    parsed = ReadOptions.parse(options, is_streaming=False)
    shared = runtime()
    limit = asyncio.Semaphore(_AT_ONCE)

    async def ask() -> Mapping[Place, int]:
        async with shared.clients.client(parsed.client) as client:

            async def one(place: Place) -> int | None:
                async with limit:
                    return await _publish_millis(client, place)

            found = await asyncio.gather(*map(one, places))
        return {
            place: millis for place, millis in zip(places, found, strict=True) if millis is not None
        }

    return shared.loop.call(ask())


async def _publish_millis(client: Client, place: Place) -> int | None:
    topic, position = place
    start = MessageId(position.ledger_id, position.entry_id)
    try:
        async with (
            asyncio.timeout(READ_SECONDS),
            await client.create_reader(topic, start, receiver_queue_size=1) as reader,
        ):
            return (await reader.read_next()).publish_timestamp()
    except (PulsarError, TimeoutError) as error:
        logger.info("no age", extra={"topic": topic, "reason": str(error)})
        return None
