from __future__ import annotations

from pulsar_py.server.delayed.bucket_format import BucketContent, pack
from pulsar_py.server.delayed.bucket_names import BucketName
from pulsar_py.server.delayed.bucket_tracker import SealedBucket
from pulsar_py.server.delayed.merged_segments import (
    MAX_MERGED_INDEXES,
    buckets_to_merge,
    merged_indexes,
)


def bucket(number: int, count: int, segments: int = 1) -> SealedBucket:
    content = BucketContent()
    content.members.add_range(number, 0, count - 1)
    for each in range(segments):
        content.add_segment(each)
    return SealedBucket(BucketName(number, number), number, content)


def test_nothing_is_merged_up_to_the_limit_or_without_one() -> None:
    buckets = [bucket(number, 5) for number in range(4)]
    assert buckets_to_merge(buckets, 4) == ()
    assert buckets_to_merge(buckets, -1) == ()
    assert buckets_to_merge(buckets, 3) == buckets


def test_the_neighbours_with_the_fewest_messages_are_merged() -> None:
    buckets = [bucket(number, 50 if number < 2 else 5) for number in range(6)]
    assert buckets_to_merge(buckets, 3) == buckets[2:]


def test_what_is_too_large_together_stays_apart() -> None:
    large = MAX_MERGED_INDEXES // 2 + 1
    buckets = [bucket(0, large), bucket(1, large), bucket(2, 5), bucket(3, 5)]
    assert buckets_to_merge(buckets, 1) == buckets[1:]
    assert buckets_to_merge(buckets[:2], 1) == ()


async def test_all_indexes_come_in_order_a_segment_at_a_time() -> None:
    stored = {
        1: [[pack(1, 1, 0), pack(4, 1, 1)], [pack(9, 1, 2)]],
        2: [[pack(2, 2, 0)], [pack(3, 2, 1)], [pack(10, 2, 2)]],
    }
    reads: list[tuple[int, int]] = []

    async def read(ledger_id: int, number: int) -> list[int]:
        reads.append((ledger_id, number))
        return stored[ledger_id][number]

    sources = [bucket(1, 3, 2), bucket(2, 3, 3)]
    found = [index async for index in merged_indexes(sources, read)]
    assert found == sorted(index for each in stored.values() for part in each for index in part)
    assert reads == [(1, 0), (2, 0), (2, 1), (2, 2), (1, 1)]
