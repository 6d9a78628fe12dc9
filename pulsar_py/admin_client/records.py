"""The objects of Pulsar's REST API as values (pure); the fields are Pulsar's, with underscores.

What an object of Apache Pulsar has more, and nobody here reads, is left out when one is read.

Source: the classes of the same names in Pulsar's admin API (`org.apache.pulsar.common.policies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from pulsar_py.admin_client.call import JsonRecord

_NO_PROPERTIES: Final[Mapping[str, str]] = {}


class TenantInfo(JsonRecord):
    """Who may administer a tenant, and where its topics may be."""

    admin_roles: Sequence[str] = ()
    allowed_clusters: Sequence[str] = ()


class ClusterUrl(JsonRecord):
    """Where the topics of a cluster have moved to."""

    service_url: str | None = None
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None


class ClusterData(JsonRecord):
    """The addresses of a cluster, and how other clusters' brokers log in there."""

    service_url: str | None = None
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None
    proxy_service_url: str | None = None
    authentication_plugin: str | None = None
    authentication_parameters: str | None = None
    proxy_protocol: str | None = None
    peer_cluster_names: Sequence[str] | None = None
    broker_client_tls_enabled: bool = False
    tls_allow_insecure_connection: bool = False
    broker_client_tls_enabled_with_key_store: bool = False
    broker_client_tls_trust_store_type: str | None = "JKS"
    broker_client_tls_trust_store: str | None = None
    broker_client_tls_trust_store_password: str | None = None
    broker_client_tls_key_store_type: str | None = "JKS"
    broker_client_tls_key_store: str | None = None
    broker_client_tls_key_store_password: str | None = None
    broker_client_trust_certs_file_path: str | None = None
    broker_client_key_file_path: str | None = None
    broker_client_certificate_file_path: str | None = None
    broker_client_ssl_factory_plugin: str | None = (
        "org.apache.pulsar.common.util.DefaultPulsarSslFactory"
    )
    broker_client_ssl_factory_plugin_params: str | None = None
    listener_name: str | None = None


class RetentionPolicies(JsonRecord):
    """How long and how much of what is acknowledged is kept; -1: without a bound."""

    NAMES: ClassVar[Mapping[str, str]] = {"retention_size_in_mb": "retentionSizeInMB"}

    retention_time_in_minutes: int = 0
    retention_size_in_mb: int = 0


class BacklogQuota(JsonRecord):
    """How large or old a backlog may be, in bytes and seconds (-1: no bound), and what then."""

    limit: int = -1
    """The older name of `limit_size`."""
    limit_size: int = -1
    limit_time: int = -1
    policy: str = "producer_request_hold"


class PersistencePolicies(JsonRecord):
    """How many bookies keep an entry, and how often a cursor is written a second."""

    bookkeeper_ensemble: int = 2
    bookkeeper_write_quorum: int = 2
    bookkeeper_ack_quorum: int = 2
    managed_ledger_max_mark_delete_rate: float = 0.0
    managed_ledger_storage_class_name: str | None = None


class BookieAffinityGroup(JsonRecord):
    """On which bookies the ledgers of a namespace are kept."""

    bookkeeper_affinity_group_primary: str | None = None
    bookkeeper_affinity_group_secondary: str | None = None


class DispatchRate(JsonRecord):
    """How much is sent to consumers in a period; -1: without a bound."""

    dispatch_throttling_rate_in_msg: int = -1
    dispatch_throttling_rate_in_byte: int = -1
    relative_to_publish_rate: bool = False
    rate_period_in_second: int = 1


class PublishRate(JsonRecord):
    """How much is published a second; -1: without a bound."""

    publish_throttling_rate_in_msg: int = -1
    publish_throttling_rate_in_byte: int = -1


class SubscribeRate(JsonRecord):
    """How often a consumer may subscribe in a period; -1: without a bound."""

    subscribe_throttling_rate_per_consumer: int = -1
    rate_period_in_second: int = 30


class AutoTopicCreationOverride(JsonRecord):
    """Whether use creates topics, and which."""

    allow_auto_topic_creation: bool
    topic_type: str | None = None
    """`partitioned` or `non-partitioned`."""
    default_num_partitions: int | None = None


class AutoSubscriptionCreationOverride(JsonRecord):
    """Whether use creates subscriptions."""

    allow_auto_subscription_creation: bool


class DelayedDeliveryPolicies(JsonRecord):
    """Whether messages are delivered later, checked how often, and by how much at most (ms)."""

    tick_time: int = 1000
    active: bool = True
    max_delivery_delay_in_millis: int = 0


class InactiveTopicPolicies(JsonRecord):
    """When a topic that nobody uses is deleted."""

    inactive_topic_delete_mode: str = "delete_when_no_subscriptions"
    max_inactive_duration_seconds: int = 60
    delete_while_inactive: bool = True


class EntryFilterNames(JsonRecord):
    """The filters that entries pass, separated by commas."""

    entry_filter_names: str = ""


class BundlesData(JsonRecord):
    """The ranges of hashes that a namespace's topics are spread over."""

    boundaries: Sequence[str] = ()
    num_bundles: int = 0


class MessageIdData(JsonRecord):
    """Where a message is; -1 for a partition or batch index stands for none."""

    ledger_id: int
    entry_id: int
    partition_index: int = -1
    batch_index: int = -1


class ResetCursorData(JsonRecord):
    """A position to set a subscription to."""

    ledger_id: int
    entry_id: int
    partition_index: int = -1
    batch_index: int = -1
    excluded: bool = False
    """Whether the message at the position is left out."""
    properties: Mapping[str, str] | None = None


LATEST = ResetCursorData(ledger_id=2**63 - 1, entry_id=2**63 - 1)
EARLIEST = ResetCursorData(ledger_id=-1, entry_id=-1)


class PartitionedTopicMetadata(JsonRecord):
    """How many partitions a topic has; 0: it has none."""

    partitions: int = 0
    deleted: bool = False
    properties: Mapping[str, str] | None = None


class LookupData(JsonRecord):
    """The addresses of the broker that serves a topic."""

    broker_url: str = ""
    broker_url_tls: str = ""
    http_url: str | None = None
    http_url_tls: str | None = None
    native_url: str | None = None


class LongRunningStatus(JsonRecord):
    """How a compaction or an offload goes."""

    status: str = "NOT_RUN"
    """`NOT_RUN`, `RUNNING`, `SUCCESS` or `ERROR`."""
    last_error: str = ""


class BrokerInfo(JsonRecord):
    """A broker."""

    service_url: str = ""
    broker_id: str | None = None


class ResourceGroup(JsonRecord):
    """Rates that several namespaces share."""

    publish_rate_in_msgs: int | None = None
    publish_rate_in_bytes: int | None = None
    dispatch_rate_in_msgs: int | None = None
    dispatch_rate_in_bytes: int | None = None


class ResourceQuota(JsonRecord):
    """The expected load of a bundle: rates a second, memory in MB."""

    msg_rate_in: float = 40.0
    msg_rate_out: float = 120.0
    bandwidth_in: float = 100_000.0
    bandwidth_out: float = 300_000.0
    memory: float = 80.0
    dynamic: bool = True


class FailureDomain(JsonRecord):
    """Brokers that fail together."""

    brokers: Sequence[str] | None = None


class NamespaceIsolationData(JsonRecord):
    """Which brokers serve which namespaces; patterns of names."""

    NAMES: ClassVar[Mapping[str, str]] = {
        "auto_failover_policy": "auto_failover_policy",
        "unload_scope": "unload_scope",
    }

    namespaces: Sequence[str] = ()
    primary: Sequence[str] = ()
    secondary: Sequence[str] = ()
    auto_failover_policy: Mapping[str, Any] | None = None  # Any: text, and a map of texts
    unload_scope: str | None = None


class BookieInfo(JsonRecord):
    """Where a bookie stands."""

    rack: str | None = None
    hostname: str | None = None


class SchemaPayload(JsonRecord):
    """A schema as it is uploaded."""

    type: str
    schema: str = ""
    properties: Mapping[str, str] = _NO_PROPERTIES


class SchemaData(JsonRecord):
    """A schema as the registry has it; `data` is its definition as text."""

    version: int = 0
    type: str = "BYTES"
    timestamp: int = 0
    data: str = ""
    properties: Mapping[str, str] = _NO_PROPERTIES


class Compatibility(JsonRecord):
    """Whether a schema may be added, and by which strategy."""

    compatibility: bool = False
    schema_compatibility_strategy: str = ""
