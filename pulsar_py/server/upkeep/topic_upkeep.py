"""Periodic work on one topic: expiry, quotas, inactive subscriptions, snapshots (edge).

Each kind is a function of one topic; `Maintenance` calls them for all topics, and administrators'
requests call some of them. `expiry` and `backlog_quota` decide.

Source: PersistentMessageExpiryMonitor, BacklogQuotaManager, PersistentTopic in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from pulsar_py.common.errors import ManagedLedgerError, PulsarError
from pulsar_py.common.policies import BacklogQuotaType
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import COMPACTION_CURSOR
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.server.limits.backlog_quota import (
    EVICTION_TARGET,
    ExceededQuota,
    blocks_producers,
    entries_to_evict,
    exceeded_quotas,
)
from pulsar_py.server.limits.message_checks import published_millis
from pulsar_py.server.publishing.deduplication import CURSOR_NAME
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.topic import Topic
from pulsar_py.server.topics.topic_state import TopicState
from pulsar_py.server.upkeep import expiry
from pulsar_py.server.upkeep.expiry import TopicUse

logger = logging.getLogger(__name__)


def persistent_subscriptions(topic: PersistentTopic) -> list[PersistentSubscription]:
    """The topic's subscriptions, with their type known to the type checker."""
    return [
        each for each in topic.subscriptions.values() if isinstance(each, PersistentSubscription)
    ]


def _with_quotas(topic: PersistentTopic) -> list[PersistentSubscription]:
    """The subscriptions that quotas and inactivity look at: the compaction's is the broker's."""
    return [each for each in persistent_subscriptions(topic) if each.name != COMPACTION_CURSOR]


async def expire_messages(topic: PersistentTopic) -> None:
    """Acknowledge messages older than the topic's TTL on every subscription."""
    ttl_seconds = topic.settings.message_ttl_seconds
    if ttl_seconds <= 0 or topic.is_system:
        return
    excepted = {COMPACTION_CURSOR, *topic.settings.system_cursor_names}
    for subscription in persistent_subscriptions(topic):
        if subscription.name in excepted or not subscription.is_durable:
            continue
        await expire_subscription(topic, subscription, ttl_seconds)


async def expire_subscription(
    topic: PersistentTopic, subscription: PersistentSubscription, ttl_seconds: int
) -> bool:
    """Acknowledge messages older than the TTL on one subscription; False if there were none.

    Ledgers that were closed longer ago are expired without reading the times of their messages.
    """
    if not await may_have_expired(topic, subscription, ttl_seconds):
        return False
    cursor = subscription.cursor
    now_millis = topic.context.clock.wall_time_millis()
    end = expiry.expired_ledgers_end(
        list(topic.ledger.ledgers_info()), ttl_seconds=ttl_seconds, now_millis=now_millis
    )
    moved = False
    if end is not None and end > cursor.mark_delete_position:
        moved = await _unless_refused(subscription, subscription.expire_up_to(end))
    older = subscription.expire_older_than(ttl_seconds)
    return await _unless_refused(subscription, older) or moved


async def may_have_expired(
    topic: PersistentTopic, subscription: PersistentSubscription, ttl_seconds: int
) -> bool:
    """Whether a search for messages older than the TTL is worth it.

    It is not without a backlog, nor with a small one of connected consumers whose oldest message
    is younger.
    """
    cursor = subscription.cursor
    backlog = cursor.backlog_count()
    if not backlog or not subscription.consumers or backlog >= expiry.CAUGHT_UP_BACKLOG:
        return backlog > 0
    oldest = await _published(topic, topic.ledger.next_valid_position(cursor.mark_delete_position))
    return oldest is not None and expiry.is_message_expired(
        oldest, ttl_seconds=ttl_seconds, now_millis=topic.context.clock.wall_time_millis()
    )


async def _unless_refused(subscription: PersistentSubscription, work: Awaitable[bool]) -> bool:
    """What refuses now, such as a cursor that is being reset, has its turn in the next round."""
    try:
        return await work
    except ManagedLedgerError as error:
        logger.debug(
            "expiry refused",
            extra={
                "topic": subscription.topic_name,
                "subscription": subscription.name,
                "error": str(error),
            },
        )
        return False


async def _published(topic: PersistentTopic, position: Position) -> int | None:
    try:
        return published_millis(await topic.ledger.read_entry(position))
    except PulsarError:
        return None


async def enforce_backlog_quota(topic: PersistentTopic) -> None:
    """Disconnect producers, or evict backlog, if a quota is exceeded; called periodically."""
    settings = topic.settings
    if not settings.is_backlog_quota_checked or topic.is_system:
        return
    backlog = await topic.backlog()
    topic.note_oldest(backlog)
    for exceeded in exceeded_quotas(settings.backlog_quotas, backlog):
        slowest = topic.ledger.slowest_durable_cursor(without=COMPACTION_CURSOR)
        if slowest is None:
            return
        logger.info(
            "backlog quota exceeded",
            extra={"topic": str(topic.name), "quota": exceeded.type.value, "slowest": slowest.name},
        )
        if not blocks_producers(exceeded):
            await _evict(topic, exceeded)
        elif slowest.name == CURSOR_NAME and topic.deduplication is not None:
            topic.deduplication.take_snapshot()
        else:
            topic.disconnect_producers()


async def _evict(topic: PersistentTopic, exceeded: ExceededQuota) -> None:
    if exceeded.type is BacklogQuotaType.DESTINATION_STORAGE:
        await _evict_by_size(topic, exceeded.quota.limit_bytes)
    elif topic.settings.is_age_quota_precise:
        target = int(exceeded.quota.limit_seconds * EVICTION_TARGET)
        for subscription in _with_quotas(topic):
            await _unless_refused(subscription, subscription.expire_older_than(target))
    else:
        await _evict_old_ledgers(topic, exceeded.quota.limit_seconds)


async def _evict_by_size(topic: PersistentTopic, limit_bytes: int) -> None:
    """Skip on the slowest cursor, then on the next slowest, until the backlog fits."""
    skipped: list[ManagedCursor] = []
    while (slowest := topic.ledger.slowest_durable_cursor(without=COMPACTION_CURSOR)) is not None:
        backlog_bytes = topic.ledger.backlog_size_bytes(without=COMPACTION_CURSOR)
        last = topic.ledger.last_confirmed_entry
        count = entries_to_evict(
            backlog_bytes=backlog_bytes,
            limit_bytes=limit_bytes,
            entries_count=topic.ledger.count_entries_between(slowest.mark_delete_position, last),
        )
        if count <= 0 or slowest in skipped:
            return  # entries held back, and acks not written yet, can't be evicted now
        skipped.append(slowest)
        await _skip(topic, slowest, count)


async def _skip(topic: PersistentTopic, cursor: ManagedCursor, count: int) -> None:
    """Skip entries of a cursor; those of a subscription leave its consumers' pending ones."""
    for subscription in persistent_subscriptions(topic):
        if subscription.cursor is cursor:
            await subscription.skip_messages(count, counts_acknowledged=True)
            return
    await cursor.skip(count, counts_acknowledged=True, up_to=topic.max_read_position())


async def _evict_old_ledgers(topic: PersistentTopic, limit_seconds: int) -> None:
    end = expiry.expired_ledgers_end(
        list(topic.ledger.ledgers_info()),
        ttl_seconds=limit_seconds,
        now_millis=topic.context.clock.wall_time_millis(),
    )
    if end is None:
        return
    for subscription in _with_quotas(topic):
        if subscription.cursor.mark_delete_position < end:
            await _unless_refused(subscription, subscription.expire_up_to(end))


async def delete_expired_subscriptions(topic: PersistentTopic) -> None:
    """Delete the subscriptions that were unused for longer than the policy allows."""
    now_millis = topic.context.clock.wall_time_millis()
    for subscription in persistent_subscriptions(topic):
        stats = subscription.stats()
        if expiry.is_subscription_expired(
            name=subscription.name,
            consumers_count=len(subscription.consumers),
            is_replicated=stats.is_replicated,
            last_active_millis=subscription.cursor.last_active_millis,
            expiration_minutes=topic.settings.subscription_expiration_minutes,
            now_millis=now_millis,
        ):
            logger.info(
                "inactive subscription deleted",
                extra={"topic": str(topic.name), "subscription": subscription.name},
            )
            await subscription.delete()


async def compact_if_due(topic: PersistentTopic) -> None:
    """Start a compaction if more than the threshold is not compacted; system topics have none.

    Source: PersistentTopic.checkCompaction in Pulsar's broker.
    """
    threshold_bytes = topic.settings.compaction_threshold_bytes
    compaction = topic.compaction
    if compaction is None or compaction.is_running or not (threshold_bytes > 0 or topic.is_system):
        return
    cursor = topic.ledger.cursors.get(COMPACTION_CURSOR)
    waiting = topic.ledger.size_bytes if cursor is None else cursor.backlog_bytes()
    if waiting > threshold_bytes:
        compaction.begin()


def is_inactive(topic: Topic) -> bool:
    """Whether the topic was unused for so long that it has to be deleted.

    If it is active now, its idle time starts again.
    """
    if topic.state is not TopicState.OPEN or topic.is_system:
        return False
    now = topic.context.clock.monotonic_seconds()
    if _is_used(topic):
        topic.last_active_seconds = now
        return False
    return expiry.is_topic_inactive_for_long(
        idle_seconds=now - topic.last_active_seconds,
        policy=topic.settings.inactive,
        retention_seconds=_retention_seconds(topic),
    )


def seconds_until_deletion(topic: Topic) -> float | None:
    """When an unused topic is deleted if it stays unused; None for one that is kept."""
    if topic.state is not TopicState.OPEN or topic.is_system or _is_used(topic):
        return None
    retention, policy = _retention_seconds(topic), topic.settings.inactive
    if not policy.is_deletion_enabled or retention < 0:
        return None
    idle = topic.context.clock.monotonic_seconds() - topic.last_active_seconds
    return max(policy.max_inactive_seconds, retention) - idle


def _retention_seconds(topic: Topic) -> float:
    is_kept = isinstance(topic, PersistentTopic)
    return topic.settings.managed_ledger.retention_seconds if is_kept else 0.0


def _is_used(topic: Topic) -> bool:
    has_backlog = False
    if isinstance(topic, PersistentTopic):
        has_backlog = any(each.cursor.backlog_count() for each in _with_quotas(topic))
    use = TopicUse(
        clients_count=(
            len(topic.producers) + topic.waiting_producers_count + topic.consumers_count
        ),
        subscriptions_count=len(topic.subscriptions.keys() - {COMPACTION_CURSOR}),
        has_backlog=has_backlog,
    )
    return expiry.is_topic_active(use, topic.settings.inactive.delete_mode)
