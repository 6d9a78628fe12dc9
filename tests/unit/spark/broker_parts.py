"""A broker in memory and what tests of reading put into it."""

from __future__ import annotations

from collections.abc import Iterable

from pulsar_py.client import Client
from pulsar_py.common.position import Position
from pulsar_py.spark.shared.options import ReadOptions

BROKER_CONFIG = {
    "managedLedgerMaxEntriesPerLedger": 10,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "defaultRetentionSizeInMB": 100,
    "defaultRetentionTimeInMinutes": 100,
}
"""Ledgers of ten entries that nobody deletes."""


async def publish(
    client: Client, topic: str, values: Iterable[int], **options: object
) -> list[Position]:
    """Publish decimal texts; gives where they stand."""
    async with await client.create_producer(topic, **options) as producer:
        sent = [producer.send_nowait(b"%d" % value) for value in values]
        return [(await each).position for each in sent]


def read_options(url: str, *, is_streaming: bool = False, **options: str) -> ReadOptions:
    """Options of a read; underscores stand for points."""
    given = {"service.url": url} | {
        name.replace("_", ".").lower(): value for name, value in options.items()
    }
    return ReadOptions.parse(given, is_streaming=is_streaming)
