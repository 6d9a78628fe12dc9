"""Isolation policies and failure domains, which are kept for each cluster."""

from __future__ import annotations

import pytest

from tests.unit.admin.resources.conftest import Admin

CLUSTER = "/admin/v2/clusters/standalone"
POLICIES = CLUSTER + "/namespaceIsolationPolicies"
FAILOVER = {"policy_type": "min_available", "parameters": {"min_limit": 1, "usage_threshold": "80"}}


async def test_a_policy_is_stored_shown_and_removed(admin: Admin) -> None:
    assert (await admin.reason("GET", POLICIES))[0] == 404
    data = {"namespaces": ["a/.*"], "primary": ["b1"], "auto_failover_policy": FAILOVER}
    assert await admin.status("POST", POLICIES + "/p", data) == 204
    stored = (await admin.get(POLICIES))["p"]
    assert stored["auto_failover_policy"]["parameters"] == {
        "min_limit": "1",
        "usage_threshold": "80",
    }
    assert stored == await admin.get(POLICIES + "/p")
    assert stored["secondary"] == []
    assert await admin.status("DELETE", POLICIES + "/p") == 204
    assert await admin.get(POLICIES) == {}
    assert (await admin.reason("GET", POLICIES + "/p"))[0] == 404


async def test_brokers_are_shown_with_what_they_are_meant_for(admin: Admin) -> None:
    (broker,) = await admin.get("/admin/v2/brokers")
    host = broker.partition(":")[0]
    for name, primary, secondary in (("p", "local.*", "x"), ("q", "x", host), ("r", "x", "y")):
        data = {
            "namespaces": [f"{name}/.*"],
            "primary": [primary],
            "secondary": [secondary],
            "auto_failover_policy": FAILOVER,
        }
        assert await admin.status("POST", f"{POLICIES}/{name}", data) == 204
    (found,) = await admin.get(POLICIES + "/brokers")
    is_local = host.startswith("local")
    expected = ["p/.*", "q/.*"] if is_local else ["q/.*"]
    assert (found["namespaceRegex"], found["primary"]) == (expected, is_local)
    assert (await admin.get(POLICIES + "/brokers/x:80"))["primary"] is True
    assert (await admin.get(POLICIES + "/brokers/y:80"))["namespaceRegex"] == ["r/.*"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"primary": []}, "are required"),
        ({"namespaces": None}, "are required"),
        ({"auto_failover_policy": None}, "min_available"),
        ({"auto_failover_policy": {**FAILOVER, "parameters": {"min_limit": "1"}}}, "usage_thres"),
        ({"primary": ["("]}, "regular expression"),
        ({"namespaces": ["(?!a).*"]}, "'(?!a).*' is not a regular expression of RE2"),
    ],
)
async def test_a_policy_that_says_too_little_is_refused(
    admin: Admin, changes: dict[str, object], words: str
) -> None:
    data = {"namespaces": ["a/b"], "primary": ["b"], "auto_failover_policy": FAILOVER, **changes}
    status, reason = await admin.reason("POST", POLICIES + "/p", data)
    assert (status, words in reason) == (400, True)


async def test_a_broker_is_in_one_failure_domain(admin: Admin) -> None:
    domains = CLUSTER + "/failureDomains"
    assert await admin.status("POST", domains + "/a", {"brokers": ["b1", "b2"]}) == 204
    assert await admin.status("POST", domains + "/b", {"brokers": ["b2"]}) == 409
    assert await admin.status("POST", domains + "/a", {"brokers": ["b1"]}) == 204
    assert await admin.status("POST", domains + "/b", {"brokers": ["b2"]}) == 204
    assert await admin.get(domains) == {"a": {"brokers": ["b1"]}, "b": {"brokers": ["b2"]}}
    assert await admin.status("DELETE", domains + "/a") == 200
    assert await admin.status("DELETE", domains + "/a") == 404
    assert await admin.status("GET", domains + "/a") == 404
    assert await admin.get(domains + "/b") == {"brokers": ["b2"]}


async def test_there_has_to_be_such_a_cluster(admin: Admin) -> None:
    missing = CLUSTER.replace("standalone", "none")
    assert await admin.status("POST", missing + "/failureDomains/a", {}) == 412
    assert await admin.status("GET", missing + "/namespaceIsolationPolicies/brokers") == 412
    assert await admin.status("GET", missing + "/namespaceIsolationPolicies") == 404
