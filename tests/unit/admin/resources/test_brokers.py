"""Brokers: list, health, version."""

from __future__ import annotations

import asyncio
import random

import pytest

from pulsar_py.standalone import Broker
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.hostile_metadata import HostileMetadata
from tests.unit.admin.resources.conftest import Admin
from tests.unit.server.topics.rig import Rig

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


def test_a_broker_is_not_ready_while_its_session_is_in_doubt_and_lives() -> None:
    async def run() -> None:
        service = HostileMetadata(random.Random(3), VirtualClock())
        metadata = service.connect("broker", VirtualClock())
        async with Rig(VirtualClock(), metadata=metadata) as rig:
            admin = Admin(rig.broker)
            assert await admin.status("GET", BROKERS + "/ready") == 200
            metadata.cut(1000)
            await asyncio.sleep(60)
            response = await admin.call("GET", BROKERS + "/ready")
            assert response.status == 503
            assert b"session with the metadata store is in doubt" in response.body
            assert await admin.status("GET", BROKERS + "/version") == 200
            await asyncio.sleep(1000)
            assert await admin.status("GET", BROKERS + "/ready") == 200

    run_virtual(run())


async def test_tools_are_told_where_a_cluster_has_its_stores(admin: Admin) -> None:
    places = {
        "metadataStoreUrl": "zk:h:1",
        "bookkeeperMetadataServiceUri": "zk+hierarchical://h:1/ledgers",
    }
    async with Broker(config=places, is_of_cluster=True) as broker:
        answer = await Admin(broker.service).get(BROKERS + "/internal-configuration")
    assert answer == {
        "zookeeperServers": "zk:h:1",
        "configurationStoreServers": "zk:h:1",
        "metadataStoreUrl": "zk:h:1",
        "configurationMetadataStoreUrl": "zk:h:1",
        "ledgersRootPath": "/ledgers",
        "bookkeeperMetadataServiceUri": "zk+hierarchical://h:1/ledgers",
    }
    alone = await admin.get(BROKERS + "/internal-configuration")
    assert (alone["metadataStoreUrl"], alone["configurationMetadataStoreUrl"]) == ("", "")


async def test_the_health_of_another_broker_is_not_known(admin: Admin) -> None:
    assert await admin.status("GET", BROKERS + "/health?brokerId=nobody:1") == 404


async def test_the_version_is_one_that_tools_can_compare(admin: Admin) -> None:
    response = await admin.call("GET", BROKERS + "/version")
    assert [int(part) for part in response.body.decode().split(".")] >= [4, 2]


async def test_quotas_can_be_checked_at_once(admin: Admin) -> None:
    assert await admin.status("GET", BROKERS + "/backlog-quota-check") == 204


async def test_the_configuration_is_no_cluster(admin: Admin) -> None:
    assert "maxTenants" in await admin.get(BROKERS + "/configuration")
    assert (await admin.get(BROKERS + "/internal-configuration"))["ledgersRootPath"] == "/ledgers"


async def test_a_broker_tells_which_bundles_it_owns(admin: Admin) -> None:
    broker_id = (await admin.get("/admin/v2/brokers"))[0]
    await admin.call("PUT", "/admin/v2/persistent/public/default/owned")
    owned = await admin.get(f"/admin/v2/brokers/standalone/{broker_id}/ownedNamespaces")
    bundle = await admin.call("GET", "/lookup/v2/topic/persistent/public/default/owned/bundle")
    assert owned[f"public/default/{bundle.body.decode()}"] == {
        "broker_assignment": "shared",
        "is_controlled": False,
        "is_active": True,
    }
    path = "/admin/v2/brokers/standalone/other:1/ownedNamespaces"
    assert (await admin.reason("GET", path))[0] == 404
