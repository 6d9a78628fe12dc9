"""Permissions of namespaces, topics and subscriptions."""

from __future__ import annotations

import pytest

from pulsar_py.standalone import Broker
from tests.unit.admin.resources.conftest import Admin

NAMESPACE = "/admin/v2/namespaces/public/default"
TOPIC = "/admin/v2/persistent/public/default/t"


async def test_a_namespaces_are_set_and_taken(admin: Admin) -> None:
    path = NAMESPACE + "/permissions"
    assert await admin.get(path) == {}
    assert await admin.status("POST", path + "/me", ["consume", "produce", "consume"]) == 204
    assert await admin.get(path) == {"me": ["produce", "consume"]}
    assert await admin.status("POST", path + "/me", ["consume"]) == 204
    assert await admin.get(path) == {"me": ["consume"]}
    for _ in range(2):
        assert await admin.status("DELETE", path + "/me") == 204
    assert await admin.get(path) == {}


@pytest.mark.parametrize(
    ("body", "status"), [(["fly"], 400), (..., 400), ("produce", 400), ([], 204)]
)
async def test_actions_that_do_not_exist(admin: Admin, body: object, status: int) -> None:
    assert await admin.status("POST", NAMESPACE + "/permissions/me", body) == status


async def test_a_topics_are_its_own_and_the_namespaces(admin: Admin) -> None:
    await admin.status("PUT", TOPIC + "/partitions", 2)
    await admin.status("POST", NAMESPACE + "/permissions/me", ["consume"])
    assert await admin.status("POST", TOPIC + "/permissions/me", ["produce"]) == 204
    assert await admin.get(TOPIC + "/permissions") == {"me": ["consume", "produce"]}
    assert await admin.get(TOPIC + "-partition-1/permissions") == {"me": ["consume", "produce"]}
    assert await admin.status("DELETE", TOPIC + "/permissions/me") == 204
    assert await admin.get(TOPIC + "/permissions") == {"me": ["consume"]}


async def test_a_topic_that_is_not_there(admin: Admin) -> None:
    assert (await admin.reason("GET", TOPIC + "/permissions"))[0] == 404


@pytest.mark.setting("allowAclChangesOnNonExistentTopics")
@pytest.mark.parametrize("is_allowed", [False, True])
async def test_a_topics_may_come_before_it(*, is_allowed: bool) -> None:
    async with Broker(config={"allowAclChangesOnNonExistentTopics": is_allowed}) as broker:
        admin = Admin(broker.service)
        granted = await admin.status("POST", TOPIC + "/permissions/me", ["produce"])
        assert granted == (204 if is_allowed else 404)
        if is_allowed:
            assert await admin.get(TOPIC + "/permissions") == {"me": ["produce"]}
            assert await admin.status("DELETE", TOPIC + "/permissions/me") == 204
            assert await admin.get(TOPIC + "/permissions") == {}


async def test_roles_of_subscriptions(admin: Admin) -> None:
    path = NAMESPACE + "/permissions"
    assert await admin.status("POST", path + "/subscription/s", ["a"]) == 204
    assert await admin.status("POST", path + "/subscription/s", ["b"]) == 204
    assert await admin.get(path + "/subscription") == {"s": ["a", "b"]}
    await admin.status("DELETE", path + "/s/a")
    assert await admin.get(path + "/subscription") == {"s": ["b"]}
    await admin.status("DELETE", path + "/s/b")
    assert await admin.get(path + "/subscription") == {}


async def test_how_names_of_subscriptions_have_to_begin(admin: Admin) -> None:
    path = NAMESPACE + "/subscriptionAuthMode"
    assert await admin.get(path) == "None"
    assert await admin.status("POST", path, "Prefix") == 204
    assert await admin.get(path) == "Prefix"
    assert await admin.status("POST", path, "Suffix") == 204
    assert await admin.get(path) == "None"


async def test_roles_are_granted_and_revoked_on_several_topics(admin: Admin) -> None:
    base = "/admin/v2/persistent/public/default"
    await admin.call("PUT", base + "/a")
    await admin.call("PUT", base + "/p/partitions", 1)
    body = [
        {"topic": f"persistent://public/default/{name}", "role": "r", "actions": ["produce"]}
        for name in ("a", "p")
    ]
    namespaces = "/admin/v2/namespaces"
    missing = {"topic": "persistent://public/none/a", "role": "r", "actions": []}
    path = namespaces + "/grantPermissionsOnTopics"
    assert await admin.status("POST", path, [*body, missing]) == 404
    assert await admin.get(base + "/a/permissions") == {}
    assert await admin.status("POST", path, body) == 204
    for name in ("a", "p", "p-partition-0"):
        assert await admin.get(f"{base}/{name}/permissions") == {"r": ["produce"]}
    assert await admin.status("POST", namespaces + "/revokePermissionsOnTopics", body) == 204
    assert await admin.get(base + "/p-partition-0/permissions") == {}
    for wrong in ({}, None, [{"topic": "a", "actions": []}], [1]):
        assert (await admin.status("POST", path, wrong)) in {400, 412}
