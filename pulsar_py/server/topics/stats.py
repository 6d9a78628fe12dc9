"""Snapshots of topics, for REST and metrics.

They have Python's names; `admin` translates them to those of REST. Rates are per second over the
last window (60 s), counts since the topic was loaded, times in milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from pulsar_py.managed_ledger.log.write_figures import NOTHING_WRITTEN, WriteWindow
from pulsar_py.server.compaction.compaction_status import CompactionStats
from pulsar_py.server.publishing.producer_stats import ProducerStats
from pulsar_py.server.subscriptions.subscription_stats import SubscriptionStats

SYSTEM_READER_PREFIX: Final = "__system_reader"
"""Begins the names of the subscriptions by which Apache Pulsar's brokers read system topics."""


class TopicStats(Struct, frozen=True, kw_only=True):
    """One topic at one moment. -1 means unknown or no limit, None absent."""

    message_in_rate: float
    bytes_in_rate: float
    message_out_rate: float
    bytes_out_rate: float
    messages_in_count: int
    bytes_in_count: int
    messages_out_count: int
    bytes_out_count: int
    average_message_bytes: float
    is_chunked: bool
    storage_bytes: int = 0
    stored_rate: float = 0.0
    """Entries stored a second."""
    read_rate: float = 0.0
    """Entries read a second, from memory or from storage."""
    uncached_read_rate: float = 0.0
    """Of these, the ones that were not in memory."""
    written: WriteWindow = NOTHING_WRITTEN
    """Sizes and latencies of the entries that were stored in the last window."""
    publish_limited_count: int = 0
    """How often publishing was held back by a limit on its rate."""
    backlog_bytes: int = 0
    backlog_quota_limit_bytes: int = -1
    backlog_quota_limit_seconds: int = -1
    oldest_backlog_message_age_seconds: int = -1  # as of the last check of quotas
    oldest_backlog_message_subscription: str | None = None
    deduplication_status: str = "Disabled"
    topic_epoch: int | None = None
    waiting_producers_count: int = 0
    created_millis: int = 0
    last_published_millis: int = 0
    dropped_rate: float = 0.0
    last_message_index: int | None = None  # -1 before the first; None where none is kept
    producers: tuple[ProducerStats, ...] = ()
    compaction: CompactionStats = field(default_factory=CompactionStats)
    subscriptions: Mapping[str, SubscriptionStats] = field(default_factory=dict)

    @property
    def internal_bytes_out(self) -> int:
        """What brokers have read themselves, of a cluster's system topics."""
        return sum(
            each.bytes_out_count
            for name, each in self.subscriptions.items()
            if name.startswith(SYSTEM_READER_PREFIX)
        )
