"""Chooses the buckets that are merged, and puts their indexes in order (pure but for its reads).

At most four neighbours become one, those with the fewest messages together; no index is dropped
but those of acknowledged messages. Segments are read one at a time from each bucket, so a merge
needs the memory of what it writes.

Source: BucketDelayedDeliveryTracker.selectMergedBuckets, CombinedSegmentDelayedIndexQueue in
Pulsar's broker, which leaves out the segments that are in memory already.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Final

from pulsar_py.server.delayed.bucket_tracker import SealedBucket

MAX_MERGED_BUCKETS: Final = 4
MAX_MERGED_INDEXES: Final = 1_000_000
"""The most indexes that become one bucket: what is written of them is in memory meanwhile."""

ReadSegment = Callable[[int, int], Awaitable[list[int]]]


def buckets_to_merge(buckets: Sequence[SealedBucket], max_buckets: int) -> Sequence[SealedBucket]:
    """The neighbours to merge, in order of their names; none if there are not too many buckets."""
    if max_buckets < 1 or len(buckets) <= max_buckets:
        return ()
    for count in range(min(MAX_MERGED_BUCKETS, len(buckets)), 1, -1):
        windows = [buckets[start : start + count] for start in range(len(buckets) - count + 1)]
        fewest = min(windows, key=_indexes_in)
        if _indexes_in(fewest) <= MAX_MERGED_INDEXES:
            return fewest
    return ()


def _indexes_in(buckets: Sequence[SealedBucket]) -> int:
    return sum(len(bucket.content.members) for bucket in buckets)


async def merged_indexes(buckets: Sequence[SealedBucket], read: ReadSegment) -> AsyncIterator[int]:
    """All indexes of the buckets, in order.

    Raises:
        StorageError: A segment can't be read.
    """
    following = [1] * len(buckets)
    segments = [await read(bucket.ledger_id, 0) for bucket in buckets]
    heap = [(segment[0], source, 0) for source, segment in enumerate(segments) if segment]
    heapify(heap)
    while heap:
        index, source, place = heap[0]
        yield index
        if place + 1 < len(segments[source]):
            heapreplace(heap, (segments[source][place + 1], source, place + 1))
            continue
        number, bucket = following[source], buckets[source]
        if number < len(bucket.content.segment_starts):
            following[source] += 1
            segments[source] = await read(bucket.ledger_id, number)
            heapreplace(heap, (segments[source][0], source, 0))
        else:
            heappop(heap)
