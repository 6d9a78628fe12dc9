"""Lists the names that Apache Pulsar's `/metrics` has and ours has not, with reasons (values).

A name stands here or is on the page, never both: a constant in the place of a number that nobody
measures would be read as one.
"""

from __future__ import annotations

from typing import Final

ABSENT: Final[dict[str, str]] = {
    "caffeine_": "there are no caches of that library",
    "jetty_": "HTTP is not served by Jetty",
    "jvm_": "there is no Java virtual machine; see `process_…`",
    "pulsar_web_executor_": "requests are served by the loop, not by threads",
    "pulsar_txn_": "there are no transactions",
    "pulsar_lb_": "a broker without others has no load to balance; one of a cluster has these",
    "pulsar_broker_load_manager_": "choices of brokers for bundles are not timed",
    "pulsar_broker_topic_list_": "connections bound their buffers in their own way",
    "pulsar_resource_group_": "groups are not measured for other brokers",
    "pulsar_ml_cache_pool_": "memory comes from no pools",
    "pulsar_ml_cache_pendingreads_": "reads of the same entries are not joined",
    "pulsar_ml_cache_hits_throughput": "bytes of the cache's hits are not counted; entries are",
    "pulsar_ml_cache_misses_throughput": "what the cache did not have has no known size",
    "pulsar_ml_reads_": "bytes of reads under way are not counted",
    "pulsar_ml_AddEntry": "appends are not timed one by one",
    "pulsar_ml_EntrySizeBuckets": "sizes of entries are not counted one by one",
    "pulsar_ml_Ledger": "appends are not timed one by one",
    "pulsar_ml_MarkDeleteRate": "moves of cursors are not counted",
    "pulsar_ml_NumberOfMessagesInBacklog": "see `pulsar_msg_backlog`",
    "pulsar_ml_ReadEntries": "reads are not counted by topic",
    "pulsar_ml_StoredMessagesSize": "see `pulsar_storage_size`",
    "pulsar_storage_offloaded_size": "nothing is offloaded to other storage",
    "pulsar_storage_backlog_quota_exceeded_evictions_total": "evictions are logged, not counted",
    "pulsar_storage_backlog_quota_check_duration_seconds": "checks of quotas are not timed",
    "pulsar_broker_storage_backlog_quota_exceeded_evictions_total": "evictions are not counted",
    "pulsar_broker_pending_bytes_to_dispatch": "sockets bound what is written; no sum is kept",
    "pulsar_broker_publish_latency": "publishing is not timed one by one",
    "pulsar_broker_lookup": "lookups are not timed or counted, but by "
    "`pulsar_broker_lookup_pending_requests`",
    "pulsar_schema_": "operations on schemas are not timed",
    "pulsar_metadata_store_": "only a metadata store on ZooKeeper is timed: "
    "`pulsar_py_zookeeper_latency_ms`",
    "pulsar_health": "health is not checked by itself; ask `/admin/v2/brokers/health`",
    "pulsar_topic_load_": "loads of topics are not timed",
    "topic_load_failed_": "failed loads of topics are logged, not counted",
}
"""Reasons by the beginning of names."""


def reason_for(name: str) -> str | None:
    """Why a name of Apache Pulsar's is not on the page; None where that is not known."""
    longest = max((each for each in ABSENT if name.startswith(each)), key=len, default=None)
    return None if longest is None else ABSENT[longest]
