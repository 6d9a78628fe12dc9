"""Reads the publish time of the oldest message in a backlog (edge).

Brokers report the age of the slowest subscription's backlog alone. For the others a reader starts
after the subscription's mark-delete position and reads one message; it leaves no subscription
behind. A backlog that can't be read, for lack of permission or time, has no age.
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
from pulsar_py.pipeline.settings.topics import Cluster
from pulsar_py.spark.shared.options import ReadOptions
from pulsar_py.spark.shared.runtime import make_client, runtime

logger = logging.getLogger(__name__)

READ_SECONDS: Final = 5.0
"""The time limit for reading one message."""
_AT_ONCE: Final = 16
"""The most readers at one time."""

Place = tuple[str, Position]
"""A topic partition, and a subscription's mark-delete position in it."""


def oldest_publish_millis(cluster: Cluster, places: Collection[Place]) -> Mapping[Place, int]:
    """The publish times of the first messages behind some places, without those that fail."""
    if not places:
        return {}
    options = cluster.connector_options() | {"topic": next(iter(places))[0]}
    parsed = ReadOptions.parse(options, is_streaming=False)
    limit = asyncio.Semaphore(_AT_ONCE)

    async def ask() -> Mapping[Place, int]:
        # Not the cached one of Spark's tasks: it would go on asking a cluster that does not answer.
        async with make_client(parsed.client) as client:

            async def one(place: Place) -> int | None:
                async with limit:
                    return await _publish_millis(client, place)

            found = await asyncio.gather(*map(one, places))
        return {
            place: millis for place, millis in zip(places, found, strict=True) if millis is not None
        }

    return runtime().loop.call(ask())


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
