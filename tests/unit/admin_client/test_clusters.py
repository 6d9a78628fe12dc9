"""Calls about clusters and tenants are those of pulsar-admin."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin_client import clusters
from pulsar_py.admin_client.call import Call
from pulsar_py.admin_client.records import (
    BookieInfo,
    ClusterData,
    ClusterUrl,
    FailureDomain,
    NamespaceIsolationData,
    ResourceGroup,
    ResourceQuota,
    TenantInfo,
)
from tests.unit.admin_client.recorded_calls import BUNDLE, NAMESPACE, was_recorded

TENANT = TenantInfo(admin_roles=["r1", "r2"], allowed_clusters=["c1"])
URLS = ClusterUrl(
    service_url="http://s:8080",
    service_url_tls="https://s:8443",
    broker_service_url="pulsar://s:6650",
    broker_service_url_tls="pulsar+ssl://s:6651",
)
QUOTA = ResourceQuota(
    msg_rate_in=8.0,
    msg_rate_out=8.0,
    bandwidth_in=8.0,
    bandwidth_out=8.0,
    memory=8.0,
    dynamic=False,
)
DYNAMIC = ResourceQuota(
    msg_rate_in=8.0, msg_rate_out=8.0, bandwidth_in=8.0, bandwidth_out=8.0, memory=8.0
)
RATES = ResourceGroup(
    publish_rate_in_msgs=7,
    publish_rate_in_bytes=9,
    dispatch_rate_in_msgs=7,
    dispatch_rate_in_bytes=9,
)
ISOLATION = NamespaceIsolationData(
    namespaces=["t/n"],
    primary=["b1"],
    secondary=["b2"],
    auto_failover_policy={
        "policy_type": "min_available",
        "parameters": {"min_limit": "1", "usage_threshold": "80"},
    },
    unload_scope="all_matching",
)
CALLS: list[Call[Any]] = [
    clusters.tenants(),
    clusters.tenant("t"),
    clusters.create_tenant("t", TENANT),
    clusters.update_tenant("t", TENANT),
    clusters.delete_tenant("t"),
    clusters.delete_tenant("t", force=True),
    clusters.clusters(),
    clusters.cluster("c1"),
    clusters.create_cluster("c1", ClusterData()),
    clusters.update_cluster("c1", ClusterData()),
    clusters.delete_cluster("c1"),
    clusters.peer_clusters("c1"),
    clusters.set_peer_clusters("c1", ["c2", "c3"]),
    clusters.migration("c1"),
    clusters.set_migration("c1", URLS, migrated=True),
    clusters.failure_domains("c1"),
    clusters.failure_domain("c1", "dom"),
    clusters.set_failure_domain("c1", "dom", FailureDomain(brokers=["b1", "b2"])),
    clusters.delete_failure_domain("c1", "dom"),
    clusters.isolation_policies("c1"),
    clusters.isolation_policy("c1", "pol"),
    clusters.set_isolation_policy("c1", "pol", ISOLATION),
    clusters.delete_isolation_policy("c1", "pol"),
    clusters.isolated_brokers("c1"),
    clusters.isolated_broker("c1", "b1"),
    clusters.resource_groups(),
    clusters.resource_group("rg"),
    clusters.set_resource_group("rg", RATES),
    clusters.delete_resource_group("rg"),
    clusters.default_quota(),
    clusters.set_default_quota(QUOTA),
    clusters.bundle_quota(NAMESPACE, BUNDLE),
    clusters.set_bundle_quota(NAMESPACE, BUNDLE, DYNAMIC),
    clusters.reset_bundle_quota(NAMESPACE, BUNDLE),
    clusters.bookies(),
    clusters.bookie_racks(),
    clusters.bookie_rack("bk:3181"),
    clusters.set_bookie_rack("bk:3181", BookieInfo(rack="/r", hostname="h"), group="g1"),
    clusters.delete_bookie_rack("bk:3181"),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_pulsar_admin_sends_the_same(call: Call[Any]) -> None:
    assert was_recorded(call)
