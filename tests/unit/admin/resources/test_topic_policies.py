"""Policies of topics."""

from __future__ import annotations

import pytest

from tests.unit.admin.resources.conftest import Admin

P = "/admin/v2/persistent/public/default"


async def test_the_largest_message_is_set_shown_and_unset(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    path = P + "/a/maxMessageSize"
    assert await admin.status("GET", path) == 204
    assert await admin.status("POST", path, 100) == 204
    assert await admin.get(path) == 100
    assert await admin.status("DELETE", path) == 204
    assert await admin.status("GET", path) == 204


async def test_a_policy_of_a_partitioned_topic_is_set_on_its_name(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    assert await admin.status("POST", P + "/p/maxMessageSize", 100) == 204
    assert (await admin.reason("POST", P + "/p-partition-0/maxMessageSize", 100))[0] == 412


@pytest.mark.parametrize(("value", "status"), [(-1, 412), (5 * 1024 * 1024 + 1, 412), ("x", 400)])
async def test_sizes_have_bounds(admin: Admin, value: object, status: int) -> None:
    await admin.call("PUT", P + "/a")
    assert await admin.status("POST", P + "/a/maxMessageSize", value) == status


async def test_a_policy_needs_its_topic(admin: Admin) -> None:
    for method, body in (("GET", ...), ("POST", 1), ("DELETE", ...)):
        assert await admin.status(method, P + "/nowhere/maxMessageSize", body) == 404
