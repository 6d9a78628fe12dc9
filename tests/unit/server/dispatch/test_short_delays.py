from __future__ import annotations

import asyncio

import pytest

from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.wire.payload import encode_entry
from tests.dispatch_parts import Topic, received, settle


def delayed(topic: Topic, *delays_millis: int) -> list[bytes]:
    now = topic.clock.wall_time_millis()
    return [
        encode_entry(
            MessageMetadata(
                producer_name="p", sequence_id=0, publish_time=now, deliver_at_time=now + delay
            ),
            b"m",
        )
        for delay in delays_millis
    ]


async def test_a_delay_below_the_tick_is_told_once(
    topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = await topic.consume(permits=10)
    await topic.publish(*delayed(topic, 200, 300))
    await settle()
    told = [each.getMessage() for each in caplog.records if "below" in each.getMessage()]
    assert len(told) == 1
    assert told[0].startswith(
        f"{consumer.subscription.name} of {topic.name}: a delay of 200 ms is below"
        " delayedDeliveryTickTimeMillis=1000"
    )
    await asyncio.sleep(2)
    assert len(received(consumer)) == 2


async def test_longer_delays_are_not_told_however_late_they_are_read(
    topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    await topic.publish(*delayed(topic, 1000, 5000))
    await asyncio.sleep(4.5)
    await topic.consume(permits=10)
    await settle()
    assert "below" not in caplog.text
