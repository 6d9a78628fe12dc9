"""Clusters: names and addresses."""

from __future__ import annotations

import pytest

from tests.unit.admin.resources.conftest import Admin

CLUSTERS = "/admin/v2/clusters"


async def test_a_fresh_broker_has_one_cluster_in_exactly_this_form(admin: Admin) -> None:
    assert (await admin.call("GET", CLUSTERS)).body == b'["standalone"]'


async def test_a_cluster_is_created_changed_and_forgotten(admin: Admin) -> None:
    path = CLUSTERS + "/west"
    assert await admin.status("PUT", path, {"serviceUrl": "http://west:8080"}) == 200
    assert await admin.status("PUT", path, {}) == 409
    assert (await admin.get(path))["serviceUrl"] == "http://west:8080"
    assert await admin.status("POST", path, {"serviceUrl": "http://other:8080"}) == 200
    assert (await admin.get(path))["serviceUrl"] == "http://other:8080"
    assert await admin.get(CLUSTERS) == ["standalone", "west"]
    assert await admin.status("DELETE", path) == 204
    assert await admin.reason("DELETE", path) == (404, "Cluster does not exist")
    assert await admin.reason("POST", path, {}) == (404, "Cluster does not exist")


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("a", ..., 400),
        ("a", None, 400),
        ("bad%20name", {}, 412),
        ("a", {"serviceUrl": "pulsar://a:1"}, 400),
        ("a", {"brokerServiceUrl": "http://a:1"}, 400),
        ("a", {"serviceUrlTls": "http://a:1"}, 400),
        ("a", {"brokerServiceUrlTls": "no url"}, 400),
        ("a", {"serviceUrl": ["a"]}, 400),
        ("a", [1], 400),
    ],
)
async def test_what_makes_no_sense_is_refused(
    admin: Admin, name: str, body: object, status: int
) -> None:
    assert await admin.status("PUT", f"{CLUSTERS}/{name}", body) == status


async def test_a_cluster_is_deleted_with_what_is_kept_for_it(admin: Admin) -> None:
    await admin.call("PUT", CLUSTERS + "/other", {})
    await admin.call("POST", CLUSTERS + "/other/failureDomains/d", {"brokers": ["b"]})
    assert await admin.status("DELETE", CLUSTERS + "/other") == 204
    await admin.call("PUT", CLUSTERS + "/other", {})
    assert await admin.get(CLUSTERS + "/other/failureDomains") == {}
