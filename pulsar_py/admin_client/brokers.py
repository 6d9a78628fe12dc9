"""Calls about brokers, their settings, their statistics, and transactions (declarations).

Source: Brokers, BrokerStats and Transactions in Pulsar's admin API.
"""

from __future__ import annotations

from pulsar_py.admin_client.call import (
    Call,
    Json,
    as_json,
    as_names,
    as_record,
    as_text,
    delete,
    get,
    nothing,
    post,
    seg,
    topic_path,
)
from pulsar_py.admin_client.records import BrokerInfo

_TRANSACTIONS = "/admin/v3/transactions"


def brokers(cluster: str) -> Call[list[str]]:
    """The live brokers of a cluster, as `host:port` of HTTP."""
    return get(f"brokers/{seg(cluster)}", as_names)


def leader_broker() -> Call[BrokerInfo]:
    """The broker that decides who serves which bundle."""
    return get("brokers/leaderBroker", as_record(BrokerInfo))


def owned_namespaces(cluster: str, broker: str) -> Call[Json]:
    """The bundles that a broker serves."""
    return get(f"brokers/{seg(cluster)}/{seg(broker)}/ownedNamespaces", as_json)


def health(topic_version: str | None = None) -> Call[str]:
    """`ok` after a message went through the broker; `topic_version` is `V1` or `V2`."""
    return get("brokers/health", as_text, topicVersion=topic_version)


def drain() -> Call[None]:
    """Have a broker hand over all that it serves; a call of our own."""
    return post("brokers/drain")


def symptoms() -> Call[Json]:
    """What an operator of the broker should look at; a call of our own."""
    return get("brokers/symptoms", as_json)


def load() -> Call[Json]:
    """What the broker knows of its cluster: who serves what, since when and why; our own call."""
    return get("brokers/load", as_json)


def version() -> Call[str]:
    """The version of the broker."""
    return get("brokers/version", as_text)


def dynamic_settings() -> Call[list[str]]:
    """The names of the settings that can be changed at run time."""
    return get("brokers/configuration", as_names)


def changed_settings() -> Call[dict[str, str]]:
    """The settings that were changed at run time."""
    return get("brokers/configuration/values", as_json)


def runtime_settings() -> Call[dict[str, str]]:
    """All settings of the broker as they are now, without secrets."""
    return get("brokers/configuration/runtime", as_json)


def internal_settings() -> Call[dict[str, str]]:
    """Where the cluster keeps metadata and ledgers."""
    return get("brokers/internal-configuration", as_json)


def change_setting(name: str, value: str) -> Call[None]:
    """Change a setting of all brokers at run time."""
    return post(f"brokers/configuration/{seg(name)}/{seg(value)}")


def restore_setting(name: str) -> Call[None]:
    """Go back to what the brokers' files say."""
    return delete(f"brokers/configuration/{seg(name)}")


def check_backlog_quotas() -> Call[None]:
    """Look now whether a backlog is beyond its quota."""
    return get("brokers/backlog-quota-check", nothing)


def shutdown(*, max_concurrent_unload_per_second: int = 0, forced: bool = False) -> Call[None]:
    """End the broker; `forced` closes topics that don't close by themselves."""
    return post(
        "brokers/shutdown",
        maxConcurrentUnloadPerSec=max_concurrent_unload_per_second,
        forcedTerminateTopic=forced,
    )


def metrics() -> Call[Json]:
    """Figures of the broker by dimension."""
    return get("broker-stats/metrics", as_json)


def mbeans() -> Call[Json]:
    """Figures of a Java process."""
    return get("broker-stats/mbeans", as_json)


def topics_of_broker() -> Call[Json]:
    """Statistics of all topics of a broker, by namespace, bundle and domain."""
    return get("broker-stats/topics", as_json)


def allocator_stats(allocator: str) -> Call[Json]:
    """Figures of an allocator of a Java process."""
    return get(f"broker-stats/allocator-stats/{seg(allocator)}", as_json)


def load_report() -> Call[Json]:
    """What the broker tells others about its load."""
    return get("broker-stats/load-report", as_json)


def coordinators() -> Call[Json]:
    """The transaction coordinators, and who serves them."""
    return get(f"{_TRANSACTIONS}/coordinators", as_json)


def coordinator_stats(coordinator_id: int | None = None) -> Call[Json]:
    """Figures of one coordinator, or of all by id."""
    return get(f"{_TRANSACTIONS}/coordinatorStats", as_json, coordinatorId=coordinator_id)


def coordinator_internal_stats(coordinator_id: int, *, metadata: bool = False) -> Call[Json]:
    """The ledgers and cursors of a coordinator's log."""
    path = f"{_TRANSACTIONS}/coordinatorInternalStats/{coordinator_id}"
    return get(path, as_json, metadata=metadata)


def scale_coordinators(replicas: int) -> Call[None]:
    """Have that many coordinators, which may only grow."""
    return post(f"{_TRANSACTIONS}/transactionCoordinator/replicas", replicas)


def transaction_metadata(most: int, least: int) -> Call[Json]:
    """The state of a transaction, and what it touched; its id is `(most, least)`."""
    return get(f"{_TRANSACTIONS}/transactionMetadata/{most}/{least}", as_json)


def slow_transactions(timeout_millis: int, coordinator_id: int | None = None) -> Call[Json]:
    """Transactions that are open for longer, by id."""
    path = f"{_TRANSACTIONS}/slowTransactions/{timeout_millis}"
    return get(path, as_json, coordinatorId=coordinator_id)


def abort_transaction(most: int, least: int) -> Call[None]:
    """Abort a transaction."""
    return post(f"{_TRANSACTIONS}/abortTransaction/{most}/{least}")


def transaction_buffer_stats(
    topic: str, *, low_water_marks: bool = False, segment_stats: bool = False
) -> Call[Json]:
    """Figures of a topic's transactions."""
    return get(
        f"{_TRANSACTIONS}/transactionBufferStats/{_local(topic)}",
        as_json,
        lowWaterMarks=low_water_marks,
        segmentStats=segment_stats,
    )


def transaction_buffer_internal_stats(topic: str, *, metadata: bool = False) -> Call[Json]:
    """The ledgers of a topic's snapshots of transactions."""
    path = f"{_TRANSACTIONS}/transactionBufferInternalStats/{_local(topic)}"
    return get(path, as_json, metadata=metadata)


def transaction_in_buffer(topic: str, most: int, least: int) -> Call[Json]:
    """What one transaction published to a topic."""
    path = f"{_TRANSACTIONS}/transactionInBufferStats/{_local(topic)}/{most}/{least}"
    return get(path, as_json)


def pending_ack_stats(
    topic: str, subscription: str, *, low_water_marks: bool = False
) -> Call[Json]:
    """Figures of a subscription's acknowledgements in transactions."""
    path = f"{_TRANSACTIONS}/pendingAckStats/{_local(topic)}/{seg(subscription)}"
    return get(path, as_json, lowWaterMarks=low_water_marks)


def pending_ack_internal_stats(
    topic: str, subscription: str, *, metadata: bool = False
) -> Call[Json]:
    """The ledgers of a subscription's log of such acknowledgements."""
    path = f"{_TRANSACTIONS}/pendingAckInternalStats/{_local(topic)}/{seg(subscription)}"
    return get(path, as_json, metadata=metadata)


def transaction_in_pending_ack(topic: str, subscription: str, most: int, least: int) -> Call[Json]:
    """What one transaction acknowledged on a subscription."""
    place = f"{_local(topic)}/{seg(subscription)}/{most}/{least}"
    return get(f"{_TRANSACTIONS}/transactionInPendingAckStats/{place}", as_json)


def position_in_pending_ack(
    topic: str, subscription: str, ledger_id: int, entry_id: int, batch_index: int | None = None
) -> Call[Json]:
    """Whether a message is acknowledged in a transaction that is open."""
    place = f"{_local(topic)}/{seg(subscription)}/{ledger_id}/{entry_id}"
    path = f"{_TRANSACTIONS}/positionStatsInPendingAck/{place}"
    return get(path, as_json, batchIndex=batch_index)


def _local(topic: str) -> str:
    """`t/n/name`, encoded: the calls about transactions are of persistent topics."""
    return topic_path(topic).partition("/")[2]
