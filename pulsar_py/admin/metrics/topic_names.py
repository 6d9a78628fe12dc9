"""Names the metrics of topics, subscriptions, consumers and producers, and reads their values.

Each table has names in the order of the values that the function below it returns (pure). Sums are
those that may be added up over the topics of a namespace.

Source: TopicStats, NamespaceStatsAggregator, AggregatedNamespaceStats in Pulsar's broker.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.managed_ledger.log.write_figures import WriteWindow
from pulsar_py.server.compaction.compaction_status import CompactionStats
from pulsar_py.server.publishing.producer_stats import ProducerStats
from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats
from pulsar_py.server.topics.stats import TopicStats

_SIZES: Final = (
    "le_128", "le_512", "le_1_kb", "le_2_kb", "le_4_kb", "le_16_kb", "le_100_kb", "le_1_mb",
    "le_overflow", "count", "sum",
)  # fmt: skip
_LATENCIES: Final = (
    "le_0_5", "le_1", "le_5", "le_10", "le_20", "le_50", "le_100", "le_200", "le_1000",
    "overflow", "count", "sum",
)  # fmt: skip

WRITTEN_NAMES: Final[tuple[str, ...]] = (
    *(f"pulsar_entry_size_{each}" for each in _SIZES),
    *(f"pulsar_storage_write_latency_{each}" for each in _LATENCIES),
    *(f"pulsar_storage_ledger_write_latency_{each}" for each in _LATENCIES),
)
"""What was stored in the last window: a bucket has what the ones before it have not.

Bounds of latencies are milliseconds, their sums microseconds, as Apache Pulsar's.
"""

TOPIC_SUMS: Final = (
    "pulsar_subscriptions_count",
    "pulsar_producers_count",
    "pulsar_consumers_count",
    "pulsar_rate_in",
    "pulsar_rate_out",
    "pulsar_throughput_in",
    "pulsar_throughput_out",
    "pulsar_in_bytes_total",
    "pulsar_in_messages_total",
    "pulsar_msg_backlog",
    "pulsar_storage_size",
    "pulsar_storage_logical_size",
    "pulsar_storage_backlog_size",
    "pulsar_storage_write_rate",
    "pulsar_publish_rate_limit_times",
    "pulsar_delayed_message_index_size_bytes",
    "pulsar_storage_read_rate",
    "pulsar_storage_read_cache_misses_rate",
)
TOPIC_NAMES: Final = (
    *TOPIC_SUMS,
    "pulsar_average_msg_size",
    "pulsar_storage_backlog_quota_limit",
    "pulsar_storage_backlog_quota_limit_time",
    "pulsar_storage_backlog_age_seconds",
)
"""Lines of a topic, as `topic_values` returns them."""


def topic_values(stats: TopicStats, copies_count: int) -> tuple[float, ...]:
    """The values of `TOPIC_NAMES`; of each entry so many copies are stored."""
    subscriptions = stats.subscriptions.values()
    return (
        len(stats.subscriptions),
        len(stats.producers),
        sum([len(each.consumers) for each in subscriptions]),
        stats.message_in_rate,
        stats.message_out_rate,
        stats.bytes_in_rate,
        stats.bytes_out_rate,
        stats.bytes_in_count,
        stats.messages_in_count,
        sum([each.backlog_entries for each in subscriptions]),
        stats.storage_bytes * copies_count,
        stats.storage_bytes,
        stats.backlog_bytes,
        stats.stored_rate,
        stats.publish_limited_count,
        sum([each.delayed_index_bytes for each in subscriptions]),
        stats.read_rate,
        stats.uncached_read_rate,
        stats.average_message_bytes,
        stats.backlog_quota_limit_bytes,
        stats.backlog_quota_limit_seconds,
        stats.oldest_backlog_message_age_seconds,
    )


def written_values(written: WriteWindow) -> tuple[float, ...]:
    """The values of `WRITTEN_NAMES`."""
    return (*written.sizes, *written.latencies, *written.ledger_latencies)


COMPACTION_NAMES: Final = (
    "pulsar_compaction_removed_event_count",
    "pulsar_compaction_succeed_count",
    "pulsar_compaction_failed_count",
    "pulsar_compaction_duration_time_in_mills",
)
"""Lines of a topic that was compacted since it was loaded."""


def compaction_values(stats: CompactionStats) -> tuple[float, ...] | None:
    """The values of `COMPACTION_NAMES`; None where nothing was compacted."""
    if not stats.succeeded_count and not stats.failed_count:
        return None
    counts = (stats.removed_count, stats.succeeded_count, stats.failed_count)
    return (*counts, stats.duration_millis)


SUBSCRIPTION_SUMS: Final = ("pulsar_out_bytes_total", "pulsar_out_messages_total")
"""Counts of subscriptions that a namespace has, too, where topics are not shown."""

SUBSCRIPTION_NAMES: Final = (
    *SUBSCRIPTION_SUMS,
    "pulsar_subscription_back_log",
    "pulsar_subscription_back_log_no_delayed",
    "pulsar_subscription_delayed",
    "pulsar_subscription_in_replay",
    "pulsar_subscription_msg_rate_redeliver",
    "pulsar_subscription_unacked_messages",
    "pulsar_subscription_blocked_on_unacked_messages",
    "pulsar_subscription_msg_rate_out",
    "pulsar_subscription_msg_throughput_out",
    "pulsar_subscription_msg_ack_rate",
    "pulsar_subscription_msg_rate_expired",
    "pulsar_subscription_total_msg_expired",
    "pulsar_subscription_msg_drop_rate",
    "pulsar_subscription_consumers_count",
    "pulsar_subscription_last_expire_timestamp",
    "pulsar_subscription_last_acked_timestamp",
    "pulsar_subscription_last_consumed_flow_timestamp",
    "pulsar_subscription_last_consumed_timestamp",
    "pulsar_subscription_last_mark_delete_advanced_timestamp",
    "pulsar_subscription_filter_processed_msg_count",
    "pulsar_subscription_filter_accepted_msg_count",
    "pulsar_subscription_filter_rejected_msg_count",
    "pulsar_subscription_filter_rescheduled_msg_count",
    "pulsar_subscription_delayed_message_index_size_bytes",
)
"""Lines of a subscription, as `subscription_values` returns them."""


def subscription_values(stats: SubscriptionStats) -> tuple[float, ...]:
    """The values of `SUBSCRIPTION_NAMES`; times in milliseconds since 1970, 0 for never."""
    filters = stats.filter_counts
    return (
        stats.bytes_out_count,
        stats.messages_out_count,
        stats.backlog_entries,
        stats.backlog_no_delayed_entries,
        stats.delayed_entries,
        stats.replay_entries,
        stats.redelivered_rate,
        stats.unacked_messages,
        stats.is_blocked_on_unacked_messages,
        stats.message_out_rate,
        stats.bytes_out_rate,
        stats.acked_rate,
        stats.expired_rate,
        stats.expired_count,
        stats.dropped_rate,
        len(stats.consumers),
        stats.last_expired_millis,
        stats.last_acked_millis,
        stats.last_flow_millis,
        stats.last_consumed_millis,
        stats.last_mark_delete_advanced_millis,
        filters.processed,
        filters.accepted,
        filters.rejected,
        filters.rescheduled,
        stats.delayed_index_bytes,
    )


THROTTLED_NAMES: Final = (
    "pulsar_subscription_dispatch_throttled_msg_events",
    "pulsar_subscription_dispatch_throttled_bytes_events",
)
"""Lines of a subscription that a limit has held, by whose limit it was."""


def throttled_values(stats: SubscriptionStats) -> dict[str, tuple[float, ...]]:
    """The values of `THROTTLED_NAMES` by reason; none where no limit ever held it."""
    events = stats.throttled_events
    found: dict[str, tuple[float, ...]] = {
        "subscription": (events.messages_by_subscription, events.bytes_by_subscription),
        "topic": (events.messages_by_topic, events.bytes_by_topic),
        "broker": (events.messages_by_broker, events.bytes_by_broker),
    }
    return found if any(map(any, found.values())) else {}


CONSUMER_NAMES: Final = (
    "pulsar_consumer_msg_rate_redeliver",
    "pulsar_consumer_unacked_messages",
    "pulsar_consumer_blocked_on_unacked_messages",
    "pulsar_consumer_msg_rate_out",
    "pulsar_consumer_msg_throughput_out",
    "pulsar_consumer_msg_ack_rate",
    "pulsar_consumer_available_permits",
)
"""Lines of a consumer, with `exposeConsumerLevelMetricsInPrometheus`."""


def consumer_values(stats: ConsumerStats) -> tuple[float, ...]:
    """The values of `CONSUMER_NAMES`."""
    return (
        stats.redelivered_rate,
        stats.unacked_messages,
        stats.is_blocked_on_unacked_messages,
        stats.message_out_rate,
        stats.bytes_out_rate,
        stats.acked_rate,
        stats.available_permits,
    )


def joined_values(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    """The values of two consumers that labels don't tell apart: sums, and whether one is blocked.

    Ids are those of connections, so two clients may use the same name and id on a subscription; a
    scraper refuses a page, or drops lines, where labels come twice.
    """
    joined = [a + b for a, b in zip(one, other, strict=True)]
    blocked = CONSUMER_NAMES.index("pulsar_consumer_blocked_on_unacked_messages")
    joined[blocked] = max(one[blocked], other[blocked])
    return tuple(joined)


PRODUCER_NAMES: Final = (
    "pulsar_producer_msg_rate_in",
    "pulsar_producer_msg_throughput_in",
    "pulsar_producer_msg_average_Size",
)
"""Lines of a producer, with `exposeProducerLevelMetricsInPrometheus`."""


def producer_values(stats: ProducerStats) -> tuple[float, ...]:
    """The values of `PRODUCER_NAMES`."""
    return (stats.message_in_rate, stats.bytes_in_rate, stats.average_message_bytes)
