"""Finds the buckets that a cursor's properties name, and which entries wait in them (edge).

Entry 0 of each bucket is read, no segment. A bucket that can't be read for a while is passed over
until the index is next loaded; one that is gone or corrupt is reported as lost. The entries of both
are read from the topic, as all that are in no bucket.

Source: BucketDelayedDeliveryTracker.recoverBucketSnapshot in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from pulsar_py.common.errors import CorruptDataError, LedgerNotFoundError, StorageError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.server.delayed.bucket_format import BucketContent, decode_metadata
from pulsar_py.server.delayed.bucket_ledgers import BucketLedgers
from pulsar_py.server.delayed.bucket_names import doomed_ledgers, stored_buckets
from pulsar_py.server.delayed.bucket_tracker import SealedBucket

logger = logging.getLogger(__name__)

SEGMENTS_AT_ONCE: Final = 500
"""Segments that are looked at in one turn of the loop."""

FIRST_PAUSE_SECONDS: Final = 1.0
TRIES: Final = 5
"""So often a bucket that can't be read now is tried; the pause doubles."""


class FoundBuckets(Struct):
    """The buckets that were found on disk.

    Attributes:
        held: The unacknowledged entries in buckets.
        overdue: Those of them whose segments are due as a whole.
        lost: Buckets that are gone or corrupt.
        doomed: Ledgers that were about to be deleted.
    """

    buckets: list[SealedBucket] = field(default_factory=list)
    held: PositionRangeSet = field(default_factory=PositionRangeSet)
    overdue: PositionRangeSet = field(default_factory=PositionRangeSet)
    lost: list[SealedBucket] = field(default_factory=list)
    doomed: list[int] = field(default_factory=list)


async def find_buckets(
    cursor: ManagedCursor, ledgers: BucketLedgers, clock: Clock, log_fields: Mapping[str, str]
) -> FoundBuckets:
    """Read what the cursor's properties name; `log_fields` go with each line of the log."""
    properties = dict(cursor.cursor_properties)
    found = FoundBuckets(doomed=doomed_ledgers(properties))
    for name, ledger_id in stored_buckets(properties).items():
        bucket = SealedBucket(name, ledger_id, BucketContent())
        try:
            data = await _metadata(ledgers, ledger_id, clock, log_fields)
            overdue = await _take(bucket, data, clock.wall_time_millis())
        except (LedgerNotFoundError, CorruptDataError) as error:
            _log("bucket of delayed messages lost", error, ledger_id, log_fields)
            found.lost.append(SealedBucket(name, ledger_id, BucketContent()))
        except StorageError as error:
            _log("bucket of delayed messages passed over", error, ledger_id, log_fields)
        else:
            found.buckets.append(bucket)
            found.held.add_all(cursor.unacknowledged_of(bucket.content.members))
            found.overdue.add_all(cursor.unacknowledged_of(overdue))
    return found


async def _metadata(
    ledgers: BucketLedgers, ledger_id: int, clock: Clock, log_fields: Mapping[str, str]
) -> bytes:
    pause_seconds = FIRST_PAUSE_SECONDS
    for _ in range(TRIES - 1):
        try:
            return await ledgers.read_metadata(ledger_id)
        except (LedgerNotFoundError, CorruptDataError):
            raise
        except StorageError as error:
            _log("bucket of delayed messages not read yet", error, ledger_id, log_fields)
            await clock.sleep(pause_seconds)
            pause_seconds *= 2
    return await ledgers.read_metadata(ledger_id)


async def _take(bucket: SealedBucket, data: bytes, now_millis: int) -> PositionRangeSet:
    """Note what entry 0 says; returns the entries of segments that are due as a whole."""
    content, overdue = bucket.content, PositionRangeSet()
    for number, segment in enumerate(decode_metadata(data)):
        if number % SEGMENTS_AT_ONCE == SEGMENTS_AT_ONCE - 1:
            await asyncio.sleep(0)
        content.add_segment(segment.start_millis)
        segment.add_to(content.members)
        # Segments follow each other in time, so these are the first ones.
        if segment.end_millis <= now_millis and bucket.next_segment == number:
            bucket.next_segment = number + 1
            segment.add_to(overdue)
    if not content.members:
        raise CorruptDataError(f"ledger {bucket.ledger_id}: a bucket without messages")
    return overdue


def _log(event: str, error: Exception, ledger_id: int, fields: Mapping[str, str]) -> None:
    logger.warning(event, extra={**fields, "ledger_id": ledger_id, "error": str(error)})
