"""What every persistent dispatcher does, whatever its type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.server.dispatch.dispatcher import PersistentDispatcher
from pulsar_py.server.dispatch.filtering import DispatchFilter, Verdict
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.testing.clock import VirtualClock, pytest_asyncio_loop_factories, virtual_clock
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from pulsar_py.wire.entry_summary import EntrySummary
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

__all__ = ["pytest_asyncio_loop_factories", "topic", "virtual_clock"]

pytestmark = pytest.mark.parametrize("kind", list(SubscriptionType))


async def test_nothing_before_the_first_flow(topic: Topic, kind: SubscriptionType) -> None:
    await topic.publish_many(3)
    consumer = await topic.consume(kind=kind)
    await settle()
    assert received(consumer) == []


async def test_never_more_than_permits(topic: Topic, kind: SubscriptionType) -> None:
    await topic.publish_many(5)
    consumer = await topic.consume(kind=kind, permits=2)
    await settle()
    assert received(consumer) == [0, 1]
    consumer.flow(1)
    await settle()
    assert received(consumer) == [0, 1, 2]


async def test_new_entries_wake_a_waiting_consumer(topic: Topic, kind: SubscriptionType) -> None:
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    await topic.publish_many(2)
    await settle()
    assert received(consumer) == [0, 1]


async def test_a_consumer_that_returns_gets_what_it_did_not_acknowledge(
    topic: Topic, kind: SubscriptionType
) -> None:
    await topic.publish_many(5)
    first = await topic.consume(1, kind, permits=10)
    await settle()
    ack(first, 1, 3)
    first.close()
    again = await topic.consume(1, kind, permits=10)
    await settle()
    assert received(again) == [0, 2, 4]


async def test_permits_die_with_their_consumer(topic: Topic, kind: SubscriptionType) -> None:
    first = await topic.consume(1, kind, permits=10)
    first.close()
    again = await topic.consume(1, kind)
    await topic.publish_many(1)
    await settle()
    assert received(again) == []
    assert again.stats().available_permits == 0


async def test_redelivery_without_ids_brings_all_again(
    topic: Topic, kind: SubscriptionType
) -> None:
    await topic.publish_many(3)
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    ack(consumer, 1)
    redeliver(consumer)
    await settle()
    assert received(consumer) == [0, 1, 2, 0, 2]


async def test_markers_are_never_delivered(topic: Topic, kind: SubscriptionType) -> None:
    await topic.publish(message(marker_type=21), message())
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    assert received(consumer) == [1]
    assert consumer.subscription.stats().backlog_entries == 1


async def test_a_batch_in_part_comes_with_its_set(topic: Topic, kind: SubscriptionType) -> None:
    await topic.publish(message(batch=4))
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    ack(consumer, 0, ack_set=[0b0110])
    redeliver(consumer)
    await settle()
    assert [each.ack_set for each in messages_of(consumer)] == [(), (6,)]
    assert consumer.permits.available == 10 - 4 - 2


async def test_nothing_to_a_connection_that_is_not_writable(
    topic: Topic, kind: SubscriptionType
) -> None:
    connection = FakeConnection(is_writable=False)
    consumer = await topic.consume(kind=kind, permits=10, connection=connection)
    await topic.publish_many(3)
    await settle()
    assert received(consumer) == []
    connection.become_writable()
    await settle()
    assert received(consumer) == [0, 1, 2]


async def test_seek_takes_back_everything(topic: Topic, kind: SubscriptionType) -> None:
    positions = await topic.publish_many(4)
    consumer = await topic.consume(1, kind, permits=10)
    await settle()
    ack(consumer, 0, 1, 2, 3)
    await consumer.subscription.reset_to_position(positions[2], None)
    again = await topic.consume(2, kind, permits=10)
    await settle()
    assert received(again) == [2, 3]


async def test_the_end_is_told_when_all_is_acknowledged(
    topic: Topic, kind: SubscriptionType
) -> None:
    await topic.publish_many(2)
    connection = FakeConnection()
    consumer = await topic.consume(kind=kind, permits=10, connection=connection)
    await settle()
    await topic.ledger.terminate()
    (await topic.subscription()).on_terminated()
    await settle()
    assert connection.ends_of_topic() == []
    ack(consumer, 0, 1)
    await settle()
    assert connection.ends_of_topic() == [1]


async def test_removing_a_consumer_twice_is_once(topic: Topic, kind: SubscriptionType) -> None:
    consumer = await topic.consume(kind=kind)
    dispatcher = consumer.subscription.dispatcher
    assert dispatcher is not None
    dispatcher.remove_consumer(consumer)
    dispatcher.remove_consumer(consumer)
    assert list(dispatcher.consumers) == []


async def test_closing_ends_everything(topic: Topic, kind: SubscriptionType) -> None:
    consumer = await topic.consume(kind=kind, permits=10)
    dispatcher = consumer.subscription.dispatcher
    assert dispatcher is not None
    dispatcher.close()
    await topic.publish_many(1)
    consumer.flow(5)
    await settle()
    assert received(consumer) == []


async def test_a_closed_dispatcher_sends_nothing_whoever_calls_what(
    topic: Topic, kind: SubscriptionType
) -> None:
    connection = FakeConnection()
    consumers = await three(topic, kind, connection)
    await topic.publish_many(30)
    await settle()
    subscription = await topic.subscription()
    dispatcher = subscription.dispatcher
    assert isinstance(dispatcher, PersistentDispatcher)
    sent, told = len(connection.messages), len(connection.commands)
    dispatcher.close()
    await topic.publish_many(5)
    for consumer in consumers:
        dispatcher.remove_consumer(consumer)
        dispatcher.on_flow(consumer)
        dispatcher.redeliver(consumer, None)
        dispatcher.on_acknowledged(consumer, [(1, 0)], None)
    dispatcher.on_mark_delete_moved(subscription.cursor.mark_delete_position)
    dispatcher.on_cursor_reset()
    dispatcher.on_settings_changed()
    dispatcher.read_more()
    dispatcher.tell_end_of_topic()
    connection.become_writable()
    await settle()
    assert (len(connection.messages), len(connection.commands)) == (sent, told)
    assert list(dispatcher.consumers) == []


async def test_what_was_being_read_when_it_closed_is_sent_to_nobody(
    virtual_clock: VirtualClock, kind: SubscriptionType
) -> None:
    cold = await Topic(virtual_clock).open(is_cold=True)
    await cold.publish_many(30)
    connection = FakeConnection()
    await three(cold, kind, connection)
    subscription = await cold.subscription()
    assert subscription.is_read_in_flight
    assert subscription.dispatcher is not None
    subscription.dispatcher.close()
    await settle(200)
    assert connection.messages == []
    again = await cold.consume(9, kind, permits=100)
    await settle(200)
    assert received(again) == list(range(30))
    await cold.close()


async def test_a_paused_subscription_sends_nothing_until_it_is_resumed(
    topic: Topic, kind: SubscriptionType
) -> None:
    consumer = await topic.consume(1, kind, permits=100)
    await topic.publish_many(3)
    await settle()
    assert received(consumer) == [0, 1, 2]
    subscription = await topic.subscription()
    await subscription.pause_dispatch()
    await topic.publish_many(3)
    consumer.flow(10)
    await settle()
    assert received(consumer) == [0, 1, 2]
    await subscription.resume_dispatch()
    await settle()
    assert len(received(consumer)) == 6


@pytest.mark.parametrize("end", ["close", "delete", "disconnect"])
async def test_ending_a_subscription_costs_what_it_sent_and_no_more(
    topic: Topic, kind: SubscriptionType, end: str
) -> None:
    connection = FakeConnection()
    await three(topic, kind, connection)
    await topic.publish_many(30)
    await settle()
    subscription = await topic.subscription()
    sent = len(connection.messages)
    ended = getattr(subscription, end)()
    if ended is not None:
        await ended
    await settle()
    assert len(connection.messages) == sent
    assert len(connection.consumers_closed) == (1 if kind is SubscriptionType.EXCLUSIVE else 3)


async def test_a_reset_sends_nothing_before_the_cursor_stands(
    virtual_clock: VirtualClock, kind: SubscriptionType
) -> None:
    cold = await Topic(virtual_clock).open(is_cold=True)
    assert isinstance(cold.store, SimulatedLedgerStore)
    positions = await cold.publish_many(30)
    connection = FakeConnection()
    consumers = await three(cold, kind, connection)
    await settle(200)
    sent = len(connection.messages)
    subscription = await cold.subscription()
    cold.store.is_holding = True
    tasks = TaskOwner("test")
    resetting = tasks.spawn(subscription.reset_to_position(positions[20], None), "reset")
    await settle(200)
    for consumer in consumers:
        if not consumer.is_closed:
            consumer.flow(100)
            redeliver(consumer)
    await settle(200)
    assert len(connection.messages) == sent
    cold.store.release()
    await resetting
    await settle(200)
    stays = kind is SubscriptionType.FAILOVER
    assert connection.entry_ids()[sent:] == (list(range(20, 30)) if stays else [])
    await cold.close()


async def three(topic: Topic, kind: SubscriptionType, connection: FakeConnection) -> list[Consumer]:
    """Three consumers, or the one of Exclusive, with permits."""
    count = 1 if kind is SubscriptionType.EXCLUSIVE else 3
    return [
        await topic.consume(number, kind, permits=100, connection=connection)
        for number in range(1, count + 1)
    ]


class Aborted:
    """Acknowledges what its set names, plain entries included."""

    judges_plain_entries = True
    is_of_users = False

    def __init__(self) -> None:
        self.entry_ids: set[int] = set()
        self.judged: list[int] = []

    def judge(self, entry: Entry, summary: EntrySummary) -> Verdict:
        self.judged.append(entry.entry_id)
        return Verdict.ACKNOWLEDGE if entry.entry_id in self.entry_ids else Verdict.ACCEPT


class Filtered(PersistentSubscription):
    """A subscription with a filter of its own."""

    aborted: Aborted

    def entry_filters(self, reschedule: Callable[[Position], None]) -> Sequence[DispatchFilter]:
        return (*super().entry_filters(reschedule), self.aborted)


async def test_the_subscription_says_what_judges_entries_also_those_read_again(
    topic: Topic, kind: SubscriptionType
) -> None:
    cursor = await topic.ledger.open_cursor("sub", InitialPosition.EARLIEST)
    subscription = Filtered(topic, "sub", topic.ledger, cursor, clock=topic.clock)
    subscription.aborted = aborted = Aborted()
    topic.subscriptions["sub"] = subscription
    await topic.publish(message(), message(), message(marker_type=21), message())
    aborted.entry_ids = {1}
    consumer = await topic.consume(kind=kind, permits=100)
    await settle()
    assert received(consumer) == [0, 3]
    assert aborted.judged == [0, 1, 3]
    assert subscription.stats().backlog_entries == 2
    aborted.entry_ids = {0}
    redeliver(consumer)
    await settle()
    assert received(consumer) == [0, 3, 3]
    assert subscription.stats().backlog_entries == 1
