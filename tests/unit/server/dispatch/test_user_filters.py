"""user_filters: what users' filters keep from consumers, and when it is shown to them again."""

from __future__ import annotations

import pytest

from pulsar_py.common.position import Position
from pulsar_py.server.dispatch import user_filters
from pulsar_py.server.dispatch.dispatcher import PersistentDispatcher
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.dispatch.user_filters import RescheduledEntries
from pulsar_py.server.hooks.contained import HookErrors
from pulsar_py.server.hooks.installed_filters import InstalledFilters
from pulsar_py.testing.clock import VirtualClock
from tests.dispatch_parts import FakeConnection, Topic, ack, message, received, settle
from tests.hook_classes import ByPayload

BY_PAYLOAD = "tests.hook_classes.ByPayload"
NOTHING = "tests.hook_classes.NothingPasses"
EACH = list(SubscriptionType)
MANY = [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED]


def install(topic: Topic, *names: str) -> InstalledFilters:
    installed = InstalledFilters(HookErrors(topic.clock), names=names, directory="")
    topic.filters = installed.find(names)
    return installed


async def entries(topic: Topic, *bodies: bytes) -> list[Position]:
    return await topic.publish(*[message(body) for body in bodies])


@pytest.mark.parametrize("kind", EACH)
async def test_rejected_entries_are_acknowledged_and_cost_no_permits(
    topic: Topic, kind: SubscriptionType
) -> None:
    install(topic, BY_PAYLOAD)
    await entries(topic, b"a", b"no", b"b", b"no", b"c")
    consumer = await topic.consume(kind=kind, permits=3)
    await settle()
    assert received(consumer) == [0, 2, 4]
    ack(consumer, 0, 2, 4)
    subscription = await topic.subscription()
    assert subscription.cursor.backlog_count() == 0
    counts = subscription.stats().filter_counts
    assert (counts.processed, counts.accepted, counts.rejected) == (5, 3, 2)


@pytest.mark.parametrize("kind", EACH)
async def test_an_entry_that_was_put_off_comes_after_the_delay(
    topic: Topic, kind: SubscriptionType
) -> None:
    topic.set(rescheduled_delay_millis=500)
    install(topic, BY_PAYLOAD)
    await entries(topic, b"later", b"a")
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    assert received(consumer) == [1]
    ack(consumer, 1)
    await topic.clock.sleep(0.49)
    assert received(consumer) == [1]
    await topic.clock.sleep(0.02)
    assert received(consumer) == [1, 0]
    subscription = await topic.subscription()
    assert subscription.stats().filter_counts.rescheduled == 1


@pytest.mark.parametrize("kind", EACH)
async def test_a_failing_filter_keeps_nothing_back(topic: Topic, kind: SubscriptionType) -> None:
    install(topic, BY_PAYLOAD)
    await entries(topic, b"bad", b"no", b"a")
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    assert received(consumer) == [0, 2]


async def test_a_filter_that_returns_no_result_keeps_nothing_back(topic: Topic) -> None:
    name = "tests.hook_classes.Numbers"
    errors = HookErrors(topic.clock)
    topic.filters = InstalledFilters(errors, names=(name,), directory="").find((name,))
    await entries(topic, b"a")
    consumer = await topic.consume(permits=10)
    await settle()
    assert received(consumer) == [0]
    assert errors.counts == {name: 1}


async def test_filters_are_asked_in_order_until_one_objects(topic: Topic) -> None:
    installed = install(topic, NOTHING, BY_PAYLOAD)
    await entries(topic, b"a")
    await topic.consume(permits=10)
    await settle()
    second = installed.require(BY_PAYLOAD).filter
    assert isinstance(second, ByPayload)
    assert not second.seen


@pytest.mark.parametrize("kind", EACH)
async def test_changed_filters_count_from_the_next_entry_on(
    topic: Topic, kind: SubscriptionType
) -> None:
    consumer = await topic.consume(kind=kind, permits=10)
    await entries(topic, b"a", b"no")
    await settle()
    install(topic, BY_PAYLOAD)
    subscription = await topic.subscription()
    subscription.on_settings_changed()
    await entries(topic, b"no", b"b")
    await settle()
    assert received(consumer) == [0, 1, 3]


@pytest.mark.parametrize("kind", MANY)
async def test_entries_read_again_are_shown_again(topic: Topic, kind: SubscriptionType) -> None:
    installed = install(topic, BY_PAYLOAD)
    await entries(topic, b"a")
    connection = FakeConnection()
    consumer = await topic.consume(kind=kind, permits=10, connection=connection)
    await settle()
    consumer.subscription.redeliver(consumer, None)
    await settle()
    assert received(consumer) == [0, 0]
    shown = installed.require(BY_PAYLOAD).filter
    assert isinstance(shown, ByPayload)
    assert len(shown.seen) == 2
    assert shown.contexts[0].topic == str(topic.name)
    assert shown.contexts[0].subscription == "sub"


@pytest.mark.parametrize("kind", EACH)
async def test_what_was_put_off_is_forgotten_with_its_consumer(
    topic: Topic, kind: SubscriptionType
) -> None:
    install(topic, BY_PAYLOAD)
    await entries(topic, b"later")
    first = await topic.consume(kind=kind, permits=10)
    await settle()
    first.close()
    second = await topic.consume(2, kind, permits=10)
    await topic.clock.sleep(3)
    assert received(second) == [0]


async def test_no_more_are_put_off_than_the_limit(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_filters, "MAX_RESCHEDULED", 2)
    topic.set(max_read_batch_entries=1)
    installed = install(topic, BY_PAYLOAD)
    await entries(topic, *[b"later"] * 5)
    consumer = await topic.consume(permits=10)
    await settle()
    shown = installed.require(BY_PAYLOAD).filter
    assert isinstance(shown, ByPayload)
    assert len(shown.seen) == 2
    await topic.clock.sleep(4)
    assert sorted(received(consumer)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER])
async def test_one_place_is_remembered_where_all_is_read_again(
    topic: Topic, kind: SubscriptionType
) -> None:
    topic.set(rescheduled_delay_millis=500)
    install(topic, BY_PAYLOAD)
    places = await entries(topic, *[b"later"] * 5)
    consumer = await topic.consume(kind=kind, permits=10)
    await settle()
    dispatcher = (await topic.subscription()).dispatcher
    assert isinstance(dispatcher, PersistentDispatcher)
    assert dispatcher.rescheduled is not None
    assert [each in dispatcher.rescheduled for each in places] == [True] + [False] * 4
    await topic.clock.sleep(0.6)
    assert received(consumer) == [0, 1, 2, 3, 4]
    assert dispatcher.rescheduled is None


async def test_each_is_released_at_its_time(virtual_clock: VirtualClock) -> None:
    released: list[Position] = []
    waiting = RescheduledEntries(virtual_clock, lambda: 1.0, released.extend)
    waiting.add(Position(1, 0))
    await virtual_clock.sleep(0.5)
    waiting.add(Position(1, 1))
    assert waiting.first == (Position(1, 0), 0.5)
    await virtual_clock.sleep(0.6)
    assert released == [(1, 0)]
    waiting.clear()
    await virtual_clock.sleep(2)
    assert released == [(1, 0)]
