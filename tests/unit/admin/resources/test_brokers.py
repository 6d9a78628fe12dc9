"""Brokers: list, health, version."""

from __future__ import annotations

import pytest

from tests.unit.admin.resources.conftest import Admin

BROKERS = "/admin/v2/brokers"


async def test_the_only_broker_is_called_by_host_and_web_port(admin: Admin) -> None:
    (broker_id,) = await admin.get(BROKERS)
    assert broker_id == admin.service.addresses.default.http_url.removeprefix("http://")
    assert await admin.get(BROKERS + "/any-cluster") == [broker_id]
    assert await admin.get(BROKERS + "/leaderBroker") == {
        "serviceUrl": f"http://{broker_id}",
        "brokerId": broker_id,
    }


@pytest.mark.parametrize("path", ["/health", "/health?topicVersion=V2", "/ready"])
async def test_a_broker_that_works_says_ok(admin: Admin, path: str) -> None:
    response = await admin.call("GET", BROKERS + path)
    assert (response.status, response.body) == (200, b"ok")


async def test_the_health_of_another_broker_is_not_known(admin: Admin) -> None:
    assert await admin.status("GET", BROKERS + "/health?brokerId=nobody:1") == 404


async def test_the_version_is_one_that_tools_can_compare(admin: Admin) -> None:
    response = await admin.call("GET", BROKERS + "/version")
    assert [int(part) for part in response.body.decode().split(".")] >= [4, 2]


async def test_quotas_can_be_checked_at_once(admin: Admin) -> None:
    assert await admin.status("GET", BROKERS + "/backlog-quota-check") == 204


async def test_the_configuration_is_no_cluster(admin: Admin) -> None:
    assert await admin.status("GET", BROKERS + "/configuration") == 404
    assert (await admin.get(BROKERS + "/internal-configuration"))["ledgersRootPath"] == "/ledgers"
