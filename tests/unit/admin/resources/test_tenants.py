"""Tenants: roles and clusters."""

from __future__ import annotations

import pytest

from tests.unit.admin.resources.conftest import Admin

TENANTS = "/admin/v2/tenants"
INFO = {"adminRoles": ["b", "a", "b"], "allowedClusters": ["standalone"]}


async def test_a_tenant_is_created_changed_and_deleted(admin: Admin) -> None:
    path = TENANTS + "/t"
    assert await admin.status("PUT", path, INFO) == 204
    assert await admin.reason("PUT", path, INFO) == (409, "Tenant already exist")
    assert await admin.get(path) == {"adminRoles": ["a", "b"], "allowedClusters": ["standalone"]}
    assert await admin.status("POST", path, {"allowedClusters": ["standalone"]}) == 204
    assert await admin.get(path) == {"allowedClusters": ["standalone"]}
    assert await admin.get(TENANTS) == ["public", "pulsar", "t"]
    assert await admin.status("DELETE", path) == 204
    assert await admin.reason("DELETE", path) == (404, "Tenant doesn't exist")
    assert await admin.reason("GET", path) == (404, "Tenant does not exist")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (..., "TenantInfo is null"),
        ({}, "Clusters cannot be null"),
        ({"allowedClusters": []}, "Clusters cannot be empty or blank"),
        ({"allowedClusters": [" "]}, "Clusters cannot be empty or blank"),
        ({"allowedClusters": ["nowhere"]}, "Clusters do not exist"),
        ({**INFO, "adminRoles": [" a"]}, "AdminRoles contains whitespace in the beginning or end."),
    ],
)
async def test_an_info_has_to_make_sense(admin: Admin, body: object, reason: str) -> None:
    assert await admin.reason("PUT", TENANTS + "/t", body) == (412, reason)


async def test_a_name_has_to_be_valid(admin: Admin) -> None:
    assert await admin.reason("PUT", TENANTS + "/a%21", INFO) == (412, "Tenant name is not valid")


async def test_a_tenant_with_namespaces_stays(admin: Admin) -> None:
    await admin.call("PUT", TENANTS + "/t", INFO)
    await admin.call("PUT", "/admin/v2/namespaces/t/n")
    assert (await admin.reason("DELETE", TENANTS + "/t"))[0] == 409
    assert (await admin.reason("DELETE", TENANTS + "/t?force=true"))[0] == 405


async def test_force_deletes_namespaces_and_topics_where_allowed(admin: Admin) -> None:
    await admin.call("PUT", TENANTS + "/t", INFO)
    await admin.call("PUT", "/admin/v2/namespaces/t/n")
    await admin.call("PUT", "/admin/v2/persistent/t/n/a")
    await admin.call("PUT", "/admin/v2/persistent/t/n/p/partitions", 2)
    config = admin.service.config
    admin.service.config = config.replace(forceDeleteTenantAllowed=True)
    assert (await admin.reason("DELETE", TENANTS + "/t?force=true"))[0] == 405
    admin.service.config = admin.service.config.replace(forceDeleteNamespaceAllowed=True)
    assert await admin.status("DELETE", TENANTS + "/t?force=true") == 204
    assert await admin.status("GET", TENANTS + "/t") == 404


async def test_a_cluster_in_use_can_not_be_taken_away(admin: Admin) -> None:
    await admin.call("PUT", "/admin/v2/clusters/west", {})
    clusters = {"allowedClusters": ["standalone", "west"]}
    await admin.call("PUT", TENANTS + "/t", clusters)
    await admin.call("PUT", "/admin/v2/namespaces/t/n", {"replication_clusters": ["west"]})
    status, reason = await admin.reason("POST", TENANTS + "/t", INFO)
    assert status == 412
    assert "west" in reason
