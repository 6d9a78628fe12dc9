"""Reads the statistics that other brokers of the cluster answer, ours or Apache Pulsar's (pure).

It is the reverse of `topic_stats_json`, as far as pages show it. What is missing, or has another
form, counts as not said.

Source: TopicStatsImpl and its parts in Pulsar's client API.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pulsar_py.server.publishing.producer_stats import ProducerStats, access_mode_of
from pulsar_py.server.subscriptions.standstill import Cause
from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats
from pulsar_py.server.topics.stats import TopicStats

__all__ = ["topic_stats_of"]

Json = Mapping[str, Any]  # Any: JSON of many shapes

_CAUSES: Final = frozenset(Cause)


def topic_stats_of(document: object) -> TopicStats:
    """The statistics in an answer to GET `{topic}/stats`."""
    stats = _json(document)
    return TopicStats(
        message_in_rate=_number(stats, "msgRateIn"),
        bytes_in_rate=_number(stats, "msgThroughputIn"),
        message_out_rate=_number(stats, "msgRateOut"),
        bytes_out_rate=_number(stats, "msgThroughputOut"),
        messages_in_count=_count(stats, "msgInCounter"),
        bytes_in_count=_count(stats, "bytesInCounter"),
        messages_out_count=_count(stats, "msgOutCounter"),
        bytes_out_count=_count(stats, "bytesOutCounter"),
        average_message_bytes=_number(stats, "averageMsgSize"),
        is_chunked=stats.get("msgChunkPublished") is True,
        storage_bytes=_count(stats, "storageSize"),
        backlog_bytes=_count(stats, "backlogSize"),
        producers=tuple(map(_producer, _list(stats, "publishers"))),
        subscriptions={
            name: _subscription(_json(each))
            for name, each in _json(stats.get("subscriptions")).items()
        },
    )


def _producer(document: object) -> ProducerStats:
    stats = _json(document)
    return ProducerStats(
        producer_id=_count(stats, "producerId"),
        producer_name=_text(stats, "producerName"),
        access_mode=access_mode_of(_text(stats, "accessMode")),
        address=_text(stats, "address"),
        client_version=_text(stats, "clientVersion"),
        connected_since_millis=_millis(stats, "connectedSince"),
        metadata=_texts(stats, "metadata"),
        message_in_rate=_number(stats, "msgRateIn"),
        bytes_in_rate=_number(stats, "msgThroughputIn"),
        chunked_rate=_number(stats, "chunkedMessageRate"),
        average_message_bytes=_number(stats, "averageMsgSize"),
        messages_in_count=0,  # not in the answer, and not shown
        bytes_in_count=0,
        dropped_count=0,
        dropped_rate=_number(stats, "msgDropRate"),
        supports_partial_producer=stats.get("supportsPartialProducer") is True,
    )


def _subscription(stats: Json) -> SubscriptionStats:
    kind = _text(stats, "type")
    return SubscriptionStats(
        subscription_type=None if kind in {"", "None"} else kind,
        is_durable=stats.get("durable") is True or stats.get("isDurable") is True,
        messages_out_count=_count(stats, "msgOutCounter"),
        bytes_out_count=_count(stats, "bytesOutCounter"),
        backlog_entries=_count(stats, "msgBacklog"),
        backlog_no_delayed_entries=_count(stats, "msgBacklogNoDelayed"),
        backlog_bytes=max(_count(stats, "backlogSize"), 0),  # -1: not asked for
        delayed_entries=_count(stats, "msgDelayed"),
        delayed_index_bytes=_count(stats, "delayedMessageIndexSizeInBytes"),
        unacked_messages=_count(stats, "unackedMessages"),
        replay_entries=_count(stats, "msgInReplay"),
        is_blocked_on_unacked_messages=stats.get("blockedSubscriptionOnUnackedMsgs") is True,
        active_consumer_name=_text(stats, "activeConsumerName") or None,
        non_contiguous_deleted_ranges_count=_count(stats, "nonContiguousDeletedMessagesRanges"),
        standstill=tuple(
            Cause(each) for each in _list(stats, "standstill") if each in _CAUSES
        ),  # of our brokers only
        properties=_texts(stats, "subscriptionProperties"),
        consumers=tuple(map(_consumer, _list(stats, "consumers"))),
    )


def _consumer(document: object) -> ConsumerStats:
    stats = _json(document)
    return ConsumerStats(
        consumer_id=0,  # not in the answer, and not shown
        consumer_name=_text(stats, "consumerName"),
        address=_text(stats, "address"),
        client_version=_text(stats, "clientVersion"),
        connected_since_millis=_millis(stats, "connectedSince"),
        metadata=_texts(stats, "metadata"),
        available_permits=_count(stats, "availablePermits"),
        unacked_messages=_count(stats, "unackedMessages"),
        is_blocked_on_unacked_messages=stats.get("blockedConsumerOnUnackedMsgs") is True,
        average_messages_per_entry=_count(stats, "avgMessagesPerEntry"),
        messages_out_count=_count(stats, "msgOutCounter"),
        bytes_out_count=_count(stats, "bytesOutCounter"),
        message_out_rate=_number(stats, "msgRateOut"),
        bytes_out_rate=_number(stats, "msgThroughputOut"),
        redelivered_rate=_number(stats, "msgRateRedeliver"),
        acked_rate=_number(stats, "messageAckRate"),
        chunked_rate=_number(stats, "chunkedMessageRate"),
        last_acked_millis=_count(stats, "lastAckedTimestamp"),
        last_consumed_millis=_count(stats, "lastConsumedTimestamp"),
        last_flow_millis=_count(stats, "lastConsumedFlowTimestamp"),
        first_consumed_millis=_count(stats, "firstMessagesSentTimestamp"),
        first_flow_millis=_count(stats, "firstConsumedFlowTimestamp"),
    )


def _json(value: object) -> dict[str, Any]:  # Any: JSON
    return value if isinstance(value, dict) else {}


def _list(stats: Json, key: str) -> list[Any]:  # Any: JSON
    value = stats.get(key)
    return value if isinstance(value, list) else []


def _text(stats: Json, key: str) -> str:
    value = stats.get(key)
    return value if isinstance(value, str) else ""


def _texts(stats: Json, key: str) -> dict[str, str]:
    return {name: each for name, each in _json(stats.get(key)).items() if isinstance(each, str)}


def _number(stats: Json, key: str) -> float:
    value = stats.get(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else 0.0  # type: ignore[arg-type]  # it is one


def _count(stats: Json, key: str) -> int:
    return int(_number(stats, key))


def _millis(stats: Json, key: str) -> int:
    try:
        return round(datetime.fromisoformat(_text(stats, key)).timestamp() * 1000)
    except ValueError:
        return 0
