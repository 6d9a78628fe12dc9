from __future__ import annotations

from typing import cast

import pytest

from pulsar_py.common.errors import NotAllowedError, UnknownServiceError
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.topics.non_persistent import NonPersistentTopic
from tests.unit.server.topics.rig import Rig, entry, name_of, send, subscribe_request


async def topic_of(rig: Rig) -> NonPersistentTopic:
    return cast("NonPersistentTopic", await rig.topic(name_of("t", domain="non-persistent")))


async def test_messages_reach_consumers_and_receipts_are_0_0(rig: Rig) -> None:
    topic, cnx, consumer_cnx = await topic_of(rig), rig.cnx(), rig.cnx()
    consumer = await topic.subscribe(subscribe_request(consumer_cnx))
    consumer.flow(10)
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    send(producer, 1)
    await producer.close()
    await rig.clock.sleep(0.01)
    assert cnx.take() == ["receipt 0 at 0", "receipt 1 at 0"]
    assert consumer_cnx.take() == ["message 0", "message 0"]


async def test_without_permits_messages_are_dropped(rig: Rig) -> None:
    topic, cnx = await topic_of(rig), rig.cnx()
    await topic.subscribe(subscribe_request(rig.cnx(), kind=SubscriptionType.SHARED))
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    await producer.close()
    assert cnx.take() == ["receipt 0 at 0"]
    assert topic.stats().subscriptions["sub"].dropped_messages_count == 1


async def test_too_many_in_flight_on_a_connection_are_dropped(rig: Rig) -> None:
    topic, cnx = await topic_of(rig), rig.cnx()
    cnx.in_flight.max_non_persistent = 2
    producer = await rig.producer(topic, cnx)
    for n in range(4):
        send(producer, n)
    await producer.close()
    assert sorted(cnx.take()) == [
        "receipt 0 at 0",
        "receipt 1 at 0",
        "receipt 2 at none",
        "receipt 3 at none",
    ]
    assert producer.dropped_count == 2
    assert cnx.in_flight.entries_count == 0
    assert cnx.in_flight.non_persistent_count == 0


async def test_what_needs_storage_is_refused(rig: Rig) -> None:
    topic = await topic_of(rig)
    with pytest.raises(NotAllowedError):
        await topic.terminate()
    with pytest.raises(UnknownServiceError):
        topic.last_message_position()
    with pytest.raises(NotAllowedError):
        await topic.subscribe(subscribe_request(rig.cnx(), read_compacted=True))


async def test_closing_tells_the_clients(rig: Rig) -> None:
    topic, cnx = await topic_of(rig), rig.cnx()
    await rig.producer(topic, cnx, producer_id=4)
    await topic.subscribe(subscribe_request(cnx, consumer_id=9))
    await rig.broker.topics.unload(topic.name)
    assert cnx.closed_producers == [4]
    assert cnx.closed_consumers == [9]


async def test_a_subscription_can_be_deleted(rig: Rig) -> None:
    topic = await topic_of(rig)
    await topic.create_subscription("sub", starts_at_earliest=False)
    await topic.delete_subscription("sub")
    assert list(topic.subscriptions) == []


async def test_messages_are_checked_but_for_delays(rig: Rig) -> None:
    topic, cnx, consumer_cnx = await topic_of(rig), rig.cnx(), rig.cnx()
    consumer = await topic.subscribe(subscribe_request(consumer_cnx))
    consumer.flow(10)
    await topic.apply_settings(TopicSettings(max_message_bytes=500, max_delay_millis=1))
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    send(producer, 1, entry(1, b"x" * 500))
    send(producer, 2, entry(2, deliver_at_time=1_800_000_000_000))
    await rig.clock.sleep(0.01)
    assert cnx.take() == ["receipt 0 at 0", "error 1 NotAllowedError", "receipt 2 at 0"]
    assert consumer_cnx.take() == ["message 0", "message 0"]
