from __future__ import annotations

import re

import pytest

from pulsar_py.common.errors import (
    ProducerBlockedQuotaExceededError,
    ProducerBlockedQuotaExceededExceptionError,
)
from pulsar_py.common.policies import (
    BacklogQuota,
    BacklogQuotaAction,
    BacklogQuotaType,
    InactiveTopicDeleteMode,
    InactiveTopicPolicy,
)
from pulsar_py.common.position import Position
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.upkeep import topic_upkeep as upkeep
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.topics.rig import NAMESPACE, Rig, entry, send, subscribe_request


async def with_policies(rig: Rig, **policies: object) -> None:
    await rig.broker.resources.namespaces.update(NAMESPACE, lambda old: old.replace(**policies))
    await rig.clock.sleep(0.01)


async def published(rig: Rig, topic: PersistentTopic, *ages_seconds: int) -> None:
    producer = await rig.producer(topic, rig.cnx(), "feed")
    now = rig.clock.wall_time_millis()
    for n, age in enumerate(ages_seconds):
        send(producer, n, entry(n, publish_time=now - age * 1000))
    await producer.close()


async def subscription(topic: PersistentTopic, name: str = "sub") -> PersistentSubscription:
    made = await topic.create_subscription(name, starts_at_earliest=True)
    assert isinstance(made, PersistentSubscription)
    return made


async def test_old_messages_expire(rig: Rig) -> None:
    topic = await rig.persistent()
    sub = await subscription(topic)
    await published(rig, topic, 100, 50, 5, 0)
    await upkeep.expire_messages(topic)
    assert sub.cursor.backlog_count() == 4
    await with_policies(rig, message_ttl_seconds=10)
    await upkeep.expire_messages(topic)
    assert sub.cursor.backlog_count() == 2


async def test_a_subscription_that_refuses_has_its_turn_in_the_next_round(rig: Rig) -> None:
    topic = await rig.persistent()
    reset, other = await subscription(topic, "reset"), await subscription(topic, "the other")
    await published(rig, topic, 100, 50, 5, 0)
    await topic.ledger.roll_ledger()
    await with_policies(rig, message_ttl_seconds=10)
    reset.cursor._is_resetting = True
    await upkeep.expire_messages(topic)
    assert (reset.cursor.backlog_count(), other.cursor.backlog_count()) == (4, 2)
    reset.cursor._is_resetting = False
    await upkeep.expire_messages(topic)
    assert reset.cursor.backlog_count() == 2


async def test_whole_ledgers_expire_whatever_their_messages_say(rig: Rig) -> None:
    topic = await rig.persistent()
    sub = await subscription(topic)
    await published(rig, topic, -10_000_000)
    await topic.ledger.roll_ledger()
    await rig.clock.sleep(100)
    await published(rig, topic, 0)
    await with_policies(rig, message_ttl_seconds=10)
    await upkeep.expire_messages(topic)
    assert sub.cursor.backlog_count() == 1


async def test_connected_consumers_that_are_not_behind_are_left_alone(rig: Rig) -> None:
    topic = await rig.persistent()
    consumer = await topic.subscribe(subscribe_request(rig.cnx(), starts_at_earliest=True))
    await published(rig, topic, -1000)
    await topic.ledger.roll_ledger()
    await rig.clock.sleep(20)
    await with_policies(rig, message_ttl_seconds=10)
    await upkeep.expire_messages(topic)
    assert topic.subscriptions["sub"].stats().backlog_entries == 1
    consumer.close()
    await upkeep.expire_messages(topic)
    assert topic.subscriptions["sub"].stats().backlog_entries == 0


def quota(limit: int, action: BacklogQuotaAction) -> dict[BacklogQuotaType, BacklogQuota]:
    return {BacklogQuotaType.DESTINATION_STORAGE: BacklogQuota(limit, -1, action)}


async def test_an_exceeded_quota_disconnects_producers(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await subscription(topic)
    await rig.producer(topic, cnx, producer_id=8)
    await published(rig, topic, 0, 0)
    await upkeep.enforce_backlog_quota(topic)
    assert cnx.closed_producers == []
    await with_policies(rig, backlog_quotas=quota(10, BacklogQuotaAction.PRODUCER_EXCEPTION))
    await upkeep.enforce_backlog_quota(topic)
    assert cnx.closed_producers == [8]


async def test_eviction_skips_on_the_slowest_subscription(rig: Rig) -> None:
    topic = await rig.persistent()
    slow, fast = await subscription(topic, "slow"), await subscription(topic, "fast")
    await published(rig, topic, *([0] * 100))
    await fast.cursor.skip(95)
    limit = topic.ledger.size_bytes // 2
    await with_policies(
        rig, backlog_quotas=quota(limit, BacklogQuotaAction.CONSUMER_BACKLOG_EVICTION)
    )
    await upkeep.enforce_backlog_quota(topic)
    assert 40 <= slow.cursor.backlog_count() <= 50
    assert fast.cursor.backlog_count() == 5


async def test_eviction_leaves_what_is_held_back(rig: Rig) -> None:
    topic = await rig.persistent()
    subscriptions = [await subscription(topic, name) for name in "ab"]
    await published(rig, topic, *([0] * 100))
    last = topic.last_message_position()
    held_back_after = Position(last.ledger_id, 9)
    topic.move_max_read_position(held_back_after)
    await with_policies(rig, backlog_quotas=quota(10, BacklogQuotaAction.CONSUMER_BACKLOG_EVICTION))
    for _ in range(3):
        await upkeep.enforce_backlog_quota(topic)
        await rig.clock.sleep(2)  # the slowest cursor is the one whose written position is
    for each in subscriptions:
        assert each.cursor.mark_delete_position == held_back_after


async def test_what_was_evicted_is_owed_by_nobody(rig: Rig) -> None:
    topic = await rig.persistent()
    request = subscribe_request(rig.cnx(), kind=SubscriptionType.SHARED, starts_at_earliest=True)
    consumer = await topic.subscribe(request)
    consumer.flow(1000)
    await published(rig, topic, *([0] * 100))
    await rig.clock.sleep(0.01)
    assert consumer.permits.unacked_messages == 100
    await with_policies(rig, backlog_quotas=quota(10, BacklogQuotaAction.CONSUMER_BACKLOG_EVICTION))
    await upkeep.enforce_backlog_quota(topic)
    left = topic.subscriptions["sub"].stats().backlog_entries
    assert 0 < left < 10
    assert consumer.permits.unacked_messages == left


async def test_eviction_by_age_drops_whole_ledgers(rig: Rig) -> None:
    topic = await rig.persistent()
    sub = await subscription(topic)
    await published(rig, topic, 0, 0)
    await topic.ledger.roll_ledger()
    await rig.clock.sleep(100)
    await published(rig, topic, 0)
    action = BacklogQuotaAction.CONSUMER_BACKLOG_EVICTION
    await with_policies(
        rig, backlog_quotas={BacklogQuotaType.MESSAGE_AGE: BacklogQuota(-1, 50, action)}
    )
    await upkeep.enforce_backlog_quota(topic)
    assert sub.cursor.backlog_count() == 1


async def test_unused_subscriptions_are_deleted(rig: Rig) -> None:
    topic = await rig.persistent()
    await subscription(topic, "old")
    await topic.subscribe(subscribe_request(rig.cnx(), "used"))
    await with_policies(rig, subscription_expiration_minutes=1)
    await upkeep.delete_expired_subscriptions(topic)
    assert sorted(topic.subscriptions) == ["old", "used"]
    await rig.clock.sleep(61)
    await upkeep.delete_expired_subscriptions(topic)
    assert list(topic.subscriptions) == ["used"]


async def test_a_topic_becomes_inactive(rig: Rig) -> None:
    topic = await rig.persistent()
    producer = await rig.producer(topic, rig.cnx())
    await with_policies(
        rig,
        inactive_topics=InactiveTopicPolicy(
            InactiveTopicDeleteMode.DELETE_WHEN_NO_SUBSCRIPTIONS, 1000, True
        ),
    )
    rig.clock.jump(2000)  # type: ignore[attr-defined]
    assert not upkeep.is_inactive(topic)
    await producer.close()
    rig.clock.jump(999)  # type: ignore[attr-defined]
    assert not upkeep.is_inactive(topic)
    rig.clock.jump(2)  # type: ignore[attr-defined]
    assert upkeep.is_inactive(topic)


@pytest.mark.parametrize("has_subscription", [True, False])
@pytest.mark.parametrize("mode", list(InactiveTopicDeleteMode))
async def test_each_mode_of_inactivity(
    rig: Rig, mode: InactiveTopicDeleteMode, *, has_subscription: bool
) -> None:
    """A subscription keeps a topic in one mode, its backlog alone in the other."""
    topic = await rig.persistent()
    await with_policies(rig, inactive_topics=InactiveTopicPolicy(mode, 100, True))
    sub = await subscription(topic) if has_subscription else None
    await published(rig, topic, 0)

    def is_inactive_after(seconds: float) -> bool:
        rig.clock.jump(seconds)  # type: ignore[attr-defined]
        return upkeep.is_inactive(topic)

    if sub is None:
        assert is_inactive_after(101)
        return
    assert not is_inactive_after(101)
    consumer = await topic.subscribe(subscribe_request(rig.cnx(), "sub"))
    await sub.clear_backlog()
    assert not is_inactive_after(101)  # somebody is connected
    consumer.close()
    assert not is_inactive_after(99)
    caught_up = mode is InactiveTopicDeleteMode.DELETE_WHEN_SUBSCRIPTIONS_CAUGHT_UP
    assert is_inactive_after(2) is caught_up


REFUSALS = {
    BacklogQuotaAction.PRODUCER_REQUEST_HOLD: ProducerBlockedQuotaExceededError,
    BacklogQuotaAction.PRODUCER_EXCEPTION: ProducerBlockedQuotaExceededExceptionError,
}


@pytest.mark.parametrize("is_precise", [False, True])
@pytest.mark.parametrize("action", list(BacklogQuotaAction))
async def test_each_policy_of_a_quota_by_age(
    virtual_clock: VirtualClock, action: BacklogQuotaAction, *, is_precise: bool
) -> None:
    """Fifty seconds are allowed; by default the age is that of the ledger since it was closed."""
    config = BrokerConfig(preciseTimeBasedBacklogQuotaCheck=is_precise)
    async with Rig(virtual_clock, config=config) as rig:
        topic, cnx = await rig.persistent(), rig.cnx()
        sub = await subscription(topic)
        await with_policies(
            rig, backlog_quotas={BacklogQuotaType.MESSAGE_AGE: BacklogQuota(-1, 50, action)}
        )
        await published(rig, topic, 0, 0)
        await topic.ledger.roll_ledger()
        await rig.clock.sleep(49)
        await published(rig, topic, 0)
        await rig.producer(topic, cnx, "p", producer_id=8)
        await upkeep.enforce_backlog_quota(topic)
        assert (sub.cursor.backlog_count(), cnx.closed_producers) == (3, [])
        await rig.clock.sleep(2)
        await upkeep.enforce_backlog_quota(topic)
        refusal = REFUSALS.get(action)
        if refusal is None:
            assert (sub.cursor.backlog_count(), cnx.closed_producers) == (1, [])
            await topic.check_producer_allowed(rig.request(cnx, "other"))
            return
        assert (sub.cursor.backlog_count(), cnx.closed_producers) == (3, [8])
        text = f"Cannot create producer on topic with backlog quota exceeded: {topic.name}"
        with pytest.raises(refusal, match=re.escape(text)):
            await topic.check_producer_allowed(rig.request(cnx, "p"))
        await sub.skip_messages(2)
        await topic.check_producer_allowed(rig.request(cnx, "p"))
        await rig.producer(topic, cnx, "p")
        await upkeep.enforce_backlog_quota(topic)
        assert cnx.closed_producers == [8]


async def test_ttl_quotas_and_inactivity_leave_the_subscription_of_compactions_alone(
    rig: Rig,
) -> None:
    topic = await rig.persistent()
    cursor = await topic.open_compaction_cursor()
    await published(rig, topic, 100, 50, 5, 0)
    await topic.ledger.roll_ledger()
    await rig.clock.sleep(100)
    await with_policies(
        rig,
        message_ttl_seconds=10,
        subscription_expiration_minutes=1,
        backlog_quotas=quota(1, BacklogQuotaAction.CONSUMER_BACKLOG_EVICTION),
    )
    await upkeep.expire_messages(topic)
    await upkeep.enforce_backlog_quota(topic)
    await upkeep.delete_expired_subscriptions(topic)
    assert cursor.backlog_count() == 4
    assert cursor.name in topic.subscriptions
    # The backlog of another subscription is evicted, and this one's does not count.
    other = await subscription(topic)
    await upkeep.enforce_backlog_quota(topic)
    assert (other.cursor.backlog_count(), cursor.backlog_count()) == (1, 4)
    await other.clear_backlog()
    await with_policies(
        rig,
        backlog_quotas=quota(1, BacklogQuotaAction.PRODUCER_REQUEST_HOLD),
    )
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx)
    await upkeep.enforce_backlog_quota(topic)
    assert cnx.closed_producers == []
    await producer.close()
    await other.delete()
    rig.clock.jump(101)  # type: ignore[attr-defined]
    for mode in InactiveTopicDeleteMode:
        await with_policies(rig, inactive_topics=InactiveTopicPolicy(mode, 100, True))
        assert upkeep.is_inactive(topic)
