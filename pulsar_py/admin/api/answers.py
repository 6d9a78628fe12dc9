"""Declares the types of REST's answers, for the OpenAPI document; imported when that is made.

Routes name them by text, so that no start of a broker makes their classes. `type_of` finds the type
of a name.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from pulsar_py.admin.api.statistics_answers import (
    ExactAnswer,
    PartitionedInternalStats,
    PartitionedTopicStats,
    TopicInternalStats,
    TopicStats,
)

__all__ = [
    "PartitionedInternalStats",
    "PartitionedTopicStats",
    "TopicInternalStats",
    "TopicStats",
]


class Refusal(ExactAnswer, frozen=True):
    """Why a call was refused."""

    reason: str


class TenantAnswer(ExactAnswer, frozen=True):
    """The admin roles and the allowed clusters of a tenant."""

    allowed_clusters: list[str]
    admin_roles: list[str] | None = None


class ClusterAnswer(Struct, frozen=True, rename="camel"):
    """The addresses of a cluster, and whatever else was stored with them."""

    broker_client_tls_enabled: bool
    tls_allow_insecure_connection: bool
    service_url: str | None = None
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None


class MigratedUrl(ExactAnswer, frozen=True):
    """The URLs of the cluster that clients are redirected to."""

    empty: bool
    service_url: str | None = None
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None


class ClusterMigration(ExactAnswer, frozen=True):
    """Whether the clients of a cluster are redirected to another one, and to which."""

    migrated: bool
    migrated_cluster_url: MigratedUrl


class BrokerIsolation(ExactAnswer, frozen=True):
    """The namespaces that a broker is meant for."""

    broker_name: str
    namespace_regex: list[str]
    primary: bool
    policy_name: str | None = None


class BundlesAnswer(ExactAnswer, frozen=True):
    """Where the bundles of a namespace begin and end."""

    boundaries: list[str]
    num_bundles: int


class NamespacePoliciesAnswer(Struct, frozen=True):
    """All policies of a namespace that are set, and defaults of some."""

    auth_policies: dict[str, Any]
    replication_clusters: list[str]
    bundles: BundlesAnswer
    backlog_quota_map: dict[str, Any]
    deleted: bool


class BookieId(ExactAnswer, frozen=True):
    """One bookie."""

    bookie_id: str


class BookiesAnswer(ExactAnswer, frozen=True):
    """The bookies that can be read from."""

    bookies: list[BookieId]


class OwnedBundle(ExactAnswer, frozen=True, rename=None):
    """The state of a bundle that a broker owns."""

    broker_assignment: str
    is_controlled: bool
    is_active: bool


class OfflineLedger(ExactAnswer, frozen=True):
    """One ledger of a topic, as stored."""

    ledger_id: int
    entries: int
    size: int
    timestamp: int


class OfflineCursor(ExactAnswer, frozen=True):
    """The position and the backlog of a stored cursor."""

    cursor_backlog: int
    cursor_ledger_id: int


class OfflineBacklog(ExactAnswer, frozen=True):
    """What is stored of a topic, and what waits."""

    topic_name: str
    broker_name: str
    storage_size: int
    total_messages: int
    message_backlog: int
    data_ledger_details: list[OfflineLedger]
    cursor_details: dict[str, OfflineCursor]
    stat_generated_at: int


class HashPositions(ExactAnswer, frozen=True):
    """The hashes of a bundle's topics."""

    namespace: str
    bundle: str
    topic_hash_positions: dict[str, int]


class LeaderAnswer(ExactAnswer, frozen=True):
    """The broker that leads."""

    broker_id: str
    service_url: str | None = None


class InternalConfiguration(ExactAnswer, frozen=True):
    """Where metadata and ledgers are."""

    zookeeper_servers: str
    configuration_store_servers: str
    metadata_store_url: str
    configuration_metadata_store_url: str
    ledgers_root_path: str
    bookkeeper_metadata_service_uri: str | None = None


class LookupAnswer(ExactAnswer, frozen=True):
    """The addresses of a topic's broker."""

    broker_url: str | None = None
    broker_url_tls: str | None = None
    http_url: str | None = None
    http_url_tls: str | None = None
    native_url: str | None = None
    broker_url_ssl: str = ""


class PartitionedMetadata(ExactAnswer, frozen=True):
    """The number of partitions of a topic; 0 if it is not partitioned."""

    partitions: int
    deleted: bool
    properties: dict[str, str] | None = None


class MessageIdAnswer(ExactAnswer, frozen=True):
    """Where an entry is stored."""

    ledger_id: int
    entry_id: int
    partition_index: int
    batch_index: int
    batch_size: int


class CompactionProgress(ExactAnswer, frozen=True):
    """The state of the last compaction."""

    status: str
    last_error: str


class OffloadStatus(ExactAnswer, frozen=True):
    """The state of the last offloading."""

    status: str
    last_error: str
    first_unoffloaded_message: MessageIdAnswer


class StandstillReason(ExactAnswer, frozen=True):
    """Why nothing is sent, or acknowledged."""

    code: str
    message: str
    fields: dict[str, Any]


class Standstill(ExactAnswer, frozen=True):
    """Why a subscription of one topic does not move."""

    topic: str
    subscription: str
    reasons: list[StandstillReason]


class SchemaVersionAnswer(ExactAnswer, frozen=True):
    """One version of a schema."""

    version: int
    type: str
    timestamp: int
    data: str
    properties: dict[str, str]


class SchemasAnswer(ExactAnswer, frozen=True):
    """All versions of a schema."""

    get_schema_responses: list[SchemaVersionAnswer]


class SchemaLocation(ExactAnswer, frozen=True):
    """Where a version of a schema is stored."""

    version: int
    ledger_id: int
    entry_id: int


class SchemaMetadata(ExactAnswer, frozen=True):
    """Where the versions of a schema are stored; the newest is `info`."""

    info: SchemaLocation
    index: list[SchemaLocation]


class VersionAnswer(ExactAnswer, frozen=True):
    """The number of a schema's version."""

    version: int


class PostSchemaAnswer(ExactAnswer, frozen=True):
    """The version that a schema was stored as."""

    version: VersionAnswer


class CompatibilityAnswer(ExactAnswer, frozen=True):
    """Whether a schema could be the next version."""

    compatibility: bool
    schema_compatibility_strategy: str


class ResourceUse(ExactAnswer, frozen=True):
    """The usage and the limit of a resource."""

    usage: float
    limit: float


class LoadReport(Struct, frozen=True, rename="camel"):
    """What a broker serves and how busy it is."""

    num_topics: int
    num_bundles: int
    num_consumers: int
    num_producers: int
    msg_throughput_in: float
    msg_throughput_out: float
    msg_rate_in: float
    msg_rate_out: float
    bundles: list[str]
    cpu: ResourceUse
    memory: ResourceUse
    bandwidth_in: ResourceUse
    bandwidth_out: ResourceUse


class MetricGroup(ExactAnswer, frozen=True):
    """Figures that have the same labels."""

    metrics: dict[str, Any]
    dimensions: dict[str, str]


class AllocatorStats(ExactAnswer, frozen=True):
    """What an allocator of memory has given out; there is none here."""

    num_direct_arenas: int
    num_heap_arenas: int
    num_thread_local_caches: int
    normal_cache_size: int
    small_cache_size: int
    direct_arenas: list[Any] = field(default_factory=list)
    heap_arenas: list[Any] = field(default_factory=list)


class SymptomAnswer(ExactAnswer, frozen=True):
    """Something an operator should look at."""

    code: str
    urgency: str
    subject: str
    message: str
    help: str


class BacklogAnalysisAnswer(ExactAnswer, frozen=True):
    """What a scan of a backlog has counted."""

    entries: int
    messages: int
    marker_messages: int
    filter_rejected_entries: int
    filter_accepted_entries: int
    filter_rescheduled_entries: int
    filter_rejected_messages: int
    filter_accepted_messages: int
    filter_rescheduled_messages: int
    aborted: bool
    first_message_id: str | None = None
    last_message_id: str | None = None


class ReadableMessagesAnswer(ExactAnswer, frozen=True):
    """Messages, decoded, and where the next ones begin."""

    messages: list[dict[str, Any]]
    scanned_entries: int
    next: str | None = None


TopicsByNamespace = dict[str, dict[str, dict[str, dict[str, dict[str, Any]]]]]
"""Statistics by namespace, bundle, domain and topic."""


def type_of(answer: Any) -> Any:  # Any: a type, or a text that names one
    """The type that a route declares its answer with."""
    return eval(answer, dict(globals())) if isinstance(answer, str) else answer  # noqa: S307 - ours
