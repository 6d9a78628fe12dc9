"""documents: the JSON objects of metadata, as Apache Pulsar writes them."""

from __future__ import annotations

import pytest

from pulsar_py.common.policies import BacklogQuotaType, SchemaCompatibilityStrategy
from pulsar_py.metadata.documents import (
    ClusterData,
    DynamicConfiguration,
    LocalPolicies,
    NamespacePolicies,
    PartitionedTopicMetadata,
    TenantInfo,
    TopicPolicies,
    equal_boundaries,
)

RECORDED_POLICIES = b"""{
  "allowed_clusters": [], "auth_policies": {"destination_auth": {}, "namespace_auth": {"r": ["produce"]},
  "subscription_auth_roles": {}}, "backlog_quota_map": {"destination_storage": {"limit": 1000,
  "limitSize": 1000, "limitTime": 0, "policy": "producer_exception"}}, "bundles": {"boundaries":
  ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"], "numBundles": 4},
  "clusterDispatchRate": {}, "clusterSubscribeRate": {}, "deduplicationEnabled": true,
  "deleted": false, "encryption_required": true, "is_allow_auto_update_schema": false,
  "latency_stats_sample_rate": {}, "max_producers_per_topic": 3, "message_ttl_in_seconds": 7,
  "migrated": false, "offload_threshold": -1, "offload_threshold_in_seconds": -1,
  "persistence": {"bookkeeperAckQuorum": 1, "bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1,
  "managedLedgerMaxMarkDeleteRate": 0.5}, "properties": {"a": "1"}, "publishMaxMessageRate": {},
  "replication_clusters": ["standalone"], "replicatorDispatchRate": {}, "retention_policies":
  {"retentionSizeInMB": 50, "retentionTimeInMinutes": 5}, "schema_compatibility_strategy": "FORWARD",
  "schema_validation_enforced": true, "subscriptionDispatchRate": {}, "subscription_auth_mode":
  "None", "subscription_types_enabled": [], "topicDispatchRate": {}}"""


def test_policies_that_pulsar_wrote_are_read() -> None:
    policies = NamespacePolicies.from_bytes(RECORDED_POLICIES)
    assert policies.boundaries == equal_boundaries(4)
    assert policies.backlog_quotas is not None
    assert policies.backlog_quotas[BacklogQuotaType.DESTINATION_STORAGE].limit_bytes == 1000
    assert policies.is_deduplication_enabled is True
    assert policies.max_producers_per_topic == 3
    assert policies.message_ttl_seconds == 7
    assert policies.persistence is not None
    assert policies.persistence.max_mark_deletes_per_second == 0.5
    assert policies.retention is not None
    assert policies.retention.retention_megabytes == 50
    assert policies.schema_compatibility_strategy is SchemaCompatibilityStrategy.FORWARD
    assert policies.subscription_types == frozenset()
    assert policies.replication_clusters == ("standalone",)
    assert policies.topic_dispatch_rates == {}
    assert policies.inactive_topics is None


def test_policies_that_nobody_here_knows_stay() -> None:
    policies = NamespacePolicies.from_bytes(RECORDED_POLICIES)
    changed = NamespacePolicies.from_bytes(policies.replace(message_ttl_seconds=8).to_bytes())
    assert changed.json["offload_threshold"] == -1
    assert changed.replace(message_ttl_seconds=7) == policies


@pytest.mark.parametrize(
    ("count", "boundaries"),
    [
        (1, (0, 0xFFFFFFFF)),
        (2, (0, 0x80000000, 0xFFFFFFFF)),
        (3, (0, 0x55555555, 0xAAAAAAAA, 0xFFFFFFFF)),
        (4, (0, 0x40000000, 0x80000000, 0xC0000000, 0xFFFFFFFF)),
    ],
)
def test_equal_boundaries(count: int, boundaries: tuple[int, ...]) -> None:
    assert equal_boundaries(count) == boundaries


def test_bundles_are_stored_in_hexadecimal() -> None:
    policies = LocalPolicies(boundaries=equal_boundaries(2))
    assert policies.to_bytes() == (
        b'{"bundles":{"boundaries":["0x00000000","0x80000000","0xffffffff"],"numBundles":2}}'
    )
    assert LocalPolicies.from_bytes(policies.to_bytes()).boundaries == equal_boundaries(2)


def test_the_others_have_pulsars_keys() -> None:
    assert PartitionedTopicMetadata(partitions_count=3).to_bytes() == b'{"partitions":3}'
    assert TenantInfo(admin_roles=("r",), allowed_clusters=("c",)).to_bytes() == (
        b'{"adminRoles":["r"],"allowedClusters":["c"]}'
    )
    assert ClusterData(service_url="http://h:1", broker_service_url="pulsar://h:2").to_bytes() == (
        b'{"serviceUrl":"http://h:1","brokerServiceUrl":"pulsar://h:2"}'
    )
    assert TopicPolicies(message_ttl_seconds=3, max_producers=1).to_bytes() == (
        b'{"messageTTLInSeconds":3,"maxProducerPerTopic":1}'
    )


def test_dynamic_configuration_is_names_and_texts() -> None:
    assert DynamicConfiguration({"maxTenants": "3"}).texts == {"maxTenants": "3"}
