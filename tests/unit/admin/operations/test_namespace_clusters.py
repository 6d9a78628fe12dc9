"""The clusters of a namespace, and what it offloads to."""

from __future__ import annotations

from tests.unit.admin.resources.conftest import Admin

NS = "/admin/v2/namespaces/public/default"


async def test_only_clusters_of_the_tenant_are_taken(admin: Admin) -> None:
    await admin.call("PUT", "/admin/v2/clusters/b", {})
    assert await admin.status("POST", NS + "/replication", ["b"]) == 403
    tenant = {"adminRoles": [], "allowedClusters": ["standalone", "b"]}
    await admin.call("POST", "/admin/v2/tenants/public", tenant)
    assert await admin.status("POST", NS + "/replication", ["b", "standalone"]) == 200
    assert await admin.get(NS + "/replication") == ["b", "standalone"]
    assert await admin.status("POST", NS + "/allowedClusters", ["b"]) == 400
    assert await admin.status("POST", NS + "/replication", ["standalone"]) == 200
    assert await admin.status("POST", NS + "/allowedClusters", ["standalone"]) == 200
    assert await admin.status("POST", NS + "/replication", ["b"]) == 400
    assert await admin.get(NS + "/allowedClusters") == ["standalone"]
    assert await admin.status("POST", NS + "/allowedClusters", ["c"]) == 403
    assert await admin.status("POST", NS + "/allowedClusters") == 400


async def test_thresholds_stand_among_the_offload_policies(admin: Admin) -> None:
    for word, unset, answer in (
        ("offloadThreshold", b"-1", 204),
        ("offloadThresholdInSeconds", b"-1", 200),
        ("offloadDeletionLagMs", b"", 204),
    ):
        path = f"{NS}/{word}"
        assert (await admin.call("GET", path)).body == unset
        assert await admin.status("PUT", path, 42) == answer
        assert await admin.get(path) == 42
        assert await admin.status("PUT", path) == 400
    stored = await admin.get(NS + "/offloadPolicies")
    assert stored["managedLedgerOffloadThresholdInBytes"] == 42
    assert await admin.status("DELETE", NS + "/offloadDeletionLagMs") == 204
    assert (await admin.call("GET", NS + "/offloadDeletionLagMs")).body == b""
    assert await admin.status("DELETE", NS + "/removeOffloadPolicies") == 204
    assert (await admin.call("GET", NS + "/offloadPolicies")).body == b""


async def test_topics_inherit_offload_policies_and_clusters(admin: Admin) -> None:
    topic = "/admin/v2/persistent/public/default/a"
    await admin.call("PUT", topic)
    value = {"managedLedgerOffloadDriver": "filesystem"}
    assert await admin.status("POST", NS + "/offloadPolicies", value) == 204
    assert (await admin.call("GET", topic + "/offloadPolicies")).body == b""
    applied = await admin.get(topic + "/offloadPolicies?applied=true")
    assert applied["fileSystemDriver"] is True
    assert await admin.get(topic + "/replication?applied=true") == ["standalone"]
    assert await admin.status("POST", topic + "/replication", ["standalone", "b"]) == 403
    assert await admin.status("POST", topic + "/replication", ["b"]) == 412
    assert await admin.status("POST", topic + "/replication", ["standalone"]) == 204
    assert await admin.get(topic + "/replication") == ["standalone"]
