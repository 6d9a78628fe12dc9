"""Converts statistics to the REST API's JSON; while there is much of it, others have turns.

Source: TopicStatsImpl, PersistentTopicInternalStats and their parts in Pulsar's client API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import TopicName
from pulsar_py.ledgers.store import LedgerInfo
from pulsar_py.managed_ledger.log.stats import CursorStats, LedgerStats
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode
from pulsar_py.server.compaction.compaction_status import CompactionStats
from pulsar_py.server.dispatch.draining_hashes import DrainingHash
from pulsar_py.server.publishing.producer_stats import ProducerStats
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats
from pulsar_py.server.topics.stats import TopicStats

Json = dict[str, Any]  # Any: JSON of many shapes


_EPOCH: Final = datetime.fromtimestamp(0, UTC)


def iso_time(millis: int) -> str:
    """Milliseconds since 1970 in the form `2026-01-31T10:15:30.123Z`."""
    text = (_EPOCH + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


PUBLISHER_UNITS: Final = 10
SUBSCRIPTION_UNITS: Final = 30
CONSUMER_UNITS: Final = 20
LEDGER_UNITS: Final = 3
CURSOR_UNITS: Final = 20
"""Units of work that the JSON of each of these is."""

_WITHOUT_OFFLOADING_AND_TRANSACTIONS: Final = {
    "offloadedStorageSize": 0,
    "lastOffloadLedgerId": 0,
    "lastOffloadSuccessTimeStamp": 0,
    "lastOffloadFailureTimeStamp": 0,
    "ongoingTxnCount": 0,
    "abortedTxnCount": 0,
    "committedTxnCount": 0,
}
"""Of a broker that has neither."""


async def topic_stats_json(
    stats: TopicStats,
    turns: Turns,
    *,
    is_persistent: bool,
    is_system: bool = False,
    owner_broker: str,
    with_publishers: bool = True,
    with_consumers: bool = True,
    with_backlog_size: bool = True,
    earliest: Mapping[str, int] = MappingProxyType({}),
) -> Json:
    """The answer to GET `{topic}/stats`.

    `earliest` has by subscription when the oldest message of its backlog was published.
    """
    subscriptions = await _subscriptions_json(
        stats,
        turns,
        is_persistent=is_persistent,
        with_consumers=with_consumers,
        with_backlog_size=with_backlog_size,
        earliest=earliest,
    )
    publishers: list[Json] = []
    for producer in stats.producers if with_publishers else ():
        await turns.take(PUBLISHER_UNITS)
        publishers.append(publisher_json(producer, is_persistent=is_persistent))
    ranges = sum(each["nonContiguousDeletedMessagesRanges"] for each in subscriptions.values())
    index_bytes = sum(each["delayedMessageIndexSizeInBytes"] for each in subscriptions.values())
    index = stats.last_message_index
    return {
        "msgRateIn": float(stats.message_in_rate),
        "msgThroughputIn": float(stats.bytes_in_rate),
        "msgRateOut": float(stats.message_out_rate),
        "msgThroughputOut": float(stats.bytes_out_rate),
        "bytesInCounter": stats.bytes_in_count,
        "msgInCounter": stats.messages_in_count,
        "systemTopicBytesInCounter": stats.bytes_in_count if is_system else 0,
        "bytesOutCounter": stats.bytes_out_count,
        "msgOutCounter": stats.messages_out_count,
        "bytesOutInternalCounter": stats.internal_bytes_out,
        "averageMsgSize": float(stats.average_message_bytes),
        "msgChunkPublished": stats.is_chunked,
        "storageSize": stats.storage_bytes,
        "backlogSize": stats.backlog_bytes,
        "backlogQuotaLimitSize": stats.backlog_quota_limit_bytes,
        "backlogQuotaLimitTime": stats.backlog_quota_limit_seconds,
        "oldestBacklogMessageAgeSeconds": stats.oldest_backlog_message_age_seconds,
        "oldestBacklogMessageSubscriptionName": stats.oldest_backlog_message_subscription,
        "publishRateLimitedTimes": stats.publish_limited_count,
        "earliestMsgPublishTimeInBacklogs": min(
            (each for each in earliest.values() if each), default=0
        ),
        **_WITHOUT_OFFLOADING_AND_TRANSACTIONS,
        "publishers": publishers,
        "waitingPublishers": stats.waiting_producers_count,
        "subscriptions": subscriptions,
        "replication": {},
        "deduplicationStatus": stats.deduplication_status if is_persistent else None,
        "topicEpoch": stats.topic_epoch,
        "nonContiguousDeletedMessagesRanges": ranges,
        "nonContiguousDeletedMessagesRangesSerializedSize": 0,
        "delayedMessageIndexSizeInBytes": index_bytes,
        "compaction": _compaction_json(stats.compaction),
        **({} if index is None else {"lastMessageIndex": index}),
        "ownerBroker": owner_broker,
        "topicCreationTimeStamp": stats.created_millis,
        "lastPublishTimeStamp": stats.last_published_millis,
        "lastPublishTimestamp": stats.last_published_millis,
        "msgDropRate": None if is_persistent else stats.dropped_rate,
    }


async def _subscriptions_json(
    stats: TopicStats,
    turns: Turns,
    *,
    is_persistent: bool,
    with_consumers: bool,
    with_backlog_size: bool,
    earliest: Mapping[str, int],
) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, each in stats.subscriptions.items():
        consumers: list[Json] = []
        for consumer in each.consumers if with_consumers else ():
            await turns.take(CONSUMER_UNITS + len(consumer.key_hash_ranges) // 10)
            consumers.append(consumer_json(consumer))
        await turns.take(SUBSCRIPTION_UNITS)
        found[name] = subscription_json(
            each,
            consumers,
            is_persistent=is_persistent,
            with_backlog_size=with_backlog_size,
            earliest_millis=earliest.get(name, 0),
        )
    return found


def publisher_json(stats: ProducerStats, *, is_persistent: bool) -> Json:
    """One item of `publishers`."""
    return {
        "accessMode": ProducerAccessMode.Name(stats.access_mode),
        "msgRateIn": float(stats.message_in_rate),
        "msgThroughputIn": float(stats.bytes_in_rate),
        "averageMsgSize": float(stats.average_message_bytes),
        "chunkedMessageRate": float(stats.chunked_rate),
        "producerId": stats.producer_id,
        "supportsPartialProducer": stats.supports_partial_producer,
        "producerName": stats.producer_name,
        "address": stats.address,
        "connectedSince": iso_time(stats.connected_since_millis),
        "clientVersion": stats.client_version,
        "metadata": stats.metadata,
        "msgDropRate": None if is_persistent else float(stats.dropped_rate),
    }


def subscription_json(
    stats: SubscriptionStats,
    consumers: list[Json],
    *,
    is_persistent: bool,
    with_backlog_size: bool = True,
    earliest_millis: int = 0,
) -> Json:
    """One value of `subscriptions`; `consumers` are the answer's objects of its consumers."""
    is_durable = is_persistent and stats.is_durable
    throttled = stats.throttled_events
    return {
        "msgRateOut": float(stats.message_out_rate),
        "msgThroughputOut": float(stats.bytes_out_rate),
        "bytesOutCounter": stats.bytes_out_count,
        "msgOutCounter": stats.messages_out_count,
        "msgRateRedeliver": float(stats.redelivered_rate),
        "messageAckRate": float(stats.acked_rate),
        "chunkedMessageRate": float(stats.chunked_rate),
        "msgBacklog": stats.backlog_entries,
        "backlogSize": stats.backlog_bytes if with_backlog_size else -1,
        "earliestMsgPublishTimeInBacklog": earliest_millis,
        "msgBacklogNoDelayed": stats.backlog_no_delayed_entries,
        "blockedSubscriptionOnUnackedMsgs": stats.is_blocked_on_unacked_messages,
        "msgDelayed": stats.delayed_entries,
        "msgInReplay": stats.replay_entries,
        "unackedMessages": stats.unacked_messages,
        "type": stats.subscription_type or "None",
        "activeConsumerName": stats.active_consumer_name,
        "msgRateExpired": float(stats.expired_rate),
        "totalMsgExpired": stats.expired_count,
        "msgExpired": stats.expired_count,
        "lastExpireTimestamp": stats.last_expired_millis,
        "lastConsumedFlowTimestamp": stats.last_flow_millis,
        "lastConsumedTimestamp": stats.last_consumed_millis,
        "lastAckedTimestamp": stats.last_acked_millis,
        "lastMarkDeleteAdvancedTimestamp": stats.last_mark_delete_advanced_millis,
        "consumers": consumers,
        "isDurable": is_durable,
        "durable": is_durable,
        "isReplicated": stats.is_replicated,
        "replicated": stats.is_replicated,
        "allowOutOfOrderDelivery": stats.allow_out_of_order_delivery,
        "keySharedMode": stats.key_shared_mode,
        "consumersAfterMarkDeletePosition": {},
        "drainingHashesCount": sum(each.draining_hashes_count for each in stats.consumers),
        "drainingHashesClearedTotal": sum(
            each.draining_hashes_cleared_total for each in stats.consumers
        ),
        "drainingHashesUnackedMessages": sum(
            each.draining_unacked_messages for each in stats.consumers
        ),
        "nonContiguousDeletedMessagesRanges": stats.non_contiguous_deleted_ranges_count,
        "nonContiguousDeletedMessagesRangesSerializedSize": 0,
        "delayedMessageIndexSizeInBytes": stats.delayed_index_bytes,
        "subscriptionProperties": stats.properties,
        "filterProcessedMsgCount": stats.filter_counts.processed,
        "filterAcceptedMsgCount": stats.filter_counts.accepted,
        "filterRejectedMsgCount": stats.filter_counts.rejected,
        "filterRescheduledMsgCount": stats.filter_counts.rescheduled,
        "dispatchThrottledMsgEventsBySubscriptionLimit": throttled.messages_by_subscription,
        "dispatchThrottledBytesEventsBySubscriptionLimit": throttled.bytes_by_subscription,
        "dispatchThrottledMsgEventsByTopicLimit": throttled.messages_by_topic,
        "dispatchThrottledBytesEventsByTopicLimit": throttled.bytes_by_topic,
        "dispatchThrottledMsgEventsByBrokerLimit": throttled.messages_by_broker,
        "dispatchThrottledBytesEventsByBrokerLimit": throttled.bytes_by_broker,
        "msgDropRate": float(stats.dropped_rate),
        # Not of Apache Pulsar: codes of `Subscriptions.standstill`.
        "standstill": list(stats.standstill),
    }


def standstill_json(name: TopicName, subscription: PersistentSubscription) -> Json:
    """One topic's item of the answer to GET `{subscription}/standstill`."""
    return {
        "topic": str(name),
        "subscription": subscription.name,
        "reasons": [
            {"code": each.cause, "message": each.message, "fields": each.fields}
            for each in subscription.standstill()
        ],
    }


def consumer_json(stats: ConsumerStats) -> Json:
    """One item of `consumers`."""
    ranges = stats.key_hash_ranges
    return {
        "msgRateOut": float(stats.message_out_rate),
        "msgThroughputOut": float(stats.bytes_out_rate),
        "bytesOutCounter": stats.bytes_out_count,
        "msgOutCounter": stats.messages_out_count,
        "msgRateRedeliver": float(stats.redelivered_rate),
        "messageAckRate": float(stats.acked_rate),
        "chunkedMessageRate": float(stats.chunked_rate),
        "consumerName": stats.consumer_name,
        "availablePermits": stats.available_permits,
        "unackedMessages": stats.unacked_messages,
        "avgMessagesPerEntry": stats.average_messages_per_entry,
        "blockedConsumerOnUnackedMsgs": stats.is_blocked_on_unacked_messages,
        "drainingHashesCount": stats.draining_hashes_count,
        "drainingHashesClearedTotal": stats.draining_hashes_cleared_total,
        "drainingHashesUnackedMessages": stats.draining_unacked_messages,
        "drainingHashes": _draining_json(stats.draining_hashes),
        "keyHashRanges": [f"[{low}, {high}]" for low, high in ranges] or None,
        "keyHashRangeArrays": [[low, high] for low, high in ranges] or None,
        "address": stats.address,
        "connectedSince": iso_time(stats.connected_since_millis),
        "clientVersion": stats.client_version,
        "lastAckedTimestamp": stats.last_acked_millis,
        "lastConsumedTimestamp": stats.last_consumed_millis,
        "firstMessagesSentTimestamp": stats.first_consumed_millis,
        "lastConsumedFlowTimestamp": stats.last_flow_millis,
        "firstConsumedFlowTimestamp": stats.first_flow_millis,
        "metadata": stats.metadata,
        "lastAckedTime": iso_time(stats.last_acked_millis),
        "lastConsumedTime": iso_time(stats.last_consumed_millis),
    }


def _draining_json(hashes: Sequence[DrainingHash] | None) -> list[Json] | None:
    if hashes is None:
        return None
    return [
        {
            "hash": each.sticky_hash,
            "unackMsgs": each.unacked_entries_count,
            "blockedAttempts": each.refused_count,
        }
        for each in hashes
    ]


async def internal_stats_json(
    ledger: ManagedLedger[Any],  # Any: the topic's own context
    compaction: CompactionStats,
    schemas: Sequence[LedgerInfo],
    turns: Turns,
    describe: Callable[[int], Awaitable[str]] | None = None,
) -> Json:
    """The answer to GET `{topic}/internalStats` of a persistent topic.

    The open ledger has no entries and no size in it, as in Pulsar; `schemas` are the ledgers of the
    versions of its schema. With `describe` each ledger has
    what the ledger store says about it, too.
    """
    stats = await ledger.internal_stats_in_turns(turns)
    failure = stats.last_ledger_creation_failure_millis
    ledgers: list[Json] = []
    for each in stats.ledgers:
        await turns.take(LEDGER_UNITS)
        ledgers.append(_ledger_json(each))
    if describe is not None:
        for described in ledgers:
            described["metadata"] = await describe(described["ledgerId"])
    schema_ledgers: list[Json] = []
    for info in schemas:
        await turns.take(LEDGER_UNITS)
        schema_ledgers.append(_info_json(info))
    cursors: dict[str, Json] = {}
    for name, cursor in stats.cursors.items():
        await turns.take(CURSOR_UNITS)
        cursors[name] = _cursor_json(ledger, name, cursor)
    return {
        "entriesAddedCounter": stats.entries_added_count,
        "numberOfEntries": stats.entries_count,
        "totalSize": stats.size_bytes,
        "currentLedgerEntries": stats.current_ledger_entries_count,
        "currentLedgerSize": stats.current_ledger_size_bytes,
        "lastLedgerCreatedTimestamp": iso_time(stats.last_ledger_created_millis),
        "lastLedgerCreationFailureTimestamp": iso_time(failure) if failure else None,
        "waitingCursorsCount": stats.waiting_cursors_count,
        "pendingAddEntriesCount": stats.pending_appends_count,
        "lastConfirmedEntry": str(stats.last_confirmed_entry),
        "state": stats.state,
        "ledgers": ledgers,
        "cursors": cursors,
        "schemaLedgers": schema_ledgers,
        "compactedLedger": _compacted_ledger_json(compaction),
        "properties": dict(stats.properties),
    }


def _compaction_json(stats: CompactionStats) -> Json:
    return {
        "lastCompactionRemovedEventCount": stats.removed_messages,
        "lastCompactionSucceedTimestamp": stats.succeeded_millis,
        "lastCompactionFailedTimestamp": stats.failed_millis,
        "lastCompactionDurationTimeInMills": stats.duration_millis,
    }


def _compacted_ledger_json(stats: CompactionStats) -> Json:
    return {
        "ledgerId": -1 if stats.ledger_id is None else stats.ledger_id,
        "entries": stats.ledger_entries_count,
        "size": stats.ledger_bytes,
        "offloaded": False,
        "underReplicated": False,
    }


def _ledger_json(stats: LedgerStats) -> Json:
    return {
        "ledgerId": stats.ledger_id,
        "entries": stats.entries_count if stats.closed_millis else 0,
        "size": stats.size_bytes if stats.closed_millis else 0,
        "offloaded": False,
        "underReplicated": False,
    }


def _info_json(info: LedgerInfo) -> Json:
    return {
        "ledgerId": info.ledger_id,
        "entries": 0 if info.last_entry_id is None else info.last_entry_id + 1,
        "size": info.length_bytes or 0,
        "offloaded": False,
        "underReplicated": False,
    }


def _cursor_json(ledger: ManagedLedger[Any], name: str, stats: CursorStats) -> Json:
    ranges = stats.individually_deleted_messages
    # Pulsar includes the read position in the count, whether or not it has an entry yet.
    since_first_not_acked = ledger.count_entries_between(
        stats.mark_delete_position, stats.read_position
    ) + (stats.read_position > ledger.last_confirmed_entry)
    cursor = ledger.cursors.get(name)
    return {
        "markDeletePosition": str(stats.mark_delete_position),
        "readPosition": str(stats.read_position),
        "waitingReadOp": stats.is_waiting,
        "pendingReadOps": stats.pending_reads_count,
        "messagesConsumedCounter": stats.messages_consumed_count,
        "cursorLedger": stats.cursor_ledger_id,
        "cursorLedgerLastEntry": stats.cursor_ledger_last_entry_id,
        "individuallyDeletedMessages": ranges,
        "lastLedgerSwitchTimestamp": iso_time(stats.last_ledger_switch_millis),
        "state": stats.state,
        "active": cursor is not None and cursor.is_active,
        "numberOfEntriesSinceFirstNotAckedMessage": since_first_not_acked,
        "totalNonContiguousDeletedMessagesRange": ranges.count("]") - 1,
        "subscriptionHavePendingRead": stats.is_waiting or stats.pending_reads_count > 0,
        "subscriptionHavePendingReplayRead": stats.pending_replay_reads_count > 0,
        "properties": dict(stats.properties),
    }


def non_persistent_internal_stats_json(entries_added: int, names: list[str]) -> Json:
    """The answer to GET `{topic}/internalStats` of a non-persistent topic."""
    cursor = {
        "waitingReadOp": False,
        "pendingReadOps": 0,
        "messagesConsumedCounter": 0,
        "cursorLedger": 0,
        "cursorLedgerLastEntry": 0,
        "active": False,
        "numberOfEntriesSinceFirstNotAckedMessage": 0,
        "totalNonContiguousDeletedMessagesRange": 0,
        "subscriptionHavePendingRead": False,
        "subscriptionHavePendingReplayRead": False,
    }
    return {
        "entriesAddedCounter": entries_added,
        "numberOfEntries": 0,
        "totalSize": 0,
        "currentLedgerEntries": 0,
        "currentLedgerSize": 0,
        "waitingCursorsCount": 0,
        "pendingAddEntriesCount": 0,
        "cursors": dict.fromkeys(names, cursor),
    }
