from __future__ import annotations

import pytest

from pulsar_py.common.ack_set import MAX_WORDS
from pulsar_py.common.errors import NotAllowedError, RemoteProtocolError
from pulsar_py.proto.PulsarApi_pb2 import BrokerEntryMetadata, CommandAck
from pulsar_py.server.dispatch.multiple import MultipleConsumersDispatcher
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.subscriptions.consumer import MAX_ACK_PROPERTIES, MAX_ACK_PROPERTIES_BYTES
from pulsar_py.wire.payload import add_broker_entry_metadata, strip_checksum
from tests.dispatch_fixtures import topic
from tests.dispatch_parts import (
    FakeConnection,
    Topic,
    ack,
    message,
    messages_of,
    received,
    redeliver,
    settle,
)

__all__ = ["topic"]

EXCLUSIVE = SubscriptionType.EXCLUSIVE
SHARED = SubscriptionType.SHARED
SINGLE = [SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER]
MANY = [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED]
STAMPED = add_broker_entry_metadata(message(b"m"), BrokerEntryMetadata(index=3))


@pytest.mark.parametrize("permits", [0, 2**31, 2**32 - 1])
async def test_flow_of_nothing_or_too_much_breaks_the_protocol(topic: Topic, permits: int) -> None:
    consumer = await topic.consume()
    with pytest.raises(RemoteProtocolError):
        consumer.flow(permits)


async def test_the_stored_entry_goes_out_unchanged(topic: Topic) -> None:
    data = message(b"body")
    await topic.publish(data)
    consumer = await topic.consume(permits=1)
    await settle()
    assert messages_of(consumer)[0].data == data


async def test_message_ids_carry_the_partition(topic: Topic) -> None:
    parts = await Topic(topic.clock, "persistent://public/default/t-partition-2").open()
    await parts.publish_many(1)
    consumer = await parts.consume(permits=1)
    await settle()
    assert received(consumer) == [0]
    assert consumer.subscription.partition_index == 2
    await parts.close()


async def test_the_brokers_block_is_stripped_unless_agreed(topic: Topic) -> None:
    await topic.publish(STAMPED)
    plain = await topic.consume(1, subscription="a", permits=1)
    connection = FakeConnection(supports_broker_entry_metadata=True)
    exposed = await topic.consume(2, subscription="b", permits=1, connection=connection)
    await settle()
    assert messages_of(plain)[0].data == message(b"m")
    assert messages_of(exposed)[0].data == STAMPED


@pytest.mark.parametrize(("version", "is_stripped"), [(10, True), (11, False)])
async def test_the_checksum_is_stripped_below_version_11(
    topic: Topic, version: int, *, is_stripped: bool
) -> None:
    data = message(b"m")
    await topic.publish(data)
    connection = FakeConnection(protocol_version=version)
    consumer = await topic.consume(kind=EXCLUSIVE, permits=1, connection=connection)
    await settle()
    assert messages_of(consumer)[0].data == (strip_checksum(data) if is_stripped else data)


@pytest.mark.parametrize("kind", [SHARED, SubscriptionType.FAILOVER])
async def test_a_client_without_batches_is_disconnected_and_others_get_them(
    topic: Topic, kind: SubscriptionType
) -> None:
    await topic.publish(message(), message(batch=2))
    old = FakeConnection(protocol_version=3)
    first = await topic.consume(1, kind, permits=10, connection=old, consumer_name="a")
    await settle()
    assert not old.is_connected
    assert received(first) == []
    second = await topic.consume(2, kind, permits=10, consumer_name="b")
    await settle()
    assert received(second) == [0, 1]
    assert second.permits.available == 7


@pytest.mark.parametrize("kind", [SHARED, SubscriptionType.KEY_SHARED])
@pytest.mark.parametrize("others_count", [0, 1])
async def test_what_a_client_without_batches_leaves_is_counted_once(
    topic: Topic, kind: SubscriptionType, others_count: int
) -> None:
    """It owes entries that it got before, and must not owe the batch that it never got."""
    keys = [f"k{number}" for number in range(8)]
    await topic.publish(*[message(partition_key=key) for key in keys[:4]])
    old = FakeConnection(protocol_version=3)
    first = await topic.consume(1, kind, permits=100, connection=old)
    others = [await topic.consume(2, kind, permits=100) for _ in range(others_count)]
    await settle()
    dispatcher = first.subscription.dispatcher
    assert isinstance(dispatcher, MultipleConsumersDispatcher)
    assert dispatcher.unacked_messages == 4
    await topic.publish(*[message(partition_key=key, batch=3) for key in keys])
    await settle()
    assert not old.is_connected
    assert first.permits.unacked_messages == 0
    owed = sum(each.permits.unacked_messages for each in others)
    assert owed == sum(each.pending_acks.messages_count for each in others) == others_count * 28
    assert dispatcher.unacked_messages == owed


@pytest.mark.parametrize("error", list(CommandAck.ValidationError.values()))
async def test_a_validation_error_acknowledges(topic: Topic, error: int) -> None:
    await topic.publish_many(2)
    consumer = await topic.consume(permits=10)
    await settle()
    ack(consumer, 0, validation_error=error)
    assert consumer.subscription.stats().backlog_entries == 1


async def test_no_ids_and_unknown_ledgers_are_fine(topic: Topic) -> None:
    await topic.publish_many(1)
    consumer = await topic.consume(permits=10)
    await settle()
    ack(consumer)
    ack(consumer, 0, ledger_id=99)
    ack(consumer, 0, ledger_id=2**64 - 1)
    assert consumer.subscription.stats().backlog_entries == 1


@pytest.mark.parametrize("kind", SINGLE)
async def test_properties_of_a_cumulative_acknowledgement_are_stored(
    topic: Topic, kind: SubscriptionType
) -> None:
    await topic.publish_many(2)
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    ack(consumer, 0, cumulative=True, properties=[{"key": "k", "value": 7}])
    subscription = await topic.subscription()
    assert dict(subscription.cursor.properties) == {"k": 7}


@pytest.mark.parametrize("kind", SINGLE)
async def test_single_active_consumers_count_nothing_as_unacknowledged(
    topic: Topic, kind: SubscriptionType
) -> None:
    topic.set(max_unacked_messages_per_consumer=2)
    await topic.publish_many(5)
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    assert received(consumer) == [0, 1, 2, 3, 4]
    assert consumer.permits.unacked_messages == 0


@pytest.mark.parametrize("kind", MANY)
async def test_permits_that_come_while_blocked_count_later(
    topic: Topic, kind: SubscriptionType
) -> None:
    topic.set(max_unacked_messages_per_consumer=2)
    await topic.publish_many(5)
    consumer = await topic.consume(kind=kind, permits=2)
    await settle()
    consumer.flow(3)
    assert consumer.stats().is_blocked_on_unacked_messages
    assert consumer.stats().available_permits == 0
    ack(consumer, 0)
    await settle()
    assert not consumer.permits.parked_permits
    assert len(received(consumer)) > 2


async def test_messages_of_shared_consumers_carry_no_epoch(topic: Topic) -> None:
    await topic.publish_many(1)
    consumer = await topic.consume(permits=10, consumer_epoch=3)
    await settle()
    redeliver(consumer, epoch=5)
    await settle()
    assert [each.consumer_epoch for each in messages_of(consumer)] == [None, None]


async def test_the_average_of_messages_follows_batches(topic: Topic) -> None:
    await topic.publish(message(batch=10))
    consumer = await topic.consume(kind=EXCLUSIVE, permits=100)
    await settle()
    assert consumer.average_messages_per_entry == 10
    await topic.publish(message())
    await settle()
    assert consumer.average_messages_per_entry == pytest.approx(9.1)


async def test_stats_tell_what_was_sent_and_asked(topic: Topic) -> None:
    await topic.publish_many(3)
    consumer = await topic.consume(permits=10, consumer_name="c", metadata={"k": "v"})
    await settle()
    ack(consumer, 0)
    consumer.roll_rates(2.0)
    stats = consumer.stats()
    assert (stats.consumer_name, stats.consumer_id, stats.metadata) == ("c", 1, {"k": "v"})
    assert (stats.available_permits, stats.unacked_messages) == (7, 2)
    assert (stats.messages_out_count, stats.message_out_rate, stats.acked_rate) == (3, 1.5, 0.5)
    assert stats.bytes_out_count == sum(len(each.data) for each in messages_of(consumer))
    assert stats.last_acked_millis == stats.last_flow_millis == topic.clock.wall_time_millis()


async def test_closing_twice_is_once(topic: Topic) -> None:
    consumer = await topic.consume()
    consumer.close()
    consumer.close()
    consumer.disconnect()
    assert consumer.connection.consumers_closed == []  # type: ignore[attr-defined]


async def test_an_ack_set_that_no_batch_has_is_refused_before_anything_is_taken(
    topic: Topic,
) -> None:
    await topic.publish_many(2)
    consumer = await topic.consume(permits=2)
    await settle()
    with pytest.raises(NotAllowedError, match="4097 words, allowed are 4096"):
        ack(consumer, 0, 1, ack_set=[1] * (MAX_WORDS + 1))
    assert len(consumer.pending_acks) == 2


async def test_more_properties_than_a_position_takes_are_refused(topic: Topic) -> None:
    await topic.publish_many(1)
    consumer = await topic.consume(kind=EXCLUSIVE, permits=1)
    await settle()
    properties = [{"key": str(value), "value": value} for value in range(MAX_ACK_PROPERTIES + 1)]
    with pytest.raises(NotAllowedError, match="1001 properties, allowed are 1000"):
        ack(consumer, 0, cumulative=True, properties=properties)
    assert consumer.subscription.stats().backlog_entries == 1


async def test_names_of_properties_of_an_acknowledgement_have_a_limit(topic: Topic) -> None:
    await topic.publish_many(1)
    consumer = await topic.consume(kind=SubscriptionType.EXCLUSIVE, permits=10)
    await settle()
    half = "x" * (MAX_ACK_PROPERTIES_BYTES // 2 - 1)
    properties = [{"key": half + name, "value": 7} for name in "ab"]
    ack(consumer, 0, cumulative=True, properties=properties)
    with pytest.raises(NotAllowedError, match="allowed are 131072"):
        ack(consumer, 0, cumulative=True, properties=[*properties, {"key": "c", "value": 7}])
