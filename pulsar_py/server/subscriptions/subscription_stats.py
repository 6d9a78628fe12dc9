"""Snapshots of consumers and subscriptions, for CONSUMER_STATS_RESPONSE, REST and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from pulsar_py.server.dispatch.dispatch_throttle import ThrottledEvents
from pulsar_py.server.dispatch.draining_hashes import DrainingHash
from pulsar_py.server.dispatch.user_filters import FilterCounts
from pulsar_py.server.subscriptions.standstill import Cause


class ConsumerStats(Struct, frozen=True, kw_only=True):
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
    first_consumed_millis: int = 0
    first_flow_millis: int = 0
    key_hash_ranges: tuple[tuple[int, int], ...] = ()
    draining_hashes: Sequence[DrainingHash] | None = None
    draining_hashes_cleared_total: int = 0

    @property
    def draining_hashes_count(self) -> int:
        """Hashes that drain from the consumer."""
        return len(self.draining_hashes or ())

    @property
    def draining_unacked_messages(self) -> int:
        """Unacknowledged entries of those hashes."""
        return sum(each.unacked_entries_count for each in self.draining_hashes or ())


class SubscriptionStats(Struct, frozen=True, kw_only=True):
    """One subscription at one moment; sums over its consumers are computed from `consumers`."""

    subscription_type: str | None
    is_durable: bool
    messages_out_count: int
    bytes_out_count: int
    backlog_entries: int = 0
    backlog_no_delayed_entries: int = 0
    backlog_bytes: int = 0
    delayed_entries: int = 0
    delayed_index_bytes: int = 0
    unacked_messages: int = 0
    replay_entries: int = 0
    is_blocked_on_unacked_messages: bool = False
    is_replicated: bool = False
    active_consumer_name: str | None = None
    expired_rate: float = 0.0
    expired_count: int = 0
    """Messages that expired since the topic was loaded."""
    dropped_messages_count: int = 0
    dropped_rate: float = 0.0
    last_expired_millis: int = 0
    last_mark_delete_advanced_millis: int = 0
    last_flow_gone_millis: int = 0
    """Of consumers that have left."""
    key_shared_mode: str | None = None
    allow_out_of_order_delivery: bool = False
    non_contiguous_deleted_ranges_count: int = 0
    standstill: tuple[Cause, ...] = ()  # why it does not move
    properties: Mapping[str, str] = field(default_factory=dict)
    filter_counts: FilterCounts = field(default_factory=FilterCounts)
    throttled_events: ThrottledEvents = field(default_factory=ThrottledEvents)
    consumers: tuple[ConsumerStats, ...] = ()

    @property
    def message_out_rate(self) -> float:
        """Messages a second to all consumers."""
        return sum(each.message_out_rate for each in self.consumers)

    @property
    def bytes_out_rate(self) -> float:
        """Bytes a second to all consumers."""
        return sum(each.bytes_out_rate for each in self.consumers)

    @property
    def redelivered_rate(self) -> float:
        """Messages a second that clients gave back for redelivery."""
        return sum(each.redelivered_rate for each in self.consumers)

    @property
    def acked_rate(self) -> float:
        """Messages a second that were acknowledged."""
        return sum(each.acked_rate for each in self.consumers)

    @property
    def chunked_rate(self) -> float:
        """Parts of chunked messages a second to all consumers."""
        return sum(each.chunked_rate for each in self.consumers)

    @property
    def last_consumed_millis(self) -> int:
        """When a connected consumer was last sent a message; 0 for never."""
        return max((each.last_consumed_millis for each in self.consumers), default=0)

    @property
    def last_acked_millis(self) -> int:
        """When a connected consumer last acknowledged; 0 for never."""
        return max((each.last_acked_millis for each in self.consumers), default=0)

    @property
    def last_flow_millis(self) -> int:
        """When a consumer last sent FLOW, connected or not; 0 for never."""
        return max(
            self.last_flow_gone_millis, *(each.last_flow_millis for each in self.consumers), 0
        )
