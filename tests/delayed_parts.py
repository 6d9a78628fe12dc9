"""What tests of the delayed index share: a topic whose delays go to buckets, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pulsar_py.common.loops.clock import Clock
from pulsar_py.managed_ledger.cursors.format import DELAYED_DOOMED, INTERNAL_PREFIX
from pulsar_py.server.broker_settings import bucket_settings
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.delayed.bucket_names import stored_buckets
from pulsar_py.server.delayed.bucket_tracker import BucketDelayedDeliveryTracker
from pulsar_py.server.delayed.delayed_index import DelayedIndexParts
from pulsar_py.server.settings.topics import DelayedTrackerKind
from pulsar_py.server.subscriptions.consumer import Consumer
from tests.dispatch_parts import TimedConnection, Topic, ack, message
from tests.managed_ledger_parts import settle

FEW = {
    "delayedDeliveryMinIndexCountPerBucket": 4,
    "delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds": 10,
}
"""Settings with which four delayed messages make a bucket."""


def parts_of(topic: Topic, **settings: Any) -> DelayedIndexParts:
    options = {"delayedDeliveryTrackerFactoryClassName": DelayedTrackerKind.BUCKETS, **settings}
    config = BrokerConfig(**options)
    return DelayedIndexParts(
        ledger_store=topic.store, clock=topic.clock, settings=lambda: bucket_settings(config)
    )


@asynccontextmanager
async def delaying(clock: Clock, **settings: Any) -> AsyncIterator[Topic]:
    """A topic with these settings."""
    topic = await Topic(clock).open()
    topic.delayed_index = parts_of(topic, **{**FEW, **settings})
    try:
        yield topic
    finally:
        await topic.close()


async def publish_delayed(
    topic: Topic, delays_seconds: Sequence[float], *, per_ledger: int = 0
) -> list[int]:
    """Publish one message for each delay; a data ledger ends after `per_ledger`. Returns times."""
    now = topic.clock.wall_time_millis()
    times = [now + int(delay * 1000) for delay in delays_seconds]
    for count, each in enumerate(times, 1):
        await topic.publish(message(b"%d" % each, deliver_at_time=each))
        await settle()
        if per_ledger and count % per_ledger == 0:
            await topic.ledger.roll_ledger()
    await settle()
    return times


async def timed_consumer(topic: Topic, consumer_id: int = 1, **request: Any) -> Consumer:
    """A consumer that notes when messages came."""
    connection = TimedConnection(clock=topic.clock)
    consumer = await topic.consume(consumer_id, permits=1000, connection=connection, **request)
    await settle()
    return consumer


def tracker_of(topic: Topic) -> BucketDelayedDeliveryTracker:
    tracker = topic.subscriptions["sub"].dispatcher.delayed  # type: ignore[union-attr, attr-defined]
    assert isinstance(tracker, BucketDelayedDeliveryTracker)
    tracker.check()
    return tracker


def bucket_ledgers(topic: Topic) -> dict[str, int]:
    """What the cursor's properties name."""
    properties = topic.subscriptions["sub"].cursor.cursor_properties  # type: ignore[attr-defined]
    assert INTERNAL_PREFIX + DELAYED_DOOMED not in properties
    return {str(name): ledger_id for name, ledger_id in stored_buckets(properties).items()}


async def pause(seconds: float) -> None:
    await asyncio.sleep(seconds)
    await settle()


def acknowledge_all(consumer: Consumer) -> None:
    """Acknowledge what the consumer was sent."""
    for each in consumer.connection.messages:  # type: ignore[attr-defined]
        ack(consumer, each.entry_id, ledger_id=each.ledger_id)


async def reload(topic: Topic) -> None:
    """Unload the topic and open its ledger again, without a consumer."""
    await topic.subscriptions.pop("sub").close()  # type: ignore[attr-defined]
    await topic.ledger.close()
    topic.ledger = await topic.opener.open(topic.name.managed_ledger_name, topic.ledger.config)
    await topic.subscription()
