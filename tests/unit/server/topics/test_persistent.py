from __future__ import annotations

import pytest

from pulsar_py.common.errors import (
    NamingError,
    NotAllowedError,
    SubscriptionNotFoundError,
    TopicBusyError,
    TopicTerminatedError,
)
from pulsar_py.common.position import EARLIEST, Position
from tests.unit.server.topics.rig import Rig, entry, send, subscribe_request


async def test_receipts_come_in_order_with_consecutive_entries(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    for sequence_id in range(5):
        send(producer, sequence_id)
    await producer.close()
    assert cnx.take() == [f"receipt {n} at {n}" for n in range(5)]
    assert cnx.in_flight.entries_count == 0
    assert rig.broker.publish_buffer.bytes_count == 0


async def test_what_was_published_is_delivered(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    consumer = await topic.subscribe(subscribe_request(cnx, starts_at_earliest=True))
    producer = await rig.producer(topic, rig.cnx())
    consumer.flow(10)
    send(producer, 0)
    send(producer, 1)
    await producer.close()
    await rig.clock.sleep(0.01)
    assert [line for line in cnx.take() if line.startswith("message")] == ["message 0", "message 1"]


async def test_a_topic_comes_back_after_an_unload(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await topic.subscribe(subscribe_request(cnx, starts_at_earliest=True))
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    await producer.close()
    await rig.broker.topics.unload(topic.name)
    assert cnx.closed_consumers == [1]

    again = await rig.persistent()

    assert again is not topic
    assert list(again.subscriptions) == ["sub"]
    assert again.subscriptions["sub"].stats().backlog_entries == 1
    assert again.last_message_position().entry_id == 0


async def test_unloading_closes_producers_and_drops_late_sends(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx, producer_id=7)
    send(producer, 0)
    await rig.broker.topics.unload(topic.name)
    assert cnx.closed_producers == [7]
    assert cnx.take() == ["receipt 0 at 0"]
    send(producer, 1)
    await rig.clock.sleep(1)
    assert cnx.take() == []


async def test_terminate_closes_producers_and_takes_no_new_ones(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx, producer_id=3)
    send(producer, 0)
    await rig.clock.sleep(0.01)
    cnx.take()

    position = await topic.terminate()

    assert position.entry_id == 0
    assert await topic.terminate() == position
    assert cnx.closed_producers == [3]
    send(producer, 1)
    with pytest.raises(TopicTerminatedError):
        await rig.producer(topic, cnx)
    assert cnx.take() == []


async def test_delete_refuses_while_somebody_is_connected(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await rig.producer(topic, cnx, producer_id=3)
    with pytest.raises(TopicBusyError):
        await rig.broker.topics.delete(topic.name)
    await rig.broker.topics.delete(topic.name, force=True)
    assert cnx.closed_producers == [3]
    assert not await rig.broker.topics.exists(topic.name)


async def test_an_empty_topic_has_no_last_message(rig: Rig) -> None:
    topic = await rig.persistent()
    assert topic.last_message_position() == EARLIEST


async def test_subscription_names_are_checked(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    for name in ("", "pulsar.dedup", "pulsar.repl.west"):
        with pytest.raises(NamingError):
            await topic.subscribe(subscribe_request(cnx, name))


async def test_a_reader_and_a_durable_subscription_can_not_share_a_name(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await topic.subscribe(subscribe_request(cnx))
    with pytest.raises(NotAllowedError, match="Durable subscription"):
        await topic.subscribe(subscribe_request(cnx, is_durable=False, consumer_id=2))


async def test_a_reader_starts_at_its_position(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, rig.cnx())
    for n in range(4):
        send(producer, n)
    await producer.close()
    ledger_id = topic.last_message_position().ledger_id
    consumer = await topic.subscribe(
        subscribe_request(cnx, is_durable=False, start_position=Position(ledger_id, 2))
    )
    consumer.flow(10)
    await rig.clock.sleep(0.01)
    assert [line for line in cnx.take() if "message" in line] == ["message 2", "message 3"]


async def test_rolling_back_starts_a_new_subscription_in_the_past(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, rig.cnx())
    now = rig.clock.wall_time_millis()
    for n, age in enumerate((7_200_000, 1_800_000, 0)):
        send(producer, n, entry(n, publish_time=now - age))
    await producer.close()
    consumer = await topic.subscribe(subscribe_request(cnx, start_rollback_seconds=3600))
    consumer.flow(10)
    await rig.clock.sleep(0.01)
    assert [line for line in cnx.take() if "message" in line] == ["message 1", "message 2"]


async def test_finding_by_publish_time(rig: Rig) -> None:
    topic = await rig.persistent()
    producer = await rig.producer(topic, rig.cnx())
    for n in range(5):
        send(producer, n, entry(n, publish_time=1000 + n * 10))
    await producer.close()
    assert (await topic.find_by_publish_time(1020)).entry_id == 2
    assert (await topic.find_by_publish_time(1021)).entry_id == 3
    assert (await topic.find_by_publish_time(0)).entry_id == 0
    assert (await topic.find_by_publish_time(9999)).entry_id == 5


async def test_deleting_an_unknown_subscription(rig: Rig) -> None:
    topic = await rig.persistent()
    with pytest.raises(SubscriptionNotFoundError):
        await topic.delete_subscription("nobody")


async def test_stats_count_what_came_in(rig: Rig) -> None:
    topic = await rig.persistent()
    producer = await rig.producer(topic, rig.cnx())
    send(producer, 0, messages_count=3)
    send(producer, 3)
    await producer.close()
    stats = topic.stats()
    assert stats.messages_in_count == 4
    assert stats.bytes_in_count == 2 * len(entry(0))
    assert stats.producers == ()
    assert stats.storage_bytes == 2 * len(entry(0))
    assert topic.internal_stats().entries_count == 2
