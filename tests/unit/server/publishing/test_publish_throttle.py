"""Entries that wait for a rate; `test_topic_limits` has the rates themselves."""

from __future__ import annotations

import asyncio

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.common.loops.rate_limiter import RateLimiter
from pulsar_py.server.publishing.producer import PublishContext
from pulsar_py.server.publishing.publish_throttle import PublishThrottle
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.topics.rig import Rig, entry, send


async def test_an_error_of_a_held_entry_is_answered(rig: Rig, virtual_clock: VirtualClock) -> None:
    topic = await rig.topic("t")
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx)

    def refuse(data: bytes, context: PublishContext) -> None:
        raise NotAllowedError(f"{len(data)} bytes for {context[1]}")

    limiter = RateLimiter(virtual_clock)
    limiter.set_limits(1, 0)
    limiter.charge(1, 0)
    throttle = PublishThrottle(refuse)
    throttle.set(refuse, [limiter])
    producer.set_append(throttle.append)
    send(producer, 7)
    assert throttle.held_count == 1
    assert cnx.in_flight.held_bytes == len(entry(7))
    assert cnx.take() == []
    await virtual_clock.sleep(2)
    assert cnx.take() == ["error 7 NotAllowedError"]
    assert cnx.in_flight.entries_count == cnx.in_flight.held_bytes == 0


async def test_closing_drops_what_waits(rig: Rig, virtual_clock: VirtualClock) -> None:
    topic = await rig.persistent()
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx)
    limiter = RateLimiter(virtual_clock)
    limiter.set_limits(1, 0)
    throttle = PublishThrottle(topic.append_function())
    throttle.set(topic.append_function(), [limiter])
    producer.set_append(throttle.append)
    for number in range(5):
        send(producer, number)
    assert throttle.held_count == 4
    throttle.close()
    assert not throttle.is_needed
    await asyncio.sleep(0.1)
    assert cnx.take() == ["receipt 0 at 0"]
    assert cnx.in_flight.entries_count == 0
