"""Peers of clusters, and where their clients shall go."""

from __future__ import annotations

from tests.unit.admin.resources.conftest import Admin

CLUSTERS = "/admin/v2/clusters"


async def test_peers_are_other_clusters_that_exist(admin: Admin) -> None:
    path = CLUSTERS + "/standalone/peers"
    assert (await admin.call("GET", path)).body == b""
    await admin.call("PUT", CLUSTERS + "/b", {"serviceUrl": "http://b:80"})
    assert await admin.status("POST", path, ["b"]) == 204
    assert await admin.get(path) == ["b"]
    assert await admin.status("POST", path, ["standalone"]) == 412
    assert await admin.status("POST", path, ["c"]) == 412
    assert await admin.status("POST", path, []) == 204
    assert await admin.get(path) == []
    assert await admin.status("POST", CLUSTERS + "/none/peers", []) == 404
    assert await admin.status("GET", CLUSTERS + "/none/peers") == 404


async def test_a_migration_is_stored_and_shown(admin: Admin) -> None:
    path = CLUSTERS + "/standalone/migrate"
    assert await admin.status("GET", path) == 404
    urls = {"serviceUrl": "http://green:8080"}
    assert await admin.status("POST", path + "?migrated=true", urls) == 200
    assert await admin.get(path) == {
        "migrated": True,
        "migratedClusterUrl": {"serviceUrl": "http://green:8080", "empty": False},
    }
    assert await admin.status("POST", path, {}) == 200
    assert await admin.get(path) == {"migrated": False, "migratedClusterUrl": {"empty": True}}
    assert await admin.status("POST", path) == 400
    assert await admin.status("GET", "/admin/v2/namespaces/public/default") == 200
