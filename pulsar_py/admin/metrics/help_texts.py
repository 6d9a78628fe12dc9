"""Says what each metric of `/metrics` is, for its `# HELP` line (values).

Metrics that are alike have one text; `help_text` finds it.
"""

from __future__ import annotations

from typing import Final

_OF_TOPICS: Final = {
    "topics_count": "Topics.",
    "subscriptions_count": "Subscriptions.",
    "producers_count": "Connected producers.",
    "consumers_count": "Connected consumers.",
    "rate_in": "Messages published a second.",
    "rate_out": "Messages sent to consumers a second.",
    "throughput_in": "Bytes published a second.",
    "throughput_out": "Bytes sent to consumers a second.",
    "in_bytes_total": "Bytes published since the topic was loaded.",
    "in_messages_total": "Messages published since the topic was loaded.",
    "out_bytes_total": "Bytes sent to consumers since the topic was loaded.",
    "out_messages_total": "Messages sent to consumers since the topic was loaded.",
    "msg_backlog": "Entries that subscriptions have not acknowledged, their sum.",
    "storage_size": "Bytes stored, all copies of them.",
    "storage_logical_size": "Bytes stored, without copies.",
    "storage_backlog_size": "Bytes behind the slowest subscription.",
    "storage_write_rate": "Entries stored a second.",
    "storage_read_rate": "Entries read a second.",
    "storage_read_cache_misses_rate": "Entries read a second that were not in memory.",
    "storage_backlog_quota_limit": "Bytes of backlog that are allowed; -1 without a limit.",
    "storage_backlog_quota_limit_time": "Seconds of backlog that are allowed; -1 without a limit.",
    "storage_backlog_age_seconds": "Age of the oldest message of the backlog; -1 if not known.",
    "publish_rate_limit_times": "How often publishing was held back by a limit.",
    "average_msg_size": "Mean bytes of a message.",
    "delayed_message_index_size_bytes": "Bytes of the index of delayed messages.",
    "compaction_removed_event_count": "Messages that compactions removed.",
    "compaction_succeed_count": "Compactions that came to their end.",
    "compaction_failed_count": "Compactions that failed.",
    "compaction_duration_time_in_mills": "Milliseconds of the last compaction.",
}
"""By the end of the name, after `pulsar_` or `pulsar_broker_`."""

_OF_RECEIVERS: Final = {
    "back_log": "Entries not acknowledged.",
    "back_log_no_delayed": "Entries not acknowledged, without delayed ones.",
    "delayed": "Delayed messages that wait.",
    "in_replay": "Entries that wait to be sent again.",
    "msg_rate_redeliver": "Messages sent again a second.",
    "unacked_messages": "Messages sent and not acknowledged.",
    "blocked_on_unacked_messages": "1 while too many messages are not acknowledged.",
    "msg_rate_out": "Messages sent a second.",
    "msg_throughput_out": "Bytes sent a second.",
    "msg_ack_rate": "Messages acknowledged a second.",
    "msg_rate_expired": "Messages expired a second.",
    "total_msg_expired": "Messages expired since the topic was loaded.",
    "msg_drop_rate": "Messages dropped a second.",
    "consumers_count": "Connected consumers.",
    "last_expire_timestamp": "When messages expired last, in milliseconds since 1970.",
    "last_acked_timestamp": "When one was acknowledged last, in milliseconds since 1970.",
    "last_consumed_flow_timestamp": "When a consumer asked last, in milliseconds since 1970.",
    "last_consumed_timestamp": "When one was sent last, in milliseconds since 1970.",
    "last_mark_delete_advanced_timestamp": "When all up to a later message were acknowledged last, "
    "in milliseconds since 1970.",
    "filter_processed_msg_count": "Messages that entry filters were asked about.",
    "filter_accepted_msg_count": "Messages that entry filters let through.",
    "filter_rejected_msg_count": "Messages that entry filters rejected.",
    "filter_rescheduled_msg_count": "Messages that entry filters put off.",
    "delayed_message_index_size_bytes": "Bytes of the index of delayed messages.",
    "dispatch_throttled_msg_events": "How often a limit on messages held sending back.",
    "dispatch_throttled_bytes_events": "How often a limit on bytes held sending back.",
    "available_permits": "Messages that the consumer has room for.",
    "msg_rate_in": "Messages published a second.",
    "msg_throughput_in": "Bytes published a second.",
    "msg_average_Size": "Mean bytes of a message.",
}
"""By the end of the name, after `pulsar_subscription_`, `pulsar_consumer_`, `pulsar_producer_`."""

_OF_THE_BROKER: Final = {
    "pulsar_version_info": "Version of the broker.",
    "pulsar_ml_count": "Persistent topics that are loaded.",
    "pulsar_ml_cache_used_size": "Bytes in the cache of entries.",
    "pulsar_ml_cache_entries": "Entries in the cache.",
    "pulsar_ml_cache_inserted_entries_total": "Entries put into the cache since the start.",
    "pulsar_ml_cache_evicted_entries_total": "Entries that left the cache since the start.",
    "pulsar_ml_cache_hits_rate": "Entries served from the cache a second.",
    "pulsar_ml_cache_misses_rate": "Reads that the cache could not serve, a second.",
    "pulsar_ml_cache_evictions": "How often the cache was full, in the last window.",
    "pulsar_broker_lookup_pending_requests": "Lookups under way.",
    "pulsar_broker_topic_load_pending_requests": "Loads of topics under way.",
    "pulsar_broker_throttled_connections": "Connections not read now, or whose publishes wait.",
    "pulsar_broker_in_bytes_total": "Bytes published, those to system topics apart.",
    "pulsar_broker_out_bytes_total": "Bytes sent, those that brokers read themselves apart.",
    "pulsar_active_connections": "Open connections.",
    "pulsar_connection_created_total_count": "Connections since the start.",
    "pulsar_connection_create_success_count": "Connections that were let in.",
    "pulsar_connection_create_fail_count": "Connections that were refused.",
    "pulsar_connection_closed_total_count": "Connections that have ended.",
    "pulsar_authentication_success_total": "Callers that proved who they are.",
    "pulsar_authentication_failures_total": "Callers that did not prove who they are.",
    "pulsar_expired_token_total": "Tokens refused since they had expired.",
    "pulsar_expiring_token_minutes": "Minutes that accepted tokens are good for.",
    "process_cpu_seconds_total": "Processor time of the process.",
    "process_open_fds": "Open file descriptors.",
    "process_max_fds": "File descriptors that may be open.",
    "process_resident_memory_bytes": "Memory of the process.",
    "process_virtual_memory_bytes": "Address space of the process.",
    "process_start_time_seconds": "When the process began, in seconds since 1970.",
    "pulsar_py_loop_lag_seconds": "How late the event loop runs what is due.",
    "pulsar_py_refused_topics_total": "Topics not opened since they need what is not there.",
    "pulsar_py_hook_errors_total": "Errors of users' filters and interceptors.",
}

_BY_BEGINNING: Final = {
    "pulsar_entry_size_": "Entries stored in the last window by bytes: up to the bound and above "
    "the one before it; how many, and the sum of the bytes.",
    "pulsar_storage_write_latency_": "Entries stored in the last window by milliseconds from the "
    "request to the end: up to the bound and above the one before it; how many, and the sum of "
    "microseconds.",
    "pulsar_storage_ledger_write_latency_": "As pulsar_storage_write_latency, without the wait for "
    "a ledger.",
    "pulsar_lb_": "Load of the broker in percent, or what it moved and split while it led.",
    "pulsar_py_storage_": "A figure of the embedded store: see its name, and docs/METRICS.md.",
    "pulsar_py_bookkeeper_": "A figure of the store on BookKeeper: see its name.",
    "pulsar_py_zookeeper_": "A figure of the metadata store on ZooKeeper: see its name.",
    "pulsar_py_cursor_": "Ranges of acknowledgements beyond a limit, or not written.",
    "pulsar_py_": "A figure of the broker in its cluster: see its name, and docs/METRICS.md.",
}
"""By the beginning of the name; the longest counts."""


def help_text(name: str) -> str:
    """What a metric is.

    Raises:
        KeyError: There is no text for it.
    """
    if name in _OF_THE_BROKER:
        return _OF_THE_BROKER[name]
    begins = [each for each in _BY_BEGINNING if name.startswith(each)]
    if begins:
        return _BY_BEGINNING[max(begins, key=len)]
    for begin in ("pulsar_subscription_", "pulsar_consumer_", "pulsar_producer_"):
        if name.startswith(begin):
            return _OF_RECEIVERS[name.removeprefix(begin)]
    return _OF_TOPICS[name.removeprefix("pulsar_").removeprefix("broker_")]
