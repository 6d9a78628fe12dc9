"""Declares the types of REST's statistics, for the OpenAPI document; handlers do not use them.

They are exact: a field that is not here may not be in an answer, and one without a default has to.
`answers` is where routes name them.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, defstruct
from msgspec.structs import fields


class ExactAnswer(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An object with these fields and no others."""


class CompactionAnswer(ExactAnswer, frozen=True):
    """What the last compaction did."""

    last_compaction_removed_event_count: int
    last_compaction_succeed_timestamp: int
    last_compaction_failed_timestamp: int
    last_compaction_duration_time_in_mills: int


class SentMessages(ExactAnswer, frozen=True):
    """What a consumer was sent, or all consumers of a subscription were."""

    msg_rate_out: float
    msg_throughput_out: float
    bytes_out_counter: int
    msg_out_counter: int
    msg_rate_redeliver: float
    message_ack_rate: float
    chunked_message_rate: float


class DrainingHashAnswer(ExactAnswer, frozen=True):
    """Keys that wait for another consumer's acknowledgements."""

    hash: int
    unack_msgs: int
    blocked_attempts: int


class ConsumerStatsAnswer(SentMessages, frozen=True):
    """One of `consumers`."""

    available_permits: int
    unacked_messages: int
    blocked_consumer_on_unacked_msgs: bool
    draining_hashes_count: int
    draining_hashes_cleared_total: int
    draining_hashes_unacked_messages: int
    connected_since: str
    last_acked_timestamp: int
    last_consumed_timestamp: int
    first_messages_sent_timestamp: int
    last_consumed_flow_timestamp: int
    first_consumed_flow_timestamp: int
    metadata: dict[str, str]
    last_acked_time: str
    last_consumed_time: str
    consumer_name: str | None = None
    avg_messages_per_entry: int | None = None
    draining_hashes: list[DrainingHashAnswer] | None = None
    key_hash_ranges: list[str] | None = None
    key_hash_range_arrays: list[list[int]] | None = None
    address: str | None = None
    client_version: str | None = None


class PublisherStats(ExactAnswer, frozen=True):
    """One of `publishers`."""

    access_mode: str
    msg_rate_in: float
    msg_throughput_in: float
    average_msg_size: float
    chunked_message_rate: float
    producer_id: int
    supports_partial_producer: bool
    connected_since: str
    metadata: dict[str, str]
    producer_name: str | None = None
    address: str | None = None
    client_version: str | None = None
    msg_drop_rate: float | None = None


class SubscriptionStatsAnswer(SentMessages, frozen=True):
    """One of `subscriptions`."""

    msg_backlog: int
    backlog_size: int
    earliest_msg_publish_time_in_backlog: int
    msg_backlog_no_delayed: int
    blocked_subscription_on_unacked_msgs: bool
    msg_delayed: int
    msg_in_replay: int
    unacked_messages: int
    type: str
    msg_rate_expired: float
    total_msg_expired: int
    msg_expired: int
    last_expire_timestamp: int
    last_consumed_flow_timestamp: int
    last_consumed_timestamp: int
    last_acked_timestamp: int
    last_mark_delete_advanced_timestamp: int
    consumers: list[ConsumerStatsAnswer]
    is_durable: bool
    durable: bool
    is_replicated: bool
    replicated: bool
    allow_out_of_order_delivery: bool
    consumers_after_mark_delete_position: dict[str, str]
    draining_hashes_count: int
    draining_hashes_cleared_total: int
    draining_hashes_unacked_messages: int
    non_contiguous_deleted_messages_ranges: int
    non_contiguous_deleted_messages_ranges_serialized_size: int
    delayed_message_index_size_in_bytes: int
    subscription_properties: dict[str, str]
    filter_processed_msg_count: int
    filter_accepted_msg_count: int
    filter_rejected_msg_count: int
    filter_rescheduled_msg_count: int
    dispatch_throttled_msg_events_by_subscription_limit: int
    dispatch_throttled_bytes_events_by_subscription_limit: int
    dispatch_throttled_msg_events_by_topic_limit: int
    dispatch_throttled_bytes_events_by_topic_limit: int
    dispatch_throttled_msg_events_by_broker_limit: int
    dispatch_throttled_bytes_events_by_broker_limit: int
    standstill: list[str]
    active_consumer_name: str | None = None
    key_shared_mode: str | None = None
    msg_drop_rate: float | None = None


class TopicStats(ExactAnswer, frozen=True):
    """The statistics of a topic without partitions, or of one partition."""

    msg_rate_in: float
    msg_throughput_in: float
    msg_rate_out: float
    msg_throughput_out: float
    bytes_in_counter: int
    msg_in_counter: int
    system_topic_bytes_in_counter: int
    bytes_out_counter: int
    msg_out_counter: int
    bytes_out_internal_counter: int
    average_msg_size: float
    msg_chunk_published: bool
    storage_size: int
    backlog_size: int
    backlog_quota_limit_size: int
    backlog_quota_limit_time: int
    oldest_backlog_message_age_seconds: int
    publish_rate_limited_times: int
    earliest_msg_publish_time_in_backlogs: int
    offloaded_storage_size: int
    last_offload_ledger_id: int
    last_offload_success_time_stamp: int
    last_offload_failure_time_stamp: int
    ongoing_txn_count: int
    aborted_txn_count: int
    committed_txn_count: int
    publishers: list[PublisherStats]
    waiting_publishers: int
    subscriptions: dict[str, SubscriptionStatsAnswer]
    replication: dict[str, Any]
    non_contiguous_deleted_messages_ranges: int
    non_contiguous_deleted_messages_ranges_serialized_size: int
    delayed_message_index_size_in_bytes: int
    compaction: CompactionAnswer
    topic_creation_time_stamp: int
    last_publish_time_stamp: int
    last_publish_timestamp: int
    oldest_backlog_message_subscription_name: str | None = None
    deduplication_status: str | None = None
    owner_broker: str | None = None
    msg_drop_rate: float | None = None
    last_message_index: int | None = None
    topic_epoch: int | None = None


class LedgerAnswer(ExactAnswer, frozen=True):
    """One of `ledgers`."""

    ledger_id: int
    entries: int
    size: int
    offloaded: bool
    under_replicated: bool
    metadata: str | None = None


class CursorAnswer(ExactAnswer, frozen=True):
    """One of `cursors`; of a topic that is not persistent most is left out."""

    waiting_read_op: bool
    pending_read_ops: int
    messages_consumed_counter: int
    cursor_ledger: int
    cursor_ledger_last_entry: int
    active: bool
    number_of_entries_since_first_not_acked_message: int
    total_non_contiguous_deleted_messages_range: int
    subscription_have_pending_read: bool
    subscription_have_pending_replay_read: bool
    mark_delete_position: str | None = None
    read_position: str | None = None
    individually_deleted_messages: str | None = None
    last_ledger_switch_timestamp: str | None = None
    state: str | None = None
    properties: dict[str, Any] | None = None


class TopicInternalStats(ExactAnswer, frozen=True):
    """Ledgers and cursors of a topic; one that is not persistent has no ledgers."""

    entries_added_counter: int
    number_of_entries: int
    total_size: int
    current_ledger_entries: int
    current_ledger_size: int
    waiting_cursors_count: int
    pending_add_entries_count: int
    cursors: dict[str, CursorAnswer]
    last_ledger_created_timestamp: str | None = None
    last_ledger_creation_failure_timestamp: str | None = None
    last_confirmed_entry: str | None = None
    state: str | None = None
    ledgers: list[LedgerAnswer] | None = None
    schema_ledgers: list[LedgerAnswer] | None = None
    compacted_ledger: LedgerAnswer | None = None
    properties: dict[str, str] | None = None


class PartitionCount(ExactAnswer, frozen=True):
    """The partitions of the topic that statistics are of."""

    partitions: int
    deleted: bool


class PartitionedInternalStats(ExactAnswer, frozen=True):
    """The internal statistics of a partitioned topic, each partition by its name."""

    metadata: PartitionCount
    partitions: dict[str, TopicInternalStats]


PartitionedTopicStats = defstruct(
    "PartitionedTopicStats",
    [
        ("metadata", PartitionCount),
        ("partitions", dict[str, TopicStats]),
        *((each.name, each.type | None, None) for each in fields(TopicStats)),
    ],
    bases=(ExactAnswer,),
    namespace={"__doc__": "The sum of a partitioned topic: without loaded partitions none."},
    module=__name__,
    frozen=True,
)
