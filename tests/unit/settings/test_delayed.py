"""The settings of the delayed index on disk: each changes what is written."""

from __future__ import annotations

import pytest

from pulsar_py.server.dispatch.delayed import DelayedDeliveryTracker
from pulsar_py.server.settings.topics import DelayedTrackerKind
from pulsar_py.testing.clock import VirtualClock
from tests.delayed_parts import (
    bucket_ledgers,
    delaying,
    pause,
    publish_delayed,
    timed_consumer,
    tracker_of,
)


@pytest.mark.setting("delayedDeliveryTrackerFactoryClassName")
async def test_where_delays_are_kept(virtual_clock: VirtualClock) -> None:
    memory = {"delayedDeliveryTrackerFactoryClassName": DelayedTrackerKind.MEMORY}
    for settings, count in (({}, 1), (memory, 0)):
        async with delaying(virtual_clock, **settings) as topic:
            await timed_consumer(topic)
            await publish_delayed(topic, [60.0] * 5, per_ledger=4)
            await pause(1)
            assert len(bucket_ledgers(topic)) == count
            delayed = topic.subscriptions["sub"].dispatcher.delayed
            assert isinstance(delayed, DelayedDeliveryTracker) == (not count)


@pytest.mark.setting("delayedDeliveryMinIndexCountPerBucket")
@pytest.mark.parametrize(("minimum", "count"), [(4, 2), (8, 1), (9, 0)])
async def test_how_many_make_a_bucket(
    virtual_clock: VirtualClock, minimum: int, count: int
) -> None:
    settings = {"delayedDeliveryMinIndexCountPerBucket": minimum}
    async with delaying(virtual_clock, **settings) as topic:
        await timed_consumer(topic)
        await publish_delayed(topic, [60.0] * 9, per_ledger=4)
        await pause(1)
        assert len(bucket_ledgers(topic)) == count


@pytest.mark.setting(
    "delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds",
    "delayedDeliveryMaxIndexesPerBucketSnapshotSegment",
)
@pytest.mark.parametrize(
    ("name", "value", "segments"),
    [
        ("delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds", 10, 1),
        ("delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds", 2, 2),
        ("delayedDeliveryMaxIndexesPerBucketSnapshotSegment", 1, 4),
    ],
)
async def test_where_segments_end(
    virtual_clock: VirtualClock, name: str, value: int, segments: int
) -> None:
    async with delaying(virtual_clock, **{name: value}) as topic:
        await timed_consumer(topic)
        await publish_delayed(topic, [60.0, 61.0, 62.0, 63.0, 90.0], per_ledger=4)
        await pause(1)
        (bucket,) = tracker_of(topic).buckets
        assert len(bucket.content.segment_starts) == segments


@pytest.mark.setting("delayedDeliveryMaxNumBuckets")
@pytest.mark.parametrize(("most", "count"), [(-1, 5), (2, 3)])
async def test_how_many_buckets_there_are(
    virtual_clock: VirtualClock, most: int, count: int
) -> None:
    async with delaying(virtual_clock, delayedDeliveryMaxNumBuckets=most) as topic:
        await timed_consumer(topic)
        await publish_delayed(topic, [60.0] * 21, per_ledger=4)
        await pause(1)
        assert len(bucket_ledgers(topic)) == count
