"""Snapshots of consumers and subscriptions, for CONSUMER_STATS_RESPONSE, REST and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStats:
    """One consumer at one moment. Rates are per second since the last `roll_rates`."""

    consumer_id: int
    consumer_name: str
    address: str
    client_version: str
    connected_since_millis: int
    metadata: Mapping[str, str]
    available_permits: int
    unacked_messages: int
    is_blocked_on_unacked_messages: bool
    average_messages_per_entry: int
    messages_out_count: int
    bytes_out_count: int
    message_out_rate: float
    bytes_out_rate: float
    redelivered_rate: float
    acked_rate: float
    chunked_rate: float
    last_acked_millis: int
    last_consumed_millis: int
    last_flow_millis: int
    key_hash_ranges: tuple[tuple[int, int], ...] = ()
    draining_hashes_count: int = 0
    draining_unacked_messages: int = 0
    draining_hashes_cleared_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionStats:
    """One subscription at one moment."""

    subscription_type: str | None
    backlog_entries: int
    backlog_no_delayed_entries: int
    backlog_bytes: int
    delayed_entries: int
    unacked_messages: int
    replay_entries: int
    is_blocked_on_unacked_messages: bool
    is_durable: bool
    is_replicated: bool
    active_consumer_name: str | None
    message_out_rate: float
    bytes_out_rate: float
    redelivered_rate: float
    acked_rate: float
    expired_rate: float
    messages_out_count: int
    bytes_out_count: int
    dropped_messages_count: int
    dropped_rate: float
    last_consumed_millis: int
    last_acked_millis: int
    last_flow_millis: int
    last_expired_millis: int
    last_mark_delete_advanced_millis: int
    key_shared_mode: str | None
    allow_out_of_order_delivery: bool
    non_contiguous_deleted_ranges_count: int
    properties: Mapping[str, str] = field(default_factory=dict)
    consumers: tuple[ConsumerStats, ...] = ()
