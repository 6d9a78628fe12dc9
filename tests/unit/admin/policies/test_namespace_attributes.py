"""Properties and groups of namespaces."""

from __future__ import annotations

from tests.unit.admin.resources.conftest import Admin

N = "/admin/v2/namespaces/public/default"


async def test_properties_are_added_and_removed_one_by_one(admin: Admin) -> None:
    assert await admin.get(N + "/properties") == {}
    await admin.call("PUT", N + "/properties", {"a": "1"})
    assert await admin.status("PUT", N + "/property/b/2%2F3") == 204
    assert await admin.get(N + "/properties") == {"a": "1", "b": "2/3"}
    assert (await admin.call("GET", N + "/property/b")).body == b"2/3"
    assert (await admin.call("DELETE", N + "/property/b")).body == b"2/3"
    assert (await admin.call("DELETE", N + "/property/b")).body == b""
    assert await admin.get(N + "/properties") == {"a": "1"}
    assert await admin.status("DELETE", N + "/properties") == 204
    assert await admin.get(N + "/properties") == {}


async def test_namespaces_of_a_group_are_found(admin: Admin) -> None:
    group = N + "/antiAffinity"
    assert (await admin.call("GET", group)).body == b""
    await admin.call("POST", group, "g")
    assert (await admin.call("GET", group)).body == b"g"
    path = "/admin/v2/namespaces/standalone/antiAffinity/g"
    assert await admin.get(path + "?tenant=public") == ["public/default"]
    assert (await admin.reason("GET", path))[0] == 400
    assert await admin.status("DELETE", group) == 204
    assert await admin.get(path + "?tenant=public") == []
    assert await admin.status("POST", group, "g" * 257) == 412


async def test_a_namespace_joins_a_resource_group_that_is_there(admin: Admin) -> None:
    assert (await admin.reason("POST", N + "/resourcegroup/g"))[0] == 412
    await admin.call("PUT", "/admin/v2/resourcegroups/g", {})
    assert await admin.status("POST", N + "/resourcegroup/g") == 204
    assert await admin.get(N + "/resourcegroup") == "g"
    assert (await admin.reason("DELETE", "/admin/v2/resourcegroups/g"))[0] == 412
    assert await admin.status("DELETE", N + "/resourcegroup") == 204
    assert await admin.status("DELETE", "/admin/v2/resourcegroups/g") == 204


async def test_a_namespace_is_marked_as_migrated(admin: Admin) -> None:
    assert await admin.status("POST", N + "/migration", True) == 204
    assert (await admin.get(N))["migrated"] is True
    missing = N.replace("default", "nowhere")
    assert await admin.status("POST", missing + "/migration", True) == 404
